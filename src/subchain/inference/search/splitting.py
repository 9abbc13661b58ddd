"""Splits: a state that does the work of two gives part of it to one that is not used, if the bound rises.

The new state begins small: with what the old one does in a single short stretch of the data. In a few restricted
iterations, in which only these two states are learned, the two share out what the old one had. What comes of it is then
judged like a merge, by passes over the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

import numpy as np

from subchain.emissions.base import Conjugate
from subchain.engines.statistics import HMMStatistics
from subchain.inference.run.algorithm import Algorithm
from subchain.structures.chain.excerpts import Excerpt
from subchain.structures.chain.model import HMMPoint, HMMPosterior
from subchain.structures.chain.structure import Chains

#: States that are expected at fewer positions are free; those at fewer than so many are too small to be split.
FREE, LARGE = 0.5, 20.0
#: Stretches that a new state may begin with, their length, and the positions that a state must have in one.
STRETCHES, LENGTH, MINDED = 64, 25, 2.0
#: Share of the old state's counts that the new one begins with.
SMALL = 0.2
#: Restricted iterations, and what they look at.
ITERATIONS, EXCERPT_SIZE, EXCERPT_LENGTH = 6, 64, 512


class Split(NamedTuple):
    """A state, the free one that takes over part of its work, and the statistics with which both begin.

    `log_normalizer` is that of the excerpt in the last restricted iteration.
    """

    state: int
    free: int
    statistics: HMMStatistics
    log_normalizer: float


class Seed(NamedTuple):
    """A state that may be split, and the stretch of the data that the new state begins with."""

    state: int
    stretch: int


class Splitter:
    """Splits of the states of a model that has a free one.

    Parameters
    ----------
    chains : the data
    algorithm : whose weights are used
    prior, statistics : the model
    rng : draws the seeds and an excerpt for restricted iterations
    """

    def __init__(
        self, chains: Chains, algorithm: Algorithm, prior: HMMPosterior, statistics: HMMStatistics,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.algorithm, self.prior, self.statistics, self.rng = algorithm, prior, statistics, rng
        self.free = int(np.argmin(statistics.visits))
        self.weights = _weights(algorithm, prior.update(statistics))
        self.stretches = Excerpt(chains, LENGTH, STRETCHES, rng)
        self.marginals = self.stretches.marginals(self.weights)
        #: Expected number of positions that each stretch spends in each state, (M, K).
        self.occupancy = np.array([table.sum(axis=1) for table in self.marginals])
        self.excerpt = Excerpt(chains, EXCERPT_LENGTH, EXCERPT_SIZE, rng)

    def by_size(self) -> Iterator[Seed]:
        """Seeds of all states that are large enough, in random order, the larger ones rather first."""
        visits, rng, occupancy = self.statistics.visits, self.rng, self.occupancy
        large = np.flatnonzero(visits > LARGE)
        shares = visits[large] / visits[large].sum()
        for state in rng.choice(large, len(large), replace=False, p=shares) if len(large) else []:
            if occupancy[:, state].sum() <= 1.0:
                continue
            stretch = rng.choice(len(occupancy), p=occupancy[:, state] / occupancy[:, state].sum())
            yield Seed(int(state), int(stretch))

    def by_misfit(self) -> list[Seed]:
        """Seeds of all states that are large enough; first the stretches that their states explain worst.

        That is, by the Bayes factor of emissions by a new state against emissions by the state as it is, both summed
        over the parameters. A state has one seed, its best.
        """
        large = np.flatnonzero((self.statistics.visits > LARGE) & (self.occupancy.max(axis=0) >= MINDED))
        if not len(large):
            return []
        prior = cast(Conjugate, self.prior.emission).take(large)
        learned, emission = prior.update(self.statistics.emission.take(large)), self.weights.surrogate().emission
        gains = np.full(self.occupancy.shape, -np.inf)
        for stretch in np.flatnonzero((self.occupancy[:, large] >= MINDED).any(axis=1)):
            sums = emission.zeros()
            emission.accumulate(self.stretches.observations(int(stretch)), self.marginals[stretch], sums)
            own = sums.take(large)
            gain = prior.evidence_by_state(own) - learned.evidence_by_state(own)
            gains[stretch, large] = np.where(self.occupancy[stretch, large] >= MINDED, gain, -np.inf)
        best = gains.argmax(axis=0)
        order = large[np.argsort(-gains[best[large], large], kind="stable")]
        return [Seed(int(state), int(best[state])) for state in order]

    @property
    def visits(self) -> float:
        """Positions that a split visits."""
        return float(ITERATIONS * self.excerpt.batch.lengths.sum())

    def log_normalizer(self, statistics: HMMStatistics) -> float:
        """Return the log normaliser of the excerpt under the model with other statistics."""
        return self.excerpt.statistics(_weights(self.algorithm, self.prior.update(statistics))).log_normalizer

    def split(self, seed: Seed) -> Split:
        """Return the state of a seed and the free one after a few restricted iterations."""
        own = self.stretches.statistics_of(self.weights, seed.stretch)
        begun = _begin(self.statistics, own, seed.state, self.free)
        return _share_out(self.excerpt, self.algorithm, self.prior, begun, seed.state, self.free)


def has_free_state(statistics: HMMStatistics) -> bool:
    """Return whether there is a state that is not in use."""
    return bool(statistics.visits.min() <= FREE)


def _weights(algorithm: Algorithm, posterior: HMMPosterior) -> HMMPoint:
    found: HMMPoint = algorithm.weights(posterior, posterior.mean())
    return found


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
) -> Split:
    """Restricted iterations: only two states are learned anew."""
    others = np.ones(len(statistics.initial), dtype=np.bool_)
    others[[state, free]] = False
    between = np.outer(others, others)
    prior, log_normalizer = prior.begin(statistics), -np.inf
    for _ in range(ITERATIONS):
        fresh = excerpt.statistics(_weights(algorithm, prior.update(statistics)))
        log_normalizer = fresh.log_normalizer
        statistics = HMMStatistics.of(
            np.where(others, statistics.initial, fresh.initial),
            np.where(between, statistics.pairs, fresh.pairs),
            fresh.emission.keep_states(others, statistics.emission),
            n_observations=statistics.n_observations,
        )
        prior = prior.update_hyperparameters(statistics)
    return Split(state, free, statistics, log_normalizer)
