"""Excerpts: a few stretches of the data, drawn at random, that stand for all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Point
from subchain.engines.results import Keep
from subchain.engines.statistics import HMMStatistics
from subchain.engines.subchains import Grid, Minibatch, MinibatchRun
from subchain.propagation.occurrence.pairs import absence
from subchain.propagation.underflow import LEAST_TRANSITION
from subchain.structures.chain.model import HMMPoint
from subchain.transitions.stationary import stationary_of

if TYPE_CHECKING:
    from subchain.structures.chain.structure import Chains

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Share of the stretches that begin anywhere: a surrogate may think of states that chains never return to.
ANYWHERE = 0.01


class Excerpt:
    """Stretches of the training data.

    Parameters
    ----------
    length : positions of a stretch; whole sequences are shorter
    size : number of stretches, all if there are no more
    """

    def __init__(self, chains: Chains, length: int, size: int, rng: np.random.Generator) -> None:
        self.chains = chains
        data = chains.data
        self.grid = Grid(data.offsets, min(length, int(data.lengths.max(initial=1))))
        chosen = np.sort(rng.choice(self.grid.size, min(size, self.grid.size), replace=False))
        self.batch = self.grid.batch(chosen, chains.weights)

    def statistics(self, weights: Point) -> HMMStatistics:
        """Expected statistics of all the data, as far as the excerpt tells; likewise their log normaliser."""
        run, gains = self._run(cast(HMMPoint, weights), self.batch), self.grid.gains(self.batch.size)
        found, counted = run.statistics, self._counted()
        return HMMStatistics(
            found.chain.weighed(gains.initial, gains.pairs),
            found.emission.scale(gains.emission),
            log_normalizer=float(counted @ run.log_totals) * gains.emission,
            n_observations=float(counted @ self.batch.lengths) * gains.emission,
        )

    def surplus(self, weights: HMMPoint, method: str = "pairs") -> tuple[Array, Array]:
        """How much −log P(never happens) exceeds the expected number, for first states and for transitions."""
        run, gains = self._run(weights, self.batch, surplus=method), self.grid.gains(self.batch.size)
        begins = self.batch.is_first
        first = run.ends.first_marginal[:, begins]
        assert run.surplus is not None
        return (absence(first) - first) @ self._counted()[begins] * gains.initial, run.surplus * gains.pairs

    def marginals(self, weights: HMMPoint) -> list[Array]:
        """Marginals (K, n) of the positions of each stretch."""
        batch = self.batch
        found = [np.empty((weights.n_states, n)) for n in batch.lengths]
        by_start = np.argsort(batch.starts)

        def keep(positions: Index, marginals: Array) -> None:
            stretches = by_start[np.searchsorted(batch.starts[by_start], positions, side="right") - 1]
            for stretch in np.unique(stretches):
                own = stretches == stretch
                found[stretch][:, positions[own] - batch.starts[stretch]] = marginals[:, own]

        self._run(weights, batch, keep)
        return found

    def observations(self, stretch: int) -> NDArray[Any]:
        """The observations of a stretch."""
        start = self.batch.starts[stretch]
        return np.asarray(self.chains.data.values[start : start + self.batch.lengths[stretch]])

    def statistics_of(self, weights: HMMPoint, stretch: int) -> HMMStatistics:
        """Expected statistics of a single stretch."""
        return self._run(weights, self.grid.batch(self.batch.pieces[stretch : stretch + 1])).statistics

    def _counted(self) -> Array:
        """How often each stretch counts."""
        weights = self.batch.user_weights
        return np.ones(self.batch.size) if weights is None else weights

    def _run(
        self, weights: HMMPoint, batch: Minibatch, keep: Keep | None = None, surplus: str | None = None
    ) -> MinibatchRun:
        n_states = weights.n_states
        start, anywhere = np.empty((n_states, batch.size)), np.full(n_states, 1.0 / n_states)
        on_average = stationary_of(weights.chain.operator.stochastic(LEAST_TRANSITION))
        start[:] = ((1.0 - ANYWHERE) * on_average + ANYWHERE * anywhere)[:, None]
        start[:, batch.is_first] = weights.initial[:, None]
        surrogate, chains = weights.surrogate(), self.chains
        return chains.engine.minibatch(surrogate, chains, batch, start, np.ones_like(start), keep, surplus)
