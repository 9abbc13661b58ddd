"""Exact messages of one tile: likelihoods in, filtered and smoothed marginals out.

This is where the family, the evidence and the propagation meet, a tile at a time, so that no table over the whole data
ever exists. Nothing here is shared between tiles: all that a tile finds is returned.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.borders import Borders, disagreement
from subchain.engines.cpu.cuts import Cuts
from subchain.engines.cpu.factored import kernels_of
from subchain.engines.cpu.partition import Partition, Tile
from subchain.engines.cpu.precision import DOUBLE
from subchain.engines.cpu.workspace import Workspace, empty_table
from subchain.engines.part import Observed, Part
from subchain.engines.surrogate import Surrogate
from subchain.propagation.layout import Walks
from subchain.propagation.underflow import LEAST_MARGINAL, LEAST_SCALE, Growth

if TYPE_CHECKING:
    from subchain.engines.cpu.single import Checks

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Told(NamedTuple):
    """What the pieces of a tile are told by their neighbours, (lanes, K) each; see `BorderMessages`."""

    before: Array
    after: Array


@dataclasses.dataclass
class Filtered:
    """Filtered messages of a tile: `alpha` (K, n), `scale` (n,), the likelihoods, and each lane's log likelihood."""

    tile: Tile
    values: NDArray[Any]
    likelihood: Array
    alpha: Array
    scale: Array
    shift: Array
    log_totals: Array
    lost: Growth | None

    @cached_property
    def positions(self) -> Index:
        """Flat position of the observation in each column."""
        return self.tile.positions


class Smoothed(NamedTuple):
    """Smoothed messages of a tile.

    Attributes
    ----------
    marginals : (K, n)
    weighted : (K, n) backward message of each position times its likelihood, divided by its normaliser
    """

    marginals: Array
    weighted: Array


class Messages(Observed):
    """Runs tiles of one part of the data under one surrogate, in double precision.

    `cuts` may remember how the data were cut for the pass before. With `checks`, passes that run in compiled calls are
    made in single precision where that is good enough, which they keep account of.
    """

    def __init__(
        self, surrogate: Surrogate, part: Part, cuts: Cuts | None = None, checks: Checks | None = None
    ) -> None:
        super().__init__(surrogate, part)
        self.cuts = Cuts() if cuts is None else cuts
        self.checks = checks
        self.operator = surrogate.transition
        self.kernels = kernels_of(surrogate.transition)

    @property
    def every_way(self) -> bool:
        """Whether nothing that is lost to underflow can matter later."""
        return self.kernels.every_way

    @cached_property
    def possible(self) -> NDArray[np.bool_]:
        """States (K,) that a chain can ever be in."""
        return self.kernels.possible(self.surrogate.initial)

    def workspace(self) -> Workspace:
        """Return tables for one worker."""
        return Workspace()

    def table(self, columns: int) -> Array:
        """Return a fresh table with a row for each state, undefined."""
        return empty_table(self.surrogate.n_states, columns)

    # ---- one tile ----------------------------------------------------------------------------------------------------

    def run(
        self, tile: Tile, cut: Partition, told: Told | None, space: Workspace, *, smooth: bool
    ) -> tuple[Filtered, Smoothed | None]:
        """Filtered marginals of all positions of the tile, and smoothed ones if they are wanted.

        `told` are the messages at the pieces' borders; None where no chain was cut.
        """
        n_states, columns = self.surrogate.n_states, tile.columns
        likelihood, alpha = (space.table(name, n_states, columns) for name in ("likelihood", "alpha"))
        scale, totals = space.table("scale", 1, columns)[0], np.empty(tile.lanes)
        values, shift = self.likelihood(tile.positions, likelihood)
        start = self._start(tile, cut, told)
        filtered = Filtered(tile, values, likelihood, alpha, scale, shift, totals, None)
        if not smooth or not self.every_way:
            self.kernels.forward(likelihood, start, tile.offsets, alpha, scale)
            self.kernels.log_totals(scale, shift, tile.offsets, totals)
        if not self.every_way:
            filtered.lost = self._lost(filtered, start, cut, is_cut=told is not None)
        smoothed = self._smooth(filtered, start, cut, told, space) if smooth else None
        if self.every_way and not scale.min() >= LEAST_SCALE:
            filtered.lost = self._lost(filtered, start, cut, is_cut=False)  # looks at nothing but the normalisers
        return filtered, smoothed

    def _start(self, tile: Tile, cut: Partition, told: Told | None) -> Array:
        """Weights of the states of each lane's first position, before its observation is seen."""
        start = np.empty((self.surrogate.n_states, tile.lanes))
        start[:] = self.surrogate.initial[:, None]
        if told is not None:
            inner = ~cut.is_first[tile.pieces]
            start[:, inner] = self.operator.apply(told.before[inner].T)
        return start

    def _smooth(
        self, filtered: Filtered, start: Array, cut: Partition, told: Told | None, space: Workspace
    ) -> Smoothed:
        """Smoothed marginals, and filtered ones if that was not done before; the table of likelihoods is used up."""
        tile, weighted = filtered.tile, filtered.likelihood
        marginals = space.table("marginals", self.surrogate.n_states, tile.columns)
        stop = np.ones((self.surrogate.n_states, tile.lanes))
        if told is not None:
            inner = ~cut.is_last[tile.pieces]
            stop[:, inner] = told.after[inner].T
        alpha, scale, offsets = filtered.alpha, filtered.scale, tile.offsets
        if self.every_way:
            self.kernels.forward_backward(
                weighted, start, stop, offsets, filtered.shift, alpha, scale, marginals, filtered.log_totals
            )  # fmt: skip
        else:
            self.kernels.backward(weighted, stop, offsets, alpha, scale, marginals)
        if told is not None:
            last = tile.last_columns
            meeting = (alpha[:, last] * stop).sum(axis=0) * scale[last]
            filtered.log_totals[~(meeting >= LEAST_MARGINAL)] = np.nan
        return Smoothed(marginals, weighted)

    def _lost(self, filtered: Filtered, start: Array, cut: Partition, is_cut: bool) -> Growth:
        """What the tile's lanes may have lost to underflow."""
        tile, follows = filtered.tile, None
        if is_cut:
            # what underflowed before the piece is not in its start: count every state that the chain can have reached
            start = start + LEAST_MARGINAL * self.possible[:, None]
            follows = ~cut.is_first[tile.pieces]
        walks = Walks(tile.lengths, np.arange(tile.lanes), tile.offsets, tile.starts)
        return self.kernels.growth(filtered.likelihood, start, walks, filtered.alpha, filtered.scale, follows)

    # ---- borders -----------------------------------------------------------------------------------------------------

    def told(
        self, tile: Tile, cut: Partition, borders: Borders, lead: int | None, space: Workspace, *, smooth: bool
    ) -> Told:
        """The messages at the borders of a tile's pieces; those not known yet are estimated.

        Estimates come from the `lead` positions beyond the borders. Those after the pieces are worth it for smoothed
        marginals only.
        """
        told = Told(borders.messages.before[tile.pieces], borders.messages.after[tile.pieces])
        todo = np.flatnonzero(~borders.known[tile.pieces])
        if lead is None or not len(todo):
            return told
        pieces = tile.pieces
        earlier = todo[~cut.is_first[pieces[todo]]]
        later = todo[~cut.is_last[pieces[todo]]] if smooth else todo[:0]
        begins, ends = cut.start[pieces[earlier]] - lead, cut.start[pieces[later]] + cut.length[pieces[later]]
        starts = np.concatenate((begins, ends))
        if not len(starts):
            return told
        n_states, count = self.surrogate.n_states, len(starts)
        likelihood = space.table("likelihood", n_states, lead * count)
        self.likelihood((starts + np.arange(lead)[:, None]).ravel(), likelihood)
        flat = np.full((n_states, count), 1.0 / n_states)
        stop = flat if len(later) else flat[:, :0]
        last, before, offsets = np.empty_like(flat), np.empty_like(flat), np.arange(lead + 1) * count
        self.kernels.approach(likelihood, flat, stop, offsets, last, before)
        told.before[earlier] = last[:, : len(earlier)].T
        told.after[later] = before[:, len(earlier) :].T
        return told

    def before_first(self, smoothed: Smoothed, lanes: int) -> Array:
        """Backward messages (lanes, K) of the positions before the lanes, each summing to one."""
        message = self.operator.apply_transposed(smoothed.weighted[:, :lanes])
        total = message.sum(axis=0)
        return np.asarray((message / np.where(total > 0.0, total, 1.0)).T)

    def sweep_forward(self, pieces: Index, cut: Partition, alpha: Array | None = None) -> Array:
        """Exact marginals (n, K) before each of the n consecutive pieces of one sequence, by one pass from its start.

        For a stretch of a sequence, `alpha` (K,) is the filtered marginal of the position before it. The row of the
        first piece is undefined.
        """
        begins = alpha is None
        alpha = self.surrogate.initial.copy() if alpha is None else alpha.copy()
        before = np.empty((len(pieces), len(alpha)))
        for i, piece in enumerate(pieces[:-1]):
            likelihood = self._rows(cut, piece)
            if i == 0 and begins:
                alpha *= likelihood[0]
                total = alpha.sum()
                alpha /= total if total > 0.0 else 1.0
                likelihood = likelihood[1:]
            self.kernels.advance_row(likelihood, alpha)
            before[i + 1] = alpha
        return before

    def sweep_backward(self, pieces: Index, cut: Partition, beta: Array | None = None) -> Array:
        """Exact backward messages (n, K) at the end of each of the n consecutive pieces of one sequence.

        For a stretch of a sequence, `beta` (K,) is the message of its last position. The row of the last piece is
        undefined.
        """
        beta = np.full(self.surrogate.n_states, 1.0 / self.surrogate.n_states) if beta is None else beta.copy()
        after = np.empty((len(pieces), len(beta)))
        for i in range(len(pieces) - 1, 0, -1):
            self.kernels.recede_row(self._rows(cut, pieces[i]), beta)
            after[i - 1] = beta
        return after

    def _rows(self, cut: Partition, piece: int) -> Array:
        positions = cut.start[piece] + np.arange(cut.length[piece])
        likelihood = self.table(len(positions))
        self.likelihood(positions, likelihood)
        return np.ascontiguousarray(likelihood.T)

    # ---- mixing ------------------------------------------------------------------------------------------------------

    def mixing_time(self, starts: Index, steps: int, rounding: float = DOUBLE.rounding) -> int | None:
        """Steps after which two opposite starts, at each of the given positions, have come to the same marginals.

        The marginals are the same if they agree to rounding. None where `steps` are not enough.
        """
        first, second = self._opposite(starts, steps)
        apart = np.any(disagreement(first, second) > rounding * (8 + self.surrogate.n_states), axis=1)
        if apart[-1]:
            return None
        return int(np.flatnonzero(apart)[-1]) + 1 if apart.any() else 0

    def distances(self, starts: Index, steps: int) -> Array:
        """Total variation (steps, n) between two opposite starts at each of n positions; see `Engine.distances`."""
        first, second = self._opposite(starts, steps)
        return np.asarray(0.5 * np.abs(first - second).sum(axis=2))

    def _opposite(self, starts: Index, steps: int) -> list[Array]:
        """Filtered marginals (steps, n, K) from the given positions on, from a uniform and a leaning start."""
        n_states, count = self.surrogate.n_states, len(starts)
        offsets = np.arange(steps + 1) * count
        likelihood = self.table(steps * count)
        self.likelihood((starts + np.arange(steps)[:, None]).ravel(), likelihood)
        lean = np.full((n_states, count), 0.1 / n_states)
        lean[np.arange(count) % n_states, np.arange(count)] += 0.9
        ends = []
        for start in (np.full((n_states, count), 1.0 / n_states), lean):
            alpha, scale = np.empty_like(likelihood), np.empty(steps * count)
            self.kernels.forward(likelihood, start, offsets, alpha, scale)
            ends.append(alpha.T.reshape(steps, count, n_states))
        return ends
