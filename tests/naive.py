"""The slow, obviously right versions that everything is compared with.

Two kinds. The first enumerates every path of states, which is the definition of everything and works for a handful of
positions. The second walks along the chain in plain loops and logarithms, for chains of any length; it is held against
the first in `propagation/test_naive.py`. A chain is a table of log likelihoods (T, K), `initial` (K,) and `transition`
(K, K).
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Marginals(NamedTuple):
    """What is to be known about one chain.

    Attributes
    ----------
    log_likelihood : log of the summed probability of all paths
    smoothed : (T, K) probability of each state given all observations
    pairs : (K, K) expected number of moves
    filtered : (T, K) probability of each state given the observations up to there
    increments : (T,) log probability of each observation given those before it
    """

    log_likelihood: float
    smoothed: Array
    pairs: Array
    filtered: Array
    increments: Array


def logs(weights: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(weights, dtype=np.float64))


def log_sum(values: Array) -> float:
    largest = float(np.max(values))
    return largest if largest == -np.inf else largest + float(np.log(np.exp(values - largest).sum()))


# ---- by enumeration --------------------------------------------------------------------------------------------------


def all_paths(log_likelihood: Array, initial: Array, transition: Array) -> tuple[NDArray[np.int64], Array]:
    """Every path (K^T, T) in lexicographic order, and its log joint probability with the observations."""
    n_positions, n_states = log_likelihood.shape
    paths = np.array(list(itertools.product(range(n_states), repeat=n_positions)), dtype=np.int64)
    return paths, np.array([path_log_probability(path, log_likelihood, initial, transition) for path in paths])


def path_log_probability(path: NDArray[np.int64], log_likelihood: Array, initial: Array, transition: Array) -> float:
    """Log joint probability of one path and the observations; 0 for the path of no positions."""
    if len(path) == 0:
        return 0.0
    moves = logs(transition)[path[:-1], path[1:]].sum()
    return float(logs(initial)[path[0]] + moves + log_likelihood[np.arange(len(path)), path].sum())


def enumerate_marginals(log_likelihood: Array, initial: Array, transition: Array) -> Marginals:
    """Marginals as sums over all paths."""
    n_positions, n_states = log_likelihood.shape
    paths, joint = all_paths(log_likelihood, initial, transition)
    total = log_sum(joint)
    probability = np.exp(joint - total)
    smoothed, pairs, filtered = np.zeros((n_positions, n_states)), np.zeros((n_states, n_states)), []
    prefix_totals = [0.0]
    for t in range(n_positions):
        np.add.at(smoothed[t], paths[:, t], probability)
        if t > 0:
            np.add.at(pairs, (paths[:, t - 1], paths[:, t]), probability)
        ends, prefix = all_paths(log_likelihood[: t + 1], initial, transition)
        prefix_totals.append(log_sum(prefix))
        marginal = np.zeros(n_states)
        np.add.at(marginal, ends[:, t], np.exp(prefix - prefix_totals[-1]))
        filtered.append(marginal)
    return Marginals(total, smoothed, pairs, np.array(filtered), np.diff(prefix_totals))


def enumerate_best_path(log_likelihood: Array, initial: Array, transition: Array) -> tuple[NDArray[np.int64], float]:
    """A path of the largest probability (the first in lexicographic order), and its log probability."""
    paths, joint = all_paths(log_likelihood, initial, transition)
    best = int(joint.argmax())
    return paths[best], float(joint[best])


# ---- along the chain -------------------------------------------------------------------------------------------------


def marginals(log_likelihood: Array, initial: Array, transition: Array) -> Marginals:
    """Marginals by forward-backward in log space, one position after the other, each normalised."""
    n_positions, n_states = log_likelihood.shape
    log_transition = logs(transition)
    past, future = np.empty((n_positions, n_states)), np.zeros((n_positions, n_states))
    increments = np.empty(n_positions)
    predicted = logs(initial)
    for t in range(n_positions):
        joint = predicted + log_likelihood[t]
        increments[t] = log_sum(joint)
        past[t] = joint - increments[t]
        predicted = np.logaddexp.reduce(past[t][:, None] + log_transition, axis=0)
    pairs = np.zeros((n_states, n_states))
    for t in range(n_positions - 1, 0, -1):
        weighted = log_transition + log_likelihood[t] + future[t]
        weighted -= log_sum(past[t - 1][:, None] + weighted)
        future[t - 1] = np.logaddexp.reduce(weighted, axis=1)
        pairs += np.exp(past[t - 1][:, None] + weighted)
    return Marginals(float(increments.sum()), np.exp(past + future), pairs, np.exp(past), increments)


def best_path(log_likelihood: Array, initial: Array, transition: Array) -> tuple[NDArray[np.int64], float]:
    """A path of the largest probability, and its log probability, with back pointers."""
    n_positions, n_states = log_likelihood.shape
    log_transition = logs(transition)
    best = logs(initial) + log_likelihood[0]
    pointers = np.zeros((n_positions, n_states), dtype=np.int64)
    for t in range(1, n_positions):
        pointers[t] = [int((best + log_transition[:, k]).argmax()) for k in range(n_states)]
        best = np.array([(best + log_transition[:, k]).max() for k in range(n_states)]) + log_likelihood[t]
    path = [int(best.argmax())]
    for t in range(n_positions - 1, 0, -1):
        path.append(int(pointers[t, path[-1]]))
    return np.array(path[::-1]), float(best.max())


def impossible_at(log_likelihood: Array, initial: Array, transition: Array) -> int | None:
    """First position that no path explains; None if there is a path to the end."""
    reached = np.asarray(initial) > 0
    for t, row in enumerate(log_likelihood):
        if t > 0:
            reached = (reached[:, None] & (np.asarray(transition) > 0)).any(axis=0)
        reached = reached & (row > -np.inf)
        if not reached.any():
            return t
    return None
