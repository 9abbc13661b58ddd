"""Matching of the states of two models by an optimal assignment.

States match if their emissions are similar or, given data, if both models assign them to the same positions. The
distance of emissions is the symmetric Kullback-Leibler divergence, estimated for any family from draws of each state,
with bounded log ratios.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from subchain.emissions import Parameters
from subchain.errors import InputError

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Blocks = Iterator[tuple[int, Array]]

#: Draws per state, and bound on the log ratio of one draw.
DRAWS = 512
LARGEST_RATIO = 1e3
#: States are alike if their Kullback-Leibler divergence is below this number of nats.
ALIKE = 1e-2
#: States with a smaller share of the positions are not in use.
USED = 1e-3
#: Number of positions below which states are not judged.
FEWEST = 20


def emission_distance(ours: Parameters, theirs: Parameters) -> Array:
    """Return the estimated symmetric Kullback-Leibler divergence between our states and theirs, (K, K')."""
    if type(ours) is not type(theirs):
        raise InputError(
            f"{type(ours).__name__} and {type(theirs).__name__} cannot be compared; give data to match the states by."
        )
    return _excess(ours, theirs) + _excess(theirs, ours).T


def _excess(ours: Parameters, theirs: Parameters) -> Array:
    """Return the mean log ratio of our likelihood to theirs over draws from each of our states, (K, K')."""
    states = np.repeat(np.arange(ours.n_states), DRAWS)
    draws = ours.sample(states, np.random.default_rng(0))
    own = ours.log_likelihood(draws)[states, np.arange(len(states))]
    ratio: Array = np.minimum(own - theirs.log_likelihood(draws), LARGEST_RATIO)
    return np.asarray(ratio.reshape(theirs.n_states, ours.n_states, DRAWS).mean(axis=2).T)


def are_alike(emission: Parameters, visits: Array) -> bool:
    """Return whether all of several states that are in use have nearly the same emissions; false for few positions.

    Parameters
    ----------
    visits : (K,) expected number of positions in each state
    """
    used = np.flatnonzero(visits >= USED * visits.sum())
    if len(visits) < 2 or visits.sum() < FEWEST:
        return False
    states = emission.take(used)
    return bool((_excess(states, states.take(np.zeros(1, dtype=np.int64))) < ALIKE).all())


def overlap(ours: Blocks, theirs: Blocks) -> Array:
    """Return the expected number of positions at which our model is in state i and theirs in state j, (K, K')."""
    products = (own.T @ their for (_, own), (_, their) in zip(ours, theirs, strict=True))
    return np.asarray(reduce(np.add, products))


def match(cost: Array) -> tuple[Index, Index]:
    """Return our states in the order of their matches, unmatched ones last, and the matched states of theirs.

    `cost` is (K, K').
    """
    from scipy.optimize import linear_sum_assignment

    ours, theirs = linear_sum_assignment(cost)
    by_theirs = np.argsort(theirs)
    unmatched = np.setdiff1d(np.arange(len(cost)), ours)
    return np.concatenate((ours[by_theirs], unmatched)).astype(np.int64), theirs[by_theirs]
