"""Splits: a state that does the work of two gives part of it to one that is not used, if the bound rises.

The new state begins small: with what the old one does in a single short stretch of the data. In a few restricted
iterations, in which only these two states are learned, the two share out what the old one had. What comes of it is then
judged like a merge, by passes over the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from subchain.engines.statistics import HMMStatistics
from subchain.inference.run.algorithm import Algorithm
from subchain.structures.chain.excerpts import Excerpt
from subchain.structures.chain.model import HMMPosterior
from subchain.structures.chain.structure import Chains

#: States that are expected at fewer positions are free; those at fewer than so many are too small to be split.
FREE, LARGE = 0.5, 20.0
#: Stretches that a new state may begin with, and their length.
STRETCHES, LENGTH = 64, 25
#: Share of the old state's counts that the new one begins with.
SMALL = 0.2
#: Restricted iterations, and what they look at.
ITERATIONS, EXCERPT_SIZE, EXCERPT_LENGTH = 6, 64, 512


class Split(NamedTuple):
    """A state, the free one that takes over part of its work, and the statistics with which both begin."""

    state: int
    free: int
    statistics: HMMStatistics


def splits(
    chains: Chains, algorithm: Algorithm, prior: HMMPosterior, statistics: HMMStatistics, rng: np.random.Generator
) -> Iterator[Split]:
    """Splits of all states that are large enough, in random order, the larger ones rather first."""
    visits = statistics.visits
    free, large = int(np.argmin(visits)), np.flatnonzero(visits > LARGE)
    if visits[free] > FREE or not len(large):
        return
    weights = algorithm.weights(prior.update(statistics), prior.update(statistics).mean())
    seeds = Excerpt(chains, LENGTH, STRETCHES, rng)
    occupancy = seeds.occupancy(weights)
    excerpt = Excerpt(chains, EXCERPT_LENGTH, EXCERPT_SIZE, rng)
    shares = visits[large] / visits[large].sum()
    for state in rng.choice(large, len(large), replace=False, p=shares):
        if occupancy[:, state].sum() <= 1.0:
            continue
        stretch = int(rng.choice(len(occupancy), p=occupancy[:, state] / occupancy[:, state].sum()))
        begun = _begin(statistics, seeds.statistics_of(weights, stretch), int(state), free)
        yield Split(int(state), free, _share_out(excerpt, algorithm, prior, begun, int(state), free))


def _begin(statistics: HMMStatistics, seed: HMMStatistics, state: int, free: int) -> HMMStatistics:
    """All statistics, where the free state has part of the other's counts, in the proportions of a stretch."""
    n_states = len(statistics.initial)
    order = np.arange(n_states)
    order[free] = state
    like = seed.take(order)  # the free state as a double of the other
    gain = SMALL * statistics.pairs[:, state].sum() / max(float(seed.pairs[:, state].sum()), 1e-9)
    new = like.scale(min(gain, 1e6))
    cross = 0.1 * new.pairs[free, free]
    pairs, initial = statistics.pairs.copy(), statistics.initial.copy()
    for index in (np.s_[state, :], np.s_[:, state]):
        pairs[index] *= 1.0 - SMALL
    initial[state] *= 1.0 - SMALL
    pairs[free], pairs[:, free] = new.pairs[free], new.pairs[:, free]
    pairs[free, state] = pairs[state, free] = cross
    initial[free] = new.initial[free]
    is_free = np.arange(n_states) == free
    emission = statistics.emission.keep_states(is_free, new.emission)
    return HMMStatistics.of(initial, pairs, emission, n_observations=statistics.n_observations)


def _share_out(
    excerpt: Excerpt, algorithm: Algorithm, prior: HMMPosterior, statistics: HMMStatistics, state: int, free: int
) -> HMMStatistics:
    """Restricted iterations: only two states are learned anew."""
    others = np.ones(len(statistics.initial), dtype=np.bool_)
    others[[state, free]] = False
    between = np.outer(others, others)
    prior = prior.begin(statistics)
    for _ in range(ITERATIONS):
        posterior = prior.update(statistics)
        fresh = excerpt.statistics(algorithm.weights(posterior, posterior.mean()))
        statistics = HMMStatistics.of(
            np.where(others, statistics.initial, fresh.initial),
            np.where(between, statistics.pairs, fresh.pairs),
            fresh.emission.keep_states(others, statistics.emission),
            n_observations=statistics.n_observations,
        )
        prior = prior.update_hyperparameters(statistics)
    return statistics
