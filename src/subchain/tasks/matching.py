"""Which state of one model is which state of another: an optimal assignment.

States are alike if they emit alike, or, on data, if both models find them at the same positions. How differently two
states emit is measured for any family in the same way: by draws from each, and how much less probable the other finds
them (an estimate of the symmetric Kullback-Leibler divergence, with each draw's share bounded).
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

#: Draws from each state, and the largest log ratio that one of them can contribute.
DRAWS = 512
LARGEST_RATIO = 1e3


def emission_distance(ours: Parameters, theirs: Parameters) -> Array:
    """How differently our states and theirs emit, (K, K')."""
    if type(ours) is not type(theirs):
        raise InputError(
            f"{type(ours).__name__} and {type(theirs).__name__} cannot be compared; give data to match the states on."
        )
    return _excess(ours, theirs) + _excess(theirs, ours).T


def _excess(ours: Parameters, theirs: Parameters) -> Array:
    """Mean log ratio of our likelihood to theirs over draws from each of our states, (K, K')."""
    states = np.repeat(np.arange(ours.n_states), DRAWS)
    draws = ours.sample(states, np.random.default_rng(0))
    own = ours.log_likelihood(draws)[states, np.arange(len(states))]
    ratio: Array = np.minimum(own - theirs.log_likelihood(draws), LARGEST_RATIO)
    return np.asarray(ratio.reshape(theirs.n_states, ours.n_states, DRAWS).mean(axis=2).T)


def overlap(ours: Blocks, theirs: Blocks) -> Array:
    """Expected number of positions at which one model is in a state and the other in another, (K, K')."""
    products = (own.T @ their for (_, own), (_, their) in zip(ours, theirs, strict=True))
    return np.asarray(reduce(np.add, products))


def match(cost: Array) -> tuple[Index, Index]:
    """Our states in the order of those of theirs that they match, the others last; and theirs that were matched."""
    from scipy.optimize import linear_sum_assignment

    ours, theirs = linear_sum_assignment(cost)
    by_theirs = np.argsort(theirs)
    left = np.setdiff1d(np.arange(len(cost)), ours)
    return np.concatenate((ours[by_theirs], left)).astype(np.int64), theirs[by_theirs]
