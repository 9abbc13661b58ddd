"""A Markov chain of hidden states in which states are born and die: beam sampling (Van Gael et al. 2008).

Top weights and concentrations are part of the chain. A sweep draws the rows of transitions given the counts, a slice
for every transition, as many further states as the slices may reach, parameters of all emissions, and then all paths at
once. Unused states are dropped, the others sorted by use, and the top level is drawn anew (`drawn_hierarchy.py`).

Where something is known of the states, they have names, and there are exactly n_states of them. None is then forgotten
or reordered.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory, Point
from subchain.emissions.base import Parameters
from subchain.emissions.categorical import CategoricalParameters, as_symbols
from subchain.emissions.frozen import Frozen
from subchain.errors import InputError
from subchain.propagation.beam import Likelihoods, Reached, draw_slices, nothing_reached, rank, reach, walk_back
from subchain.structures.base import Moved
from subchain.structures.chain.model import HMMPosterior
from subchain.structures.chain.sampling.drawn_hierarchy import Hyperprior, Top, draw_rows, extend, redraw
from subchain.structures.chain.sampling.joint import emission_sums
from subchain.structures.chain.sampling.walkers import SMALL, PathWalker, Setting, States
from subchain.transitions.dirichlet import DirichletChain, DirichletRows
from subchain.transitions.hdp.hierarchy import Hierarchy
from subchain.transitions.initial import LearnedInitial

Array = NDArray[np.float64]

#: States that are broken off at a time.
AT_A_TIME = 8
#: States of which there will never be more.
MANY = 1 << 16
#: Positions whose marginals are worked out at a time, and numbers in a table of their likelihoods.
PIECE, PIECE_VALUES = 1 << 14, 1 << 20


def needed_hierarchy(chain: Any) -> Hierarchy:
    """The settings of a hierarchical prior over transitions."""
    found = getattr(chain, "hierarchy", None)
    if not isinstance(found, Hierarchy):
        raise InputError(
            "Beam draws how many states there are, for which it needs transition=HDP(...), not frozen; for a fixed "
            "number of states use Gibbs."
        )
    return found


def prior_given(prior: HMMPosterior, top: Top) -> HMMPosterior:
    """The prior of as many states as there are, given what is above them; other states are left out."""
    rows = top.rows()[:, :-1]
    chain = DirichletChain(LearnedInitial(rows[-1]), DirichletRows(rows[:-1], np.zeros_like(rows[:-1])))
    return HMMPosterior(chain, _of_size(prior.emission, top.n_states))


def _of_size(emission: Any, n_states: int) -> Any:
    """The emissions' prior, which is that of every state, for so many states."""
    known = emission.mean().n_states
    return emission if known == n_states else emission.take(np.zeros(n_states, dtype=np.int64))


def check_exchangeable(emission: Any) -> None:
    """Raise an `InputError` unless new states have the same prior as old ones."""
    first = emission.take(np.zeros(emission.mean().n_states, dtype=np.int64)).arrays()
    differ = any(not np.array_equal(array, first[name]) for name, array in emission.arrays().items())
    if differ or isinstance(emission, Frozen):
        raise InputError(
            "Beam: states come and go, so that what they emit needs the same prior in all of them; give one prior for "
            "all states, and freeze none."
        )


class BeamWalker(PathWalker):
    """Whole paths, states without end.

    Parameters
    ----------
    setting, number, states : as for every walker
    n_all : number of all states, in use or not; infinity if there is no end
    shape, rate : of the Gamma prior of concentrations that are learned
    """

    def __init__(self, setting: Setting, number: int, states: States, n_all: float, shape: float, rate: float) -> None:
        super().__init__(setting, number, states)
        hierarchy = needed_hierarchy(self.prior.chain)
        self.named = setting.chains.evidence is not None
        self.hyperprior = Hyperprior(hierarchy.learns_concentration, hierarchy.learns_top_concentration, shape, rate)
        n_states = setting.reference.n_states
        n_all = n_states if self.named else n_all
        rest = 0.0 if n_all == n_states else 1.0 / (n_states + 1.0)
        self.top = Top(
            np.full(n_states, (1.0 - rest) / n_states), rest, float(n_all), hierarchy.concentration,
            hierarchy.top_concentration, hierarchy.stickiness,
        )  # fmt: skip
        self.begins = np.zeros(len(self.states) + 1, dtype=np.bool_)
        self.begins[self.data.offsets] = True

    # ---- between sweeps ----------------------------------------------------------------------------------------------

    def begin(self, point: Point) -> None:
        super().begin(point)
        self._settle(self.top, 0)

    def restore(self, memory: Memory) -> None:
        self.top = self.top.restored(memory, f"top.{self.number}")
        self._adopt()
        super().restore(memory)

    def memory(self) -> Memory:
        top = self.top
        return super().memory() | {f"top.{self.number}": np.append(top.weights, top[1:])}

    @property
    def most_states(self) -> int:
        return MANY if math.isinf(self.top.n_all) else int(self.top.n_all)

    def summary(self, visits: Array) -> dict[str, Any]:
        found: dict[str, Any] = {"n_used": np.count_nonzero(visits)} if self.named else {"n_states": len(visits)}
        if self.hyperprior.learns_concentration:
            found["concentration"] = self.top.concentration
        if self.hyperprior.learns_top_concentration:
            found["top_concentration"] = self.top.top_concentration
        return found | {"top": self.top.weights}

    def measures(self) -> dict[str, float]:
        used = float(np.count_nonzero(np.bincount(self.states)))
        if self.named or math.isinf(self.top.n_all):
            return {"n_states": used}
        return {"n_states": used, "states_left": self.top.n_all - used}

    def log_joint(self) -> float:
        """Log probability of observations and states given the top, rows and emissions being summed out."""
        return self.top.log_evidence(self.counts()) + self.log_joint_of_emissions() + self._log_evidence()

    def counts(self) -> Array:
        """Counts of transitions (K + 1, K), those of first states in row K."""
        initial, pairs = self.moves()
        return np.vstack((pairs, initial))

    def _settle(self, top: Top, sweep: int) -> None:
        """Drop unused states, sort the others by use, and draw the top level given the counts.

        `sweep` is the number of sweeps that have been done.
        """
        if not self.named and len(self.states):
            visits = np.bincount(self.states, minlength=top.n_states)
            n_used = np.count_nonzero(visits)
            order = np.argsort(-visits, kind="stable")
            self.states = np.argsort(order).astype(np.int32)[self.states]
            weights = top.weights[order]
            top = top._replace(weights=weights[:n_used], rest=top.rest + float(weights[n_used:].sum()))
        self.top = top
        self._adopt()
        if len(self.states):
            rng, first = self.setting.rng(self.number, sweep, 8), 2 * len(self.states)
            self.top = redraw(top, self.counts(), self.hyperprior, self.key, sweep, first, rng)
            self._adopt()

    def _adopt(self) -> None:
        """Take the prior of the states that there are."""
        self.prior = prior_given(self.setting.prior, self.top)
        self.reference = self.prior.emission.mean()

    # ---- a sweep -----------------------------------------------------------------------------------------------------

    def sweep(self, sweep: int, temperature: float) -> Moved:
        rng = self.setting.rng(self.number, sweep, 7)
        top, rows = self.top, draw_rows(self.top, self.counts(), rng)
        slices = np.empty(len(self.states))
        least = draw_slices(rows.moves, self.states, self.begins, self.key, sweep, slices)
        while rows.leftover.max() >= least and top.n_states < top.n_all:
            top, rows = extend(top, rows, AT_A_TIME, rng)
        emission = self._draw_parameters(top, temperature, rng)
        old = self.states
        self.states = self._draw_paths(rows.moves, slices, emission, temperature, sweep)
        changed = float(np.mean(self.states != old)) if len(old) else 0.0
        if self.setting.has_incomplete_rows:
            self._fill(emission, sweep)
        self._settle(top, sweep + 1)
        return Moved(changed)

    def _draw_parameters(self, top: Top, temperature: float, rng: np.random.Generator) -> Parameters:
        """Emission parameters of all states, unused ones included."""
        prior = _of_size(self.setting.prior.emission, top.n_states)
        sums = emission_sums(prior.mean(), self.values, self.states)
        found: Parameters = prior.update(sums if temperature == 1.0 else sums.scale(1.0 / temperature)).sample(rng)
        return found

    # ---- paths -------------------------------------------------------------------------------------------------------

    def _draw_paths(self, moves: Array, slices: Array, emission: Parameters, temperature: float, sweep: int) -> States:
        """All states anew, sequences side by side on all cores; those without a possible path keep theirs."""
        states, ranked, tables = self.states.copy(), rank(moves), _Tables(self, emission, temperature)

        def draw(pieces: list[tuple[int, int]]) -> None:
            before, possible = nothing_reached(), True
            filtered: list[tuple[int, Reached]] = []
            for first, last in pieces:
                if possible:
                    table, rows = tables.of(first, last)
                    before, possible = reach(ranked, slices, self.begins, table, rows, first, before)
                    filtered.append((first, before))
            for start, reached in reversed(filtered if possible else []):
                walk_back(moves, slices, self.begins, reached, self.key, sweep, start, states)

        parts = self._parts(emission.n_states)
        if len(states) < SMALL:
            for part in parts:
                draw(part)
        else:
            self.setting.chains.engine.map(draw, parts)
        return states

    def _parts(self, n_states: int) -> list[list[tuple[int, int]]]:
        """Neighbouring positions that are filtered at a time: whole sequences, or all pieces of a long one."""
        size, found, first = max(min(PIECE, PIECE_VALUES // n_states), 1), [], 0
        ends, pieces = self.data.offsets[1:], []
        while first < len(self.states):
            last = int(ends[np.searchsorted(ends, first + size, side="right") - 1])
            last = last if last > first else min(first + size, len(self.states))
            pieces.append((first, last))
            if self.begins[last]:
                found.append(pieces)
                pieces = []
            first = last
        return found


class _Tables:
    """Likelihoods of a sweep: one table of symbols for all positions, or one of positions for each piece."""

    def __init__(self, walker: BeamWalker, emission: Parameters, temperature: float) -> None:
        self.data, self.evidence = walker.data, walker.setting.chains.evidence
        self.emission, self.power = emission, 1.0 / temperature
        self.table: Likelihoods | None = None
        if type(emission) is CategoricalParameters and self.evidence is None:
            self.symbols = as_symbols(np.asarray(self.data.values))
            with np.errstate(divide="ignore"):
                logs = self.power * np.log(emission.weights)
            self.table = _likelihoods(np.vstack((logs, np.zeros(emission.n_states))))

    def of(self, first: int, last: int) -> tuple[Likelihoods, NDArray[np.int64]]:
        """A table, and the row of each position; missing symbols have the last, by their code −1."""
        if self.table is not None:
            return self.table, self.symbols[first:last]
        values, index = np.asarray(self.data.values[first:last]), np.arange(first, last)
        logs = self.power * self.emission.log_likelihood(values)
        if self.evidence is not None:
            logs = logs + self.evidence.log_weights(index, values)
        return _likelihoods(np.ascontiguousarray(logs.T)), np.arange(last - first)


def _likelihoods(logs: Array) -> Likelihoods:
    largest = logs.max(axis=1, keepdims=True)
    largest[np.isneginf(largest)] = 0.0
    return Likelihoods(logs - largest, np.exp(logs - largest))
