"""Gibbs sampling with the parameters summed out: one state, or one sequence, at a time given all others.

The kernels are those of collapsed variational inference with drawn states instead of marginals. A family without
compiled counts is drawn in Python, with predictive likelihoods in a table; this is slow, and for small data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory, Point
from subchain.emissions.collapsed.counts import EmissionCounts, TabledLogs
from subchain.propagation.collapsed import drawn_pieces  # noqa: F401  (implements the steps of `visit_pieces`)
from subchain.propagation.collapsed.drawn_states import DrawnStates
from subchain.propagation.collapsed.pieces import How, Pieces, visit_pieces
from subchain.propagation.collapsed.rows import Rows, put_in_path, take_out_path
from subchain.propagation.collapsed.states import Ends, visit_states
from subchain.propagation.verbs import kernel_for
from subchain.structures.base import Moved
from subchain.structures.chain.sampling.joint import emission_sums, log_joint_of_emissions
from subchain.structures.chain.sampling.walkers import Setting, States, Walker
from subchain.transitions.base import ChainSums

Array = NDArray[np.float64]

IN_PLACE, ELSEWHERE = How(excludes=True, puts_back=True), How(excludes=True, puts_back=False)


class CollapsedWalker(Walker):
    """What both kinds have in common: counts that go with the states.

    Attributes
    ----------
    rows, emission : counts of transitions and of emissions, the latter None for families that have none
    """

    rows: Rows
    emission: EmissionCounts | None

    def __init__(self, setting: Setting, number: int, states: States) -> None:
        super().__init__(setting, number, states)
        self._row = np.zeros(len(self.states), dtype=np.int64)

    def begin(self, point: Point) -> None:
        super().begin(point)
        self._count()

    def restore(self, memory: Memory) -> None:
        super().restore(memory)
        self._count()

    def _count(self) -> None:
        """Count everything anew."""
        self.rows = self.prior.chain.incremental(ChainSums(*self.moves())).counts()
        self.emission = self.prior.emission.counts(super().sums(), self.values)

    def _prepare(self, sweep: int) -> None:
        """Draw coordinates that are missing; sums of real numbers are summed anew so that rounding does not add up."""
        if self.setting.has_incomplete_rows:
            self._fill(self.draw_emission(self.statistics(), sweep), sweep)
        if self.setting.has_incomplete_rows or self.emission is None or not self.emission.is_exact:
            self._count()

    def _drawn(self, sweep: int, temperature: float, proposal: States | None = None) -> DrawnStates:
        """The states for kernels."""
        new = self.states if proposal is None else proposal
        return DrawnStates(self.states, new, self.setting.legal_lists, self.key, sweep, 1.0 / temperature)

    def sums(self) -> Any:
        """The family's sums; those of real numbers are summed anew, so that resumed runs have the same bits."""
        found = self.emission.sums() if self.emission is not None and self.emission.is_exact else None
        return super().sums() if found is None else found

    def log_joint_of_emissions(self) -> float:
        known = None if self.emission is None else self.emission.log_evidence(self.prior.emission)
        return super().log_joint_of_emissions() if known is None else known


class StateWalker(CollapsedWalker):
    """One state at a time."""

    def __init__(self, setting: Setting, number: int, states: States) -> None:
        super().__init__(setting, number, states)
        filled = self.data.offsets[:-1] < self.data.offsets[1:]
        is_first, is_last = np.zeros((2, len(self.states)), dtype=np.bool_)
        is_first[self.data.offsets[:-1][filled]] = is_last[self.data.offsets[1:][filled] - 1] = True
        self.ends, self.order = Ends(is_first, is_last), np.arange(len(self.states))

    def sweep(self, sweep: int, temperature: float) -> Moved:
        self._prepare(sweep)
        drawn, since = self._drawn(sweep, temperature), np.zeros(2)
        if self.emission is not None:
            visit = kernel_for(visit_states, self.emission.kernel)
            visit(drawn, self.order, self.ends, self.rows, self.emission.kernel, IN_PLACE, since)
        else:
            self._sweep_in_python(drawn, since)
        return Moved(float(since[0]) / max(len(self.states), 1))

    def _sweep_in_python(self, drawn: DrawnStates, since: Array) -> None:
        sums = super(CollapsedWalker, self).sums()
        for position in self.order.tolist():
            here = slice(position, position + 1)
            own, old = emission_sums(self.reference, self.values[here], self.states[here]), self.states[position]
            rest = sums - own
            logs = self.prior.emission.update(rest).predictive().log_likelihood(self.values[here])
            tabled = TabledLogs(np.ascontiguousarray(logs.T), self._row)
            visit_states(drawn, self.order[here], self.ends, self.rows, tabled, IN_PLACE, since)
            if self.states[position] != old:
                sums = rest + emission_sums(self.reference, self.values[here], self.states[here])


class SequenceWalker(CollapsedWalker):
    """One sequence at a time, proposed from the predictive model and accepted or refused."""

    def __init__(self, setting: Setting, number: int, states: States) -> None:
        super().__init__(setting, number, states)
        filled = np.flatnonzero(self.data.lengths)
        starts, always = self.data.offsets[filled], np.ones(len(filled), dtype=np.bool_)
        stops = starts + self.data.lengths[filled]
        #: `share_of` is the number of the sequence, which decides on the random number that accepts.
        self.pieces = Pieces(starts, stops, always, always, filled, np.empty(0), len(filled))

    def sweep(self, sweep: int, temperature: float) -> Moved:
        self._prepare(sweep)
        since, n_sequences = np.zeros(2), len(self.pieces.starts)
        if self.emission is not None:
            drawn, order = self._drawn(sweep, temperature), np.arange(n_sequences)
            visit = kernel_for(visit_pieces, self.emission.kernel)
            visit(drawn, order, self.pieces, self.rows, self.emission.kernel, IN_PLACE, since)
        else:
            self._sweep_in_python(sweep, temperature, since)
        return Moved(float(since[0]) / max(len(self.states), 1), float(since[1]) / max(n_sequences, 1))

    def _sweep_in_python(self, sweep: int, temperature: float, since: Array) -> None:
        sums, proposal, found = super(CollapsedWalker, self).sums(), self.states.copy(), np.zeros(2)
        drawn = self._drawn(sweep, temperature, proposal)
        for number in range(len(self.pieces.starts)):
            here = slice(int(self.pieces.starts[number]), int(self.pieces.stops[number]))
            values, old = np.asarray(self.values[here]), self.states[here].astype(np.int64)
            rest = sums - emission_sums(self.reference, values, old)
            others = self.prior.emission.update(rest)
            logs = np.ascontiguousarray(others.predictive().log_likelihood(values).T)
            self._row[here] = np.arange(len(old))
            order = np.array([number])
            visit_pieces(drawn, order, self.pieces, self.rows, TabledLogs(logs, self._row), ELSEWHERE, found)
            new = proposal[here].astype(np.int64)
            if np.isnan(found[0]):
                continue
            fresh = emission_sums(self.reference, values, new)
            gain = _surplus(others, fresh, values, new, logs) - _surplus(others, sums - rest, values, old, logs)
            if (old == new).all() or found[1] < (found[0] + gain) / temperature:
                take_out_path(self.rows, old)
                put_in_path(self.rows, new)
                since += (old != new).sum(), 1.0
                self.states[here], sums = new, rest + fresh


def _surplus(others: Any, sums: Any, values: NDArray[Any], path: NDArray[np.int64], logs: Array) -> float:
    """Log probability of a sequence's observations given all others, less what independent predictions make of it."""
    return log_joint_of_emissions(others, sums, values, path) - float(logs[np.arange(len(path)), path].sum())
