"""Excerpts: a few stretches of the data, drawn at random, that stand for all of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.core.statistics import Statistics
from subchain.engines.cpu.messages import Messages
from subchain.engines.subchains import Grid, Keep, Minibatch, MinibatchRun, run_minibatch
from subchain.engines.surrogate import Surrogate
from subchain.inference.run.problem import Problem
from subchain.numerics import simplex
from subchain.numerics.stationary import stationary_distribution
from subchain.propagation.occurrence.pairs import absence
from subchain.propagation.underflow import LEAST_MOVE

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

    def __init__(self, problem: Problem, length: int, size: int, rng: np.random.Generator) -> None:
        self.problem = problem
        data = problem.whole.data
        self.grid = Grid(data.offsets, min(length, int(data.lengths.max(initial=1))))
        chosen = np.sort(rng.choice(self.grid.size, min(size, self.grid.size), replace=False))
        self.batch = self.grid.batch(chosen, problem.whole.weights)

    def statistics(self, surrogate: Surrogate) -> Statistics:
        """Expected statistics of all the data, as far as the excerpt tells; likewise their log normaliser."""
        run, gains = self._run(surrogate, self.batch), self.grid.gains(self.batch.size)
        found, counted = run.statistics, self._counted()
        return Statistics(
            found.initial * gains.initial, found.pairs * gains.pairs, found.emission.scale(gains.emission),
            float(counted @ run.log_totals) * gains.emission, float(counted @ self.batch.lengths) * gains.emission,
        )  # fmt: skip

    def surplus(self, surrogate: Surrogate, way: str = "pairs") -> tuple[Array, Array]:
        """How much −log probabilities that first states, and moves, never happen exceed their expected numbers."""
        run, gains = self._run(surrogate, self.batch, surplus=way), self.grid.gains(self.batch.size)
        begins = self.batch.is_first
        first = run.ends.first_marginal[:, begins]
        assert run.surplus is not None
        return (absence(first) - first) @ self._counted()[begins] * gains.initial, run.surplus * gains.pairs

    def occupancy(self, surrogate: Surrogate) -> Array:
        """Expected number of positions that each stretch spends in each state, (M, K)."""
        batch, n_states = self.batch, surrogate.n_states
        found = np.zeros((batch.size, n_states))
        by_start = np.argsort(batch.starts)

        def keep(positions: Index, marginals: Array) -> None:
            stretch = by_start[np.searchsorted(batch.starts[by_start], positions, side="right") - 1]
            for state in range(n_states):
                found[:, state] += np.bincount(stretch, marginals[state], minlength=batch.size)

        self._run(surrogate, batch, keep)
        return found

    def statistics_of(self, surrogate: Surrogate, stretch: int) -> Statistics:
        """Expected statistics of a single stretch."""
        return self._run(surrogate, self.grid.batch(self.batch.pieces[stretch : stretch + 1])).statistics

    def _counted(self) -> Array:
        """How often each stretch counts."""
        weights = self.batch.user_weights
        return np.ones(self.batch.size) if weights is None else weights

    def _run(
        self, surrogate: Surrogate, batch: Minibatch, keep: Keep | None = None, surplus: str | None = None
    ) -> MinibatchRun:
        whole = self.problem.whole
        n_states = surrogate.n_states
        start, anywhere = np.empty((n_states, batch.size)), np.full(n_states, 1.0 / n_states)
        moves = np.where(surrogate.transition > 0.0, np.maximum(surrogate.transition, LEAST_MOVE), 0.0)
        on_average = stationary_distribution(simplex.normalized(moves, 1))
        start[:] = ((1.0 - ANYWHERE) * on_average + ANYWHERE * anywhere)[:, None]
        start[:, batch.is_first] = surrogate.initial[:, None]
        messages = Messages(surrogate, whole.data, whole.evidence)
        return run_minibatch(self.problem.engine, messages, batch, start, np.ones_like(start), keep, surplus)
