"""Variational inference with a marginal of its own for every single state: q(z) = Π q(z_t), the fullest factorisation.

An iteration sweeps over all positions under the surrogate exp E[log θ] and then updates_hyperparameters the posterior
of the parameters, as in `VI` over sequences; neither lowers the bound. The marginals of all positions are kept from one
iteration to the next. A run begins with those that forward and backward messages give under its start.

Positions are swept in blocks that depend on the data and the number of states alone. A long chain is cut into pieces;
the even ones are swept while the odd ones wait, then the odd ones, so blocks of a turn can run side by side.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Point, Posterior
from subchain.core.ranges import probabilities, stored
from subchain.core.statistics import Statistics
from subchain.engines.part import Observed
from subchain.engines.results import WriteMarginals
from subchain.engines.statistics import HMMStatistics
from subchain.errors import InputError, impossible_error
from subchain.inference.batch.passes import Batch, Passes, PassTrials
from subchain.inference.run.chains import ChainProblem
from subchain.inference.run.loop import Known, Results, RunState, Step, Trial
from subchain.numerics.vectors import aligned
from subchain.propagation.collapsed.single_chain import padded
from subchain.propagation.mean_field_sweeps import FORBIDDEN, ROOM, sweep
from subchain.structures.chain.model import HMMPoint, HMMPosterior
from subchain.transitions.base import ChainLaw

if TYPE_CHECKING:
    from subchain.data.sequences import Sequences

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Entries of a table over the positions of a block.
BLOCK_VALUES = 1 << 17
#: The marginals of a group are at least so many times as large as its sums; the most groups.
WORTH, MAX_GROUPS = 8, 64


class Blocks(NamedTuple):
    """Stretches of neighbouring positions that are swept at once.

    Attributes
    ----------
    edges : (B + 1,) first position of each, and the end of the data
    is_odd : (B,) whether its turn is the second
    """

    edges: Index
    is_odd: NDArray[np.bool_]


def cut(offsets: Index, length: int) -> Blocks:
    """Cut sequences into pieces of at most `length` positions; neighbours that may be swept at once are one block.

    Examples
    --------
    >>> cut(np.array([0, 2, 4, 11]), 3)
    Blocks(edges=array([ 0,  4,  7, 10, 11]), is_odd=array([False, False,  True, False]))
    """
    counts = -(-np.diff(offsets) // length)
    rank = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = np.repeat(offsets[:-1], counts) + rank * length
    is_odd = rank % 2 == 1
    opens = np.ones(len(starts), dtype=np.bool_)
    opens[1:] = (is_odd[1:] != is_odd[:-1]) | (starts[1:] // length != starts[:-1] // length)
    return Blocks(np.append(starts[opens], offsets[-1]), is_odd[opens])


def stored_marginals(results: Results, n_positions: int) -> Array | None:
    """Return the marginals (N, K) of all positions that a run has found or stored; None if there are none."""
    if "marginals" not in results.memory:
        return None
    return stored(results.memory, "marginals", probabilities(), (n_positions, results.point.n_states))


class MeanField(Passes):
    """The stepper of `VI(cluster="state")`.

    Attributes
    ----------
    marginals : (N, K) those of all positions; None before the first iteration
    """

    in_place = True

    def __init__(self, problem: ChainProblem, algorithm: Batch, state: RunState) -> None:
        super().__init__(problem, algorithm)
        self.problem: ChainProblem = problem
        if not np.isfinite(problem.prior.chain.log_surrogate().transition).all():
            raise InputError(
                "VI(cluster='state') needs transitions that are all possible, but some are masked or fixed to zero: "
                "where neighbours are taken to be independent, every transition between their states has a weight. Use "
                "cluster='sequence', which keeps impossible transitions out."
            )
        found = stored_marginals(state.results, problem.structure.n_observations)
        self.marginals: Array | None = None if found is None else np.array(found)

    def step(self, state: RunState) -> Step:
        with self.interruption:  # marginals change in place: all of an iteration, or nothing
            return super().step(state)

    def report(
        self, prior: Posterior, statistics: Statistics, objective: float, previous: Point, events: list[str]
    ) -> Step:
        step = super().report(prior, statistics, objective, previous, events)
        assert isinstance(step.results, Known), "a pass knows what it has found"
        assert self.marginals is not None, "a pass leaves marginals"
        return step._replace(results=dataclasses.replace(step.results, memory={"marginals": self.marginals}))

    def trials(self, state: RunState, step: Step) -> MeanFieldTrials:
        return MeanFieldTrials(self, state, step)

    def expect(self, posterior: HMMPosterior | None, weights: HMMPoint) -> HMMStatistics:  # type: ignore[override]
        assert posterior is not None, "a surrogate of expected logarithms is that of a posterior"
        whole, surrogate = self.problem.structure.under(weights), weights.surrogate()
        engine = whole.engine
        if self.marginals is None:
            marginals = np.empty((whole.data.n_observations, surrogate.n_states))
            engine.smooth(surrogate, whole, WriteMarginals(marginals)).checked()
            self.marginals = marginals
        sweeps = BlockSweeps(Observed(surrogate, whole), posterior.chain.log_surrogate(), self.marginals)
        total = HMMStatistics.zeros(surrogate.n_states, surrogate.emission.zeros())
        with engine.running():
            for groups in sweeps.turns():
                for part in engine.map(sweeps.run, groups):
                    total.absorb(part)
        sweeps.finish(total)
        return total


class MeanFieldTrials(PassTrials):
    """As `PassTrials`, with the marginals of every trial."""

    passes: MeanField

    @contextmanager
    def open(self) -> Iterator[None]:
        self._before = self.passes.marginals
        with self.passes.interruption:
            yield

    def here(self) -> Trial:
        return self._with_marginals(super().here())

    def attempt(self, prior: Posterior, statistics: Statistics) -> Trial:
        self.passes.marginals = None  # those of the proposal's counts, to begin with
        return self._with_marginals(super().attempt(prior, statistics))

    def _with_marginals(self, trial: Trial) -> Trial:
        return trial._replace(state=self.passes.marginals)

    def adopt(self, trial: Trial, folded: list[tuple[int, int]]) -> Step:
        self.passes.marginals = trial.state
        return super().adopt(trial, folded)

    def stay(self) -> None:
        self.passes.marginals = self._before


class _Room:
    """Tables of one worker for the largest block, rows padded to `width`."""

    def __init__(self, blocks: Blocks, width: int) -> None:
        longest = int(np.diff(blocks.edges).max(initial=0))
        self.logs, self.before = aligned(longest, width), aligned(longest, width)
        self.marginals, self.scratch = aligned(longest + 2, width), aligned(ROOM, width)


class BlockSweeps:
    """Sweeps over all blocks under one surrogate.

    Parameters
    ----------
    observed : what observations and evidence say of the states
    logs : log weights of first states and transitions
    marginals : (N, K), changed in place
    """

    def __init__(self, observed: Observed, logs: ChainLaw, marginals: Array) -> None:
        self.observed = observed
        self.logs = logs
        self.weights = observed.part.weights
        self.marginals = marginals
        self.n_states = observed.surrogate.n_states
        self.width = int(padded(self.n_states))
        self.blocks = cut(self.data.offsets, max(BLOCK_VALUES // self.n_states, 1))
        self.moves, self.turned = self._padded(logs.transition), self._padded(logs.transition.T)
        self.first = self._padded(np.maximum(logs.initial, FORBIDDEN)[None])[0]

    @property
    def data(self) -> Sequences:
        return self.observed.data

    def _padded(self, table: Array) -> Array:
        out = aligned(len(table), self.width)
        out[:, : self.n_states], out[:, self.n_states :] = table, 0.0
        return np.asarray(out)

    def turns(self) -> list[list[Index]]:
        """Groups of blocks, first those of the even turn, then the others; fewer where each group's sums are large."""
        sums_bytes = sum(array.nbytes for array in self.observed.surrogate.emission.zeros().arrays().values())
        most = min(max(self.marginals.nbytes // (WORTH * max(sums_bytes, 1)), 2), MAX_GROUPS)
        turns = [np.flatnonzero(~self.blocks.is_odd), np.flatnonzero(self.blocks.is_odd)]
        return [np.array_split(blocks, min(most, len(blocks))) for blocks in turns if len(blocks)]

    def run(self, group: Index) -> HMMStatistics:
        """Sweep over some blocks; return their expected statistics, without transitions into their first positions."""
        room, emission = _Room(self.blocks, self.width), self.observed.surrogate.emission
        result = HMMStatistics.zeros(self.n_states, emission.zeros())
        for block in group.tolist():
            first, last = self.blocks.edges[block : block + 2].tolist()
            values, begins, gains = self._sweep(first, last, room)
            weights = self._weights(np.arange(first, last))
            marginals = self.marginals[first:last] if weights is None else self.marginals[first:last] * weights[:, None]
            result.log_normalizer += float(gains.sum() if weights is None else gains @ weights)
            result.chain.initial += marginals[begins[:-1]].sum(axis=0)
            follows = ~begins[1:-1, None]
            result.chain.pairs += (self.marginals[first : last - 1] * follows).T @ marginals[1:]
            emission.accumulate(values, np.ascontiguousarray(marginals.T), result.emission)
        return result

    def _sweep(self, first: int, last: int, room: _Room) -> tuple[NDArray[Any], NDArray[np.bool_], Array]:
        """Give the positions of a block new marginals; return their values, where chains begin, and their gains."""
        n, offsets = last - first, self.data.offsets
        begins = np.zeros(n + 1, dtype=np.bool_)
        sequences = slice(np.searchsorted(offsets, first, side="left"), np.searchsorted(offsets, last, side="right"))
        begins[offsets[sequences] - first] = True
        logs, before, marginals = room.logs[:n], room.before[:n], room.marginals[: n + 2]
        values, found = self.observed.log_likelihood(np.arange(first, last))
        logs[:, : self.n_states], logs[:, self.n_states :] = found, -np.inf
        low, high = max(first - 1, 0), min(last + 1, len(self.marginals))
        marginals[low - first + 1 : high - first + 1, : self.n_states] = self.marginals[low:high]
        gains = np.empty(n)
        sweep(logs, self.moves, self.turned, self.first, begins, self.n_states, marginals, before, room.scratch, gains)
        impossible = np.flatnonzero(gains == -np.inf)
        if len(impossible):
            sequence = int(np.searchsorted(offsets, first + impossible[0], side="right")) - 1
            raise impossible_error({sequence: int(first + impossible[0] - offsets[sequence])})
        self.marginals[first:last] = marginals[1 : n + 1, : self.n_states]
        return values, begins, gains

    def _weights(self, positions: Index) -> Array | None:
        """How often positions count."""
        if self.weights is None:
            return None
        return self.weights[np.searchsorted(self.data.offsets, positions, side="right") - 1]

    def finish(self, total: HMMStatistics) -> None:
        """Add the transitions between blocks and the value of all transitions: the bound but for the parameters."""
        at = self.blocks.edges[:-1][~np.isin(self.blocks.edges[:-1], self.data.offsets)]
        weights = self._weights(at)
        into = self.marginals[at] if weights is None else self.marginals[at] * weights[:, None]
        total.chain.pairs += self.marginals[at - 1].T @ into
        total.log_normalizer += float((total.pairs * self.logs.transition).sum())
        total.log_normalizer += float(total.initial @ np.maximum(self.logs.initial, FORBIDDEN))
        total.n_observations = self.observed.part.total_weight
