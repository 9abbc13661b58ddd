"""How good marginals over all paths are: entropies, bounds on the evidence, and co-clustering of positions."""

from __future__ import annotations

import itertools

import numpy as np
from naive_collapsed import (
    Array,
    Chain,
    Marginals,
    Posterior,
    Problem,
    concentration,
    factors,
    log_joint_of_counts,
    logs,
    shares,
)
from naive_cvi import expected_counts
from numpy.typing import NDArray

# ---- how good marginals are ------------------------------------------------------------------------------------------


def entropy(q: Marginals) -> float:
    """Entropy of q: that of all pairs, less that of the states that two pairs share."""
    return sum(chain_entropy(chain) for clusters in q for chain in clusters)


def chain_entropy(chain: Chain) -> float:
    if len(chain.pairs) == 0:
        return plain_entropy(chain.marginals)
    return plain_entropy(chain.pairs) - plain_entropy(chain.marginals[1:-1])


def plain_entropy(probability: Array) -> float:
    return -float((probability * logs(np.where(probability > 0, probability, 1.0))).sum())


def expected_log_factors(q: Marginals, problem: Problem) -> float:
    """E[log legal], which is zero where states are either legal or not."""
    total = 0.0
    for i, clusters in enumerate(q):
        marginals = np.concatenate([chain.marginals for chain in clusters])
        total += float((marginals * logs(np.where(marginals > 0, factors(problem, i), 1.0))).sum())
    return total


def expected_bound(q: Marginals, problem: Problem) -> float:
    """The collapsed objective with expected counts inside the gamma functions of (3.24), plus the entropy of q.

    It is the bound of variational inference with the best q(parameters) for this q(z), since the integral over the
    parameters of exp E_q[log p(x, z | parameters)] is (3.24) at the expected counts. So it never falls during
    `vi_pass`, and never lies above `exact_bound`.
    """
    counts = expected_counts(q, problem)
    return float(log_joint_of_counts(counts, concentration(problem))) + expected_log_factors(q, problem) + entropy(q)


def log_probability(q: Marginals, paths: NDArray[np.int64]) -> Array:
    """(M,) log q of joint paths (M, N), the positions of all sequences in a row."""
    total, position = np.zeros(len(paths)), 0
    for chain in itertools.chain.from_iterable(q):
        total += logs(chain.marginals[0])[paths[:, position]]
        for pair in chain.pairs:
            total += logs(shares(pair))[paths[:, position], paths[:, position + 1]]
            position += 1
        position += 1
    return total


def exact_bound(q: Marginals, posterior: Posterior) -> float:
    """The collapsed bound (3.27), E_q[log p(x, z) − log q(z)], path by path."""
    log_q = log_probability(q, posterior.paths)
    likely = log_q > -np.inf
    return float((np.exp(log_q[likely]) * (posterior.log_joint[likely] - log_q[likely])).sum())


def co_clustering(q: Marginals) -> Array:
    """(N, N) probability under q that two positions are in the same state."""
    chains = list(itertools.chain.from_iterable(q))
    marginals = np.concatenate([chain.marginals for chain in chains])
    same: Array = marginals @ marginals.T
    position = 0
    for chain in chains:
        own = slice(position, position + len(chain.marginals))
        same[own, own] = co_clustering_within(chain)
        position = own.stop
    return same


def co_clustering_within(chain: Chain) -> Array:
    """(T, T) of one cluster, from the joint distribution of each state and every later one."""
    n_positions = len(chain.marginals)
    same = np.eye(n_positions)
    for s in range(n_positions):
        joint = np.diag(chain.marginals[s])
        for t in range(s + 1, n_positions):
            joint = joint @ shares(chain.pairs[t - 1])
            same[s, t] = same[t, s] = np.trace(joint)
    return same


def co_clustering_error(q: Marginals, posterior: Posterior) -> float:
    """Mean absolute error of the co-clustering probabilities of all pairs of different positions."""
    pairs = np.triu_indices(len(posterior.co_clustering), 1)
    return float(np.abs(co_clustering(q) - posterior.co_clustering)[pairs].mean())
