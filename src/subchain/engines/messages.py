"""Exact messages of one tile: likelihoods in, filtered and smoothed beliefs out.

This is where the family, the evidence and the propagation meet, a tile at a time, so that no table over the whole data
ever exists.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from subchain.data.evidence import Evidence
from subchain.data.sequences import Sequences
from subchain.emissions.scaling import exponentiate_in_place
from subchain.engines.borders import Borders, disagreement
from subchain.engines.partition import MANY_STATES, Partition, Tile
from subchain.engines.surrogate import Surrogate
from subchain.propagation import lanes, products, serial
from subchain.propagation.layout import Walks
from subchain.propagation.underflow import LEAST_BELIEF, LEAST_SCALE, Growth, growth, reachable
from subchain.vectors import aligned

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Bytes of tables that are kept for the next worker.
KEPT_BYTES = 32 << 20


@njit(cache=True)
def _lane_totals(log_scale, shift, offsets, out):  # type: ignore[no-untyped-def]
    out[:] = 0.0
    for step in range(offsets.shape[0] - 1):
        start = offsets[step]
        for lane in range(offsets[step + 1] - start):
            out[lane] += log_scale[start + lane] + shift[start + lane]


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
    positions: Index
    values: NDArray[Any]
    likelihood: Array
    alpha: Array
    scale: Array
    shift: Array
    log_totals: Array
    lost: Growth | None


class Smoothed(NamedTuple):
    """Smoothed messages of a tile: `beliefs` (K, n), and `weighted` (K, n), the backward message of each position times
    its likelihood, divided by its normaliser, from which pair sums are made."""

    beliefs: Array
    weighted: Array


class Messages:
    """Runs tiles of one data set under one surrogate."""

    def __init__(self, surrogate: Surrogate, data: Sequences, evidence: Evidence | None) -> None:
        self.surrogate = surrogate
        self.data = data
        self.evidence = evidence
        self.transition = np.ascontiguousarray(surrogate.transition)
        self.transposed = np.ascontiguousarray(surrogate.transition.T)
        self.reach = reachable(self.transition)
        self.every_way = bool(self.reach.all())
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

    def filter(self, tile: Tile, cut: Partition, borders: Borders | None, space: Workspace) -> Filtered:
        """Filtered beliefs of all positions of the tile."""
        n_states = self.surrogate.n_states
        positions = tile.positions()
        likelihood = space.table("likelihood", n_states, tile.columns)
        alpha = space.table("alpha", n_states, tile.columns)
        scale = space.table("scale", 1, tile.columns)[0]
        values, shift = self.likelihood(positions, likelihood)
        start = np.repeat(self.surrogate.initial[:, None], tile.lanes, axis=1)
        if borders is not None:
            inner = ~cut.is_first[tile.pieces]
            start[:, inner] = self.transposed @ borders.before[tile.pieces[inner]].T
        self.kernels.forward(likelihood, self.transition, start, tile.offsets, alpha, scale)
        if borders is not None:
            borders.last[tile.pieces] = alpha[:, tile.last_columns].T
        log_totals = np.empty(tile.lanes)
        with np.errstate(divide="ignore", invalid="ignore"):
            _lane_totals(np.log(scale), shift, tile.offsets, log_totals)
        lost = None
        if not self.every_way or not scale.min() >= LEAST_SCALE:
            lost = self._lost(tile, likelihood, start, alpha, scale, is_cut=borders is not None)
        return Filtered(tile, positions, values, likelihood, alpha, scale, shift, log_totals, lost)

    def _lost(self, tile: Tile, likelihood: Array, start: Array, alpha: Array, scale: Array, is_cut: bool) -> Growth:
        """What the tile's lanes may have lost to underflow."""
        if is_cut:
            # what underflowed before the piece is not in its start: count every state that the chain can have reached
            possible = np.any(self.reach[self.surrogate.initial > 0.0], axis=0, keepdims=True)
            start = start + LEAST_BELIEF * possible.T
        walks = Walks(tile.lengths, np.arange(tile.lanes), tile.offsets, tile.starts)
        return growth(likelihood, start, self.transition, self.reach, walks, alpha, scale)

    def smooth(self, filtered: Filtered, cut: Partition, borders: Borders | None, space: Workspace) -> Smoothed:
        """Smoothed beliefs of all positions of the tile; the table of likelihoods is used up."""
        tile = filtered.tile
        beliefs = space.table("beliefs", self.surrogate.n_states, tile.columns)
        stop = np.ones((self.surrogate.n_states, tile.lanes))
        if borders is not None:
            inner = ~cut.is_last[tile.pieces]
            stop[:, inner] = borders.after[tile.pieces[inner]].T
            meeting = (filtered.alpha[:, tile.last_columns] * stop).sum(axis=0)
            filtered.log_totals[~(meeting >= LEAST_BELIEF)] = np.nan
        weighted = filtered.likelihood  # in place
        self.kernels.backward(
            weighted, self.transposed, stop, tile.offsets, filtered.alpha, filtered.scale, beliefs
        )
        if borders is not None:
            message = self.transition @ weighted[:, : tile.lanes]
            total = message.sum(axis=0)
            borders.first[tile.pieces] = (message / np.where(total > 0.0, total, 1.0)).T
        return Smoothed(beliefs, weighted)

    # ---- borders -----------------------------------------------------------------------------------------------------

    def forgetting_time(self, starts: Index, steps: int) -> int | None:
        """Steps after which two opposite beliefs, started at each of the given positions, have become one.

        None where `steps` are not enough.
        """
        n_states, count = self.surrogate.n_states, len(starts)
        offsets = np.arange(steps + 1) * count
        likelihood = np.empty((n_states, steps * count))
        self.likelihood((starts + np.arange(steps)[:, None]).ravel(), likelihood)
        lean = 0.9 * np.eye(n_states)[:, np.arange(count) % n_states] + 0.1 / n_states
        ends = []
        for start in (np.full((n_states, count), 1.0 / n_states), lean):
            alpha, scale = np.empty_like(likelihood), np.empty(steps * count)
            self.kernels.forward(likelihood, self.transition, start, offsets, alpha, scale)
            ends.append(alpha.T.reshape(steps, count, n_states))
        apart = np.any(disagreement(*ends) > 1e-15 * (8 + n_states), axis=1)
        if apart[-1]:
            return None
        return int(np.flatnonzero(apart)[-1]) + 1 if apart.any() else 0

    def warm_up(self, tile: Tile, cut: Partition, borders: Borders, steps: int, space: Workspace) -> None:
        """Estimate the messages at the tile's borders from the `steps` positions beyond them."""
        todo = ~borders.known[tile.pieces]
        pieces = tile.pieces[todo & ~cut.is_first[tile.pieces]]
        if len(pieces):
            borders.before[pieces] = self._approach(cut.start[pieces] - steps, steps, space)
        pieces = tile.pieces[todo & ~cut.is_last[tile.pieces]]
        if len(pieces):
            borders.after[pieces] = self._return(cut.start[pieces] + cut.length[pieces], steps, space)
        borders.known[tile.pieces] = True

    def _likelihood_ahead(self, starts: Index, steps: int, space: Workspace) -> tuple[Array, Index]:
        positions = (starts + np.arange(steps)[:, None]).ravel()
        likelihood = space.table("likelihood", self.surrogate.n_states, len(positions))
        self.likelihood(positions, likelihood)
        return likelihood, np.arange(steps + 1) * len(starts)

    def _approach(self, starts: Index, steps: int, space: Workspace) -> Array:
        likelihood, offsets = self._likelihood_ahead(starts, steps, space)
        alpha = space.table("alpha", *likelihood.shape)
        scale = space.table("scale", 1, likelihood.shape[1])[0]
        start = np.full((likelihood.shape[0], len(starts)), 1.0 / likelihood.shape[0])
        self.kernels.forward(likelihood, self.transition, start, offsets, alpha, scale)
        return alpha[:, -len(starts) :].T

    def _return(self, starts: Index, steps: int, space: Workspace) -> Array:
        likelihood, offsets = self._likelihood_ahead(starts, steps, space)
        beta = np.full((likelihood.shape[0], len(starts)), 1.0 / likelihood.shape[0])
        self.kernels.retreat(likelihood, self.transposed, offsets, beta)
        return beta.T

    def sweep_forward(self, pieces: Index, cut: Partition, borders: Borders) -> None:
        """Exact beliefs before each of the consecutive pieces of one sequence, by one pass from its beginning."""
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
