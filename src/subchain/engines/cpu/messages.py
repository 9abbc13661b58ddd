"""Exact messages of one tile: likelihoods in, filtered and smoothed marginals out.

This is where the family, the evidence and the propagation meet, a tile at a time, so that no table over the whole data
ever exists.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.data.evidence import Evidence
from subchain.data.sequences import Sequences
from subchain.emissions.scaling import exponentiate_in_place
from subchain.engines.cpu.borders import Borders, disagreement
from subchain.engines.cpu.partition import MANY_STATES, Partition, Tile
from subchain.engines.surrogate import Surrogate
from subchain.numerics.vectors import aligned
from subchain.propagation import serial
from subchain.propagation.lanes import products
from subchain.propagation.lanes import recursions as lanes
from subchain.propagation.layout import Walks
from subchain.propagation.underflow import LEAST_MARGINAL, LEAST_SCALE, Growth, covering, growth, reachable

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Bytes of tables that are kept for the next worker.
KEPT_BYTES = 32 << 20


class Workspace:
    """Tables that a worker uses again for every tile and leaves to the next worker, since fresh memory is slow."""

    _spare: ClassVar[list[dict[str, Array]]] = []

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = self._spare.pop() if self._spare else {}

    def __del__(self) -> None:
        if sum(buffer.nbytes for buffer in self._buffers.values()) <= KEPT_BYTES:
            self._spare.append(self._buffers)

    def table(self, name: str, rows: int, columns: int) -> Array:
        """A contiguous (rows, columns) table that begins at a cache line; it holds whatever was there before."""
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < rows * columns:
            buffer = self._buffers[name] = aligned(1, rows * columns)[0]
        return buffer[: rows * columns].reshape(rows, columns)


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

    @property
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


class Messages:
    """Runs tiles of one data set under one surrogate."""

    def __init__(self, surrogate: Surrogate, data: Sequences, evidence: Evidence | None) -> None:
        self.surrogate = surrogate
        self.data = data
        self.evidence = evidence
        self.transition = np.ascontiguousarray(surrogate.transition)
        self.transposed = np.ascontiguousarray(surrogate.transition.T)
        self.covers = covering(self.transition)
        #: Whether nothing that is lost to underflow can matter later.
        self.every_way = bool(self.covers.all())
        self.kernels = lanes if surrogate.n_states < MANY_STATES else products

    # ---- likelihoods -------------------------------------------------------------------------------------------------

    def likelihood(self, positions: Index, out: Array) -> tuple[NDArray[Any], Array]:
        """Scaled likelihoods of the given positions into `out`; return their values and the logs of their scales."""
        values = np.take(self.data.values, positions, axis=0, mode="clip")  # no position is out of range
        if self.evidence is None:
            return values, self.surrogate.emission.scaled(values, out)
        logs = self.surrogate.emission.log_likelihood(values)
        logs += self.evidence.log_weights(positions, values)
        np.copyto(out, logs)
        return values, exponentiate_in_place(out)

    def log_likelihood(self, positions: Index) -> tuple[NDArray[Any], Array]:
        """Log likelihoods (n, K) of the given positions, evidence included, and the values."""
        values = np.take(self.data.values, positions, axis=0)
        logs = self.surrogate.emission.log_likelihood(values)
        if self.evidence is not None:
            logs = logs + self.evidence.log_weights(positions, values)
        return values, np.ascontiguousarray(logs.T)

    # ---- one tile ----------------------------------------------------------------------------------------------------

    def run(
        self, tile: Tile, cut: Partition, borders: Borders | None, space: Workspace, *, smooth: bool
    ) -> tuple[Filtered, Smoothed | None]:
        """Filtered marginals of all positions of the tile, and smoothed ones if they are wanted."""
        n_states, columns = self.surrogate.n_states, tile.columns
        likelihood, alpha = (space.table(name, n_states, columns) for name in ("likelihood", "alpha"))
        scale, totals = space.table("scale", 1, columns)[0], np.empty(tile.lanes)
        values, shift = self.likelihood(tile.positions, likelihood)
        start = self._start(tile, cut, borders)
        filtered = Filtered(tile, values, likelihood, alpha, scale, shift, totals, None)
        if not smooth or not self.every_way:
            self.kernels.forward(likelihood, self.transition, start, tile.offsets, alpha, scale)
            self.kernels.log_totals(scale, shift, tile.offsets, totals)
        if not self.every_way:
            filtered.lost = self._lost(filtered, start, cut, is_cut=borders is not None)
        smoothed = self._smooth(filtered, start, cut, borders, space) if smooth else None
        if self.every_way and not scale.min() >= LEAST_SCALE:
            filtered.lost = self._lost(filtered, start, cut, is_cut=False)  # looks at nothing but the normalisers
        if borders is not None:
            borders.last[tile.pieces] = alpha[:, tile.last_columns].T
        return filtered, smoothed

    def _start(self, tile: Tile, cut: Partition, borders: Borders | None) -> Array:
        """Weights of the states of each lane's first position, before its observation is seen."""
        start = np.empty((self.surrogate.n_states, tile.lanes))
        start[:] = self.surrogate.initial[:, None]
        if borders is not None:
            inner = ~cut.is_first[tile.pieces]
            start[:, inner] = self.transposed @ borders.before[tile.pieces[inner]].T
        return start

    def _smooth(
        self, filtered: Filtered, start: Array, cut: Partition, borders: Borders | None, space: Workspace
    ) -> Smoothed:
        """Smoothed marginals, and filtered ones if that was not done before; the table of likelihoods is used up."""
        tile, weighted = filtered.tile, filtered.likelihood
        marginals = space.table("marginals", self.surrogate.n_states, tile.columns)
        stop = np.ones((self.surrogate.n_states, tile.lanes))
        if borders is not None:
            inner = ~cut.is_last[tile.pieces]
            stop[:, inner] = borders.after[tile.pieces[inner]].T
        alpha, scale, offsets = filtered.alpha, filtered.scale, tile.offsets
        if self.every_way:
            self.kernels.forward_backward(
                weighted, self.transition, self.transposed, start, stop, offsets, filtered.shift, alpha, scale,
                marginals, filtered.log_totals,
            )  # fmt: skip
        else:
            self.kernels.backward(weighted, self.transposed, stop, offsets, alpha, scale, marginals)
        if borders is not None:
            meeting = (alpha[:, tile.last_columns] * stop).sum(axis=0)
            filtered.log_totals[~(meeting >= LEAST_MARGINAL)] = np.nan
            message = self.transition @ weighted[:, : tile.lanes]
            total = message.sum(axis=0)
            borders.first[tile.pieces] = (message / np.where(total > 0.0, total, 1.0)).T
        return Smoothed(marginals, weighted)

    def _lost(self, filtered: Filtered, start: Array, cut: Partition, is_cut: bool) -> Growth:
        """What the tile's lanes may have lost to underflow."""
        tile, follows = filtered.tile, None
        if is_cut:
            # what underflowed before the piece is not in its start: count every state that the chain can have reached
            reach = reachable(self.transition)
            possible = np.any(reach[self.surrogate.initial > 0.0], axis=0, keepdims=True)
            start = start + LEAST_MARGINAL * possible.T
            follows = ~cut.is_first[tile.pieces]
        walks = Walks(tile.lengths, np.arange(tile.lanes), tile.offsets, tile.starts)
        return growth(
            filtered.likelihood, start, self.transition, self.covers, walks, filtered.alpha, filtered.scale, follows
        )

    # ---- borders -----------------------------------------------------------------------------------------------------

    def forgetting_time(self, starts: Index, steps: int) -> int | None:
        """Steps after which two opposite marginals, started at each of the given positions, have become one.

        None where `steps` are not enough.
        """
        first, second = self._opposite(starts, steps)
        apart = np.any(disagreement(first, second) > 1e-15 * (8 + self.surrogate.n_states), axis=1)
        if apart[-1]:
            return None
        return int(np.flatnonzero(apart)[-1]) + 1 if apart.any() else 0

    def apart(self, starts: Index, steps: int) -> Array:
        """Total variation, after each of so many steps, between two opposite marginals started at each position.

        Returns (steps, len(starts)).
        """
        first, second = self._opposite(starts, steps)
        return np.asarray(0.5 * np.abs(first - second).sum(axis=2))

    def _opposite(self, starts: Index, steps: int) -> list[Array]:
        """Filtered marginals (steps, len(starts), K) from the given positions on, from a flat and a leaning start."""
        n_states, count = self.surrogate.n_states, len(starts)
        offsets = np.arange(steps + 1) * count
        likelihood = np.empty((n_states, steps * count))
        self.likelihood((starts + np.arange(steps)[:, None]).ravel(), likelihood)
        lean = np.ascontiguousarray(0.9 * np.eye(n_states)[:, np.arange(count) % n_states] + 0.1 / n_states)
        ends = []
        for start in (np.full((n_states, count), 1.0 / n_states), lean):
            alpha, scale = np.empty_like(likelihood), np.empty(steps * count)
            self.kernels.forward(likelihood, self.transition, start, offsets, alpha, scale)
            ends.append(alpha.T.reshape(steps, count, n_states))
        return ends

    def warm_up(
        self, tile: Tile, cut: Partition, borders: Borders, steps: int, space: Workspace, *, smooth: bool
    ) -> None:
        """Estimate the messages at the tile's borders from the `steps` positions beyond them.

        Those after the tile's pieces are worth it for smoothed marginals only.
        """
        todo = tile.pieces[~borders.known[tile.pieces]]
        earlier = todo[~cut.is_first[todo]]
        later = todo[~cut.is_last[todo]] if smooth else todo[:0]
        starts = np.concatenate((cut.start[earlier] - steps, cut.start[later] + cut.length[later]))
        if not len(starts):
            return
        n_states, count = self.surrogate.n_states, len(starts)
        likelihood = space.table("likelihood", n_states, steps * count)
        self.likelihood((starts + np.arange(steps)[:, None]).ravel(), likelihood)
        flat = np.full((n_states, count), 1.0 / n_states)
        stop = flat if len(later) else flat[:, :0]
        last, before, offsets = np.empty_like(flat), np.empty_like(flat), np.arange(steps + 1) * count
        self.kernels.approach(likelihood, self.transition, self.transposed, flat, stop, offsets, last, before)
        borders.before[earlier] = last[:, : len(earlier)].T
        borders.after[later] = before[:, len(earlier) :].T
        borders.known[todo] = True

    def sweep_forward(self, pieces: Index, cut: Partition, borders: Borders) -> None:
        """Exact marginals before each of the consecutive pieces of one sequence, by one pass from its beginning."""
        alpha = self.surrogate.initial.copy()
        for piece in pieces[:-1]:
            likelihood = self._rows(cut, piece)
            if piece == pieces[0]:
                alpha *= likelihood[0]
                total = alpha.sum()
                alpha /= total if total > 0.0 else 1.0
                likelihood = likelihood[1:]
            serial.advance(likelihood, self.transition, alpha)
            borders.before[piece + 1] = alpha

    def sweep_backward(self, pieces: Index, cut: Partition, borders: Borders) -> None:
        """Exact backward messages at the end of each of the consecutive pieces of one sequence."""
        beta = np.full(self.surrogate.n_states, 1.0 / self.surrogate.n_states)
        for piece in pieces[:0:-1]:
            serial.recede(self._rows(cut, piece), self.transposed, beta)
            borders.after[piece - 1] = beta

    def _rows(self, cut: Partition, piece: int) -> Array:
        positions = cut.start[piece] + np.arange(cut.length[piece])
        likelihood = np.empty((self.surrogate.n_states, len(positions)))
        self.likelihood(positions, likelihood)
        return np.ascontiguousarray(likelihood.T)
