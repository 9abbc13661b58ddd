"""Passes of collapsed variational inference, and of variational inference for comparison, slow and obviously right.

Wherever an expected count is needed it is summed anew over all marginals there are. Equation numbers are those of
chapter 3 of Wang's thesis.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
from naive_collapsed import (
    Array,
    Chain,
    Left,
    Marginals,
    Order,
    Place,
    Problem,
    Table,
    Visits,
    averaged,
    concentration,
    factors,
    far_apart,
    forward_backward,
    likelihoods,
    normalised,
    ratio,
    shares,
    updated,
    zeros_like,
)
from scipy.special import digamma

# ---- expected counts -------------------------------------------------------------------------------------------------


def expected_counts(q: Marginals, problem: Problem, without: Collection[Place] = ()) -> Table:
    """Expected counts of everything but the clusters `without`, each given as (sequence, cluster).

    With a cluster go its symbols and all moves that begin or end in it: T + 1 for T states inside a sequence (3.56).
    A move from one cluster to the next is expected with the product of the two marginals, since q makes them
    independent.
    """
    counts = zeros_like(concentration(problem))
    for i, clusters in enumerate(q):
        position = 0
        for c, chain in enumerate(clusters):
            symbols = problem.data[i][position : position + len(chain.marginals)]
            position += len(chain.marginals)
            if (i, c) in without:
                continue
            if c == 0:
                counts.initial[:] += chain.marginals[0]
            elif (i, c - 1) not in without:
                counts.rows[:] += np.outer(clusters[c - 1].marginals[-1], chain.marginals[0])
            counts.rows[:] += chain.pairs.sum(axis=0)
            for symbol, marginal in zip(symbols, chain.marginals, strict=True):
                if symbol >= 0:
                    counts.emission[symbol] += marginal
    return counts


def predictive(counts: Table, problem: Problem) -> Table:
    """Surrogate parameters (3.49)-(3.50): the mean parameters after these counts."""
    posterior = updated(counts, problem)
    return Table(normalised(posterior.initial), shares(posterior.rows), shares(posterior.emission.T).T)


# ---- CVI 1: single states --------------------------------------------------------------------------------------------


def state(q: Marginals, i: int, t: int) -> Array:
    """(K,) q(z_t) of a sequence whose clusters are single states; zero before its first and behind its last."""
    return q[i][t].marginals[0] if 0 <= t < len(q[i]) else np.zeros(q[i][0].marginals.shape[1])


def moves_from_before(q: Marginals, problem: Problem, i: int, t: int, corrections: bool = True) -> Table:
    """Expected counts whose row j is C^{∖t}_{j·} given z_{t−1} = j.

    All moves but those of t − 1 and t, and (3.37)'s one contribution: the move from t − 2 to t − 1 ends in j, so it
    begins there too with probability q(z_{t−2} = j). It is zero at t − 1 = 1, where the move came from the start.
    """
    counts = expected_counts(q, problem, {(i, t - 1), (i, t)})
    return counts._replace(rows=counts.rows + np.diag(state(q, i, t - 2))) if corrections else counts


def moves_to_after(q: Marginals, problem: Problem, i: int, t: int, corrections: bool = True) -> Table:
    """Expected counts whose column l is C^{∖t}_{·l} given z_{t+1} = l.

    All moves but those of t and t + 1, and (3.39)'s one contribution of the move from t + 1 to t + 2.
    """
    counts = expected_counts(q, problem, {(i, t), (i, t + 1)})
    return counts._replace(rows=counts.rows + np.diag(state(q, i, t + 2))) if corrections else counts


def weight_from_before(
    q: Marginals, problem: Problem, i: int, t: int, corrections: bool, neighbour_weighting: Left
) -> Array:
    """(K,) first factor of (3.33): what z_{t−1} says; at the start of a sequence row 0."""
    if t == 0:
        return updated(expected_counts(q, problem, {(i, t)}), problem).initial
    rows = updated(moves_from_before(q, problem, i, t, corrections), problem).rows
    return averaged(state(q, i, t - 1), shares(rows) if neighbour_weighting == "probabilities" else rows)


def weight_from_after(q: Marginals, problem: Problem, i: int, t: int, corrections: bool) -> Array:
    """(K,) second factor of (3.33): what z_{t+1} says; at the end of a sequence nothing."""
    if t == len(q[i]) - 1:
        return np.ones(len(problem.alpha_initial))
    rows = updated(moves_to_after(q, problem, i, t, corrections), problem).rows
    numerator = averaged(state(q, i, t + 1), rows.T)
    if not corrections:
        return ratio(numerator, rows.sum(axis=1))
    denominator = updated(expected_counts(q, problem, {(i, t)}), problem).rows.sum(axis=1)
    stayed = np.where(np.diag(problem.alpha_rows) > 0, state(q, i, t - 1), 0.0)  # the move into t may be k → k
    return ratio(numerator + stayed * state(q, i, t + 1), denominator + stayed)


def weight_from_symbol(q: Marginals, problem: Problem, i: int, t: int) -> Array:
    """(K,) third factor of (3.33); C_{·k} is the number of symbols that k emitted."""
    emission = predictive(expected_counts(q, problem, {(i, t)}), problem).emission
    symbol = problem.data[i][t]
    return np.ones(len(problem.alpha_initial)) if symbol < 0 else emission[symbol]


def cvi_state_pass(
    q: Marginals,
    problem: Problem,
    corrections: bool = True,
    neighbour_weighting: Left = "counts",
    order: Order = "incremental",
    visits: Visits | None = None,
) -> Marginals:
    """CVI 1: every state once by (3.33).

    Parameters
    ----------
    q : clusters of one state
    corrections : with the single contributions of (3.37) and (3.39) and the delta terms of (3.33), or without any
    neighbour_weighting : average the raw rows of counts over z_{t−1}, or each row divided by its total
    order : given the newest marginals, or ("batch") the marginals before the pass
    visits : these states in this order, each a group of its own, instead of all in the order of the data
    """
    given, q = q, [list(clusters) for clusters in q]
    for ((i, t),) in visits or far_apart(q, 1):
        known = given if order == "batch" else q
        weights = factors(problem, i)[t] * weight_from_before(known, problem, i, t, corrections, neighbour_weighting)
        weights = weights * weight_from_after(known, problem, i, t, corrections)
        weights = weights * weight_from_symbol(known, problem, i, t)
        q[i][t] = Chain(normalised(weights)[None], q[i][t].pairs)
    return q


# ---- CVI 2: whole sequences ------------------------------------------------------------------------------------------


def sequence_under(surrogate: Table, problem: Problem, i: int) -> Chain:
    """Marginals of one whole sequence under given parameters."""
    likelihood = likelihoods(surrogate.emission, problem.data[i], factors(problem, i))
    return forward_backward(surrogate.initial, surrogate.rows, likelihood, np.ones(len(surrogate.initial)))


def cvi_sequence_pass(
    q: Marginals,
    problem: Problem,
    exclude: bool = True,
    order: Order = "incremental",
    cluster_size: int = 1,
    visits: Visits | None = None,
) -> Marginals:
    """CVI 2: every sequence once by (3.48).

    Parameters
    ----------
    q : one cluster for each sequence
    exclude : counts without the visited sequences, as it should be, or with them
    order : counts of the newest marginals, or ("batch") of the marginals before the pass
    cluster_size : how many sequences are taken out at once and run under the same surrogate
    visits : these groups of sequences, in this order, instead of those that `cluster_size` makes
    """
    given, q = q, [list(clusters) for clusters in q]
    for group in visits or far_apart(q, cluster_size):
        counts = expected_counts(given if order == "batch" else q, problem, group if exclude else ())
        for i, _ in group:
            q[i] = [sequence_under(predictive(counts, problem), problem, i)]
    return q


# ---- CVI 3: subchains ------------------------------------------------------------------------------------------------


def message_from_before(
    q: Marginals, problem: Problem, place: Place, without: set[Place], neighbour_weighting: Left
) -> Array:
    """(K,) weights of a cluster's first state (3.68)."""
    i, c = place
    rows = updated(expected_counts(q, problem, without), problem).rows
    return averaged(q[i][c - 1].marginals[-1], shares(rows) if neighbour_weighting == "probabilities" else rows)


def message_from_after(q: Marginals, problem: Problem, place: Place, without: set[Place]) -> Array:
    """(K,) weights of a cluster's last state (3.69)."""
    i, c = place
    rows = updated(expected_counts(q, problem, without), problem).rows
    return averaged(q[i][c + 1].marginals[0], shares(rows).T)


def subchain_under(
    q: Marginals, problem: Problem, place: Place, without: set[Place], neighbour_weighting: Left, alone: bool = True
) -> Chain:
    """New marginals of one cluster by (3.70), with counts without some clusters, this one among them or not.

    Parameters
    ----------
    alone : for the message from a neighbour, take out the neighbour as well: C^{∖i−1,i} and C^{∖i,i+1}
    """
    i, c = place
    start = sum(len(chain.marginals) for chain in q[i][:c])
    own = slice(start, start + len(q[i][c].marginals))
    surrogate = predictive(expected_counts(q, problem, without), problem)
    likelihood = likelihoods(surrogate.emission, problem.data[i][own], factors(problem, i)[own])
    first, last = surrogate.initial, np.ones(len(surrogate.initial))
    if c > 0:
        first = message_from_before(
            q, problem, place, without | {(i, c - 1)} if alone else without, neighbour_weighting
        )
    if c + 1 < len(q[i]):
        last = message_from_after(q, problem, place, without | {(i, c + 1)} if alone else without)
    return forward_backward(first, surrogate.rows, likelihood, last)


def cvi_subchain_pass(
    q: Marginals,
    problem: Problem,
    neighbour_weighting: Left = "counts",
    exclude: bool = True,
    order: Order = "incremental",
    cluster_size: int = 1,
    visits: Visits | None = None,
) -> Marginals:
    """CVI 3: every subchain once; how long they are is how `q` was cut.

    Parameters are those of `cvi_state_pass` and `cvi_sequence_pass`. Neighbours are taken out for the messages between
    them if clusters are taken out at all, and one by one.
    """
    given, q = q, [list(clusters) for clusters in q]
    for group in visits or far_apart(q, cluster_size):
        known = given if order == "batch" else [list(clusters) for clusters in q]
        without = set(group) if exclude else set()
        for i, c in group:
            q[i][c] = subchain_under(
                known, problem, (i, c), without, neighbour_weighting, alone=exclude and cluster_size == 1
            )
    return q


# ---- shards ----------------------------------------------------------------------------------------------------------


def shards_pass(q: Marginals, rounds: list[list[Visits]], visit: Callable[[Marginals, Visits], Marginals]) -> Marginals:
    """Every cluster once, shards of them side by side.

    Parameters
    ----------
    rounds : the groups of clusters that each shard visits, one after the other, in each round
    visit : visits some groups of clusters, from given marginals on
    """
    for shards in rounds:
        found = [(groups, visit(q, groups)) for groups in shards]  # from the marginals at the beginning of the round
        q = [list(clusters) for clusters in q]
        for groups, new in found:
            for i, c in (place for group in groups for place in group):
                q[i][c] = new[i][c]
    return q


# ---- variational inference, for comparison ---------------------------------------------------------------------------


def geometric(counts: Table, problem: Problem) -> Table:
    """exp E[log θ] of the posterior after these counts."""
    posterior = updated(counts, problem)
    emission = exp_expected_log(posterior.emission.T).T
    return Table(exp_expected_log(posterior.initial), exp_expected_log(posterior.rows), emission)


def exp_expected_log(alpha: Array) -> Array:
    """exp(ψ(α) − ψ(Σα)) along the last axis; 0 where α is 0."""
    total = alpha.sum(axis=-1, keepdims=True)
    possible = alpha > 0
    value = np.exp(digamma(np.where(possible, alpha, 1.0)) - digamma(np.where(total > 0, total, 1.0)))
    return np.where(possible, value, 0.0)


def vi_pass(q: Marginals, problem: Problem) -> Marginals:
    """Mean field with parameters: all sequences under exp E[log θ] of the marginals before the pass."""
    surrogate = geometric(expected_counts(q, problem), problem)
    return [[sequence_under(surrogate, problem, i)] for i in range(len(q))]
