"""How data are cut for the engine: sequences into pieces, pieces into tiles, tiles into groups.

A *piece* is a stretch of one sequence that is short enough to keep its messages in fast memory; short sequences are one
piece. A *tile* is a set of pieces of similar length that run side by side as lanes. A *group* is a run of tiles whose
statistics are summed by one worker. All three depend on the data and the model alone, never on the number of workers,
so sums are taken in the same order whoever computes them.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray

Index = NDArray[np.int64]

#: Columns of a tile, so that a few (K, columns) tables of doubles stay near the core.
TABLE_BYTES = 1 << 20
MIN_LANES, MAX_LANES = 16, 512
MAX_GROUPS = 16


@njit(nogil=True, cache=True)
def _positions(starts, offsets, out):  # type: ignore[no-untyped-def]
    for step in range(offsets.shape[0] - 1):
        first = offsets[step]
        for lane in range(offsets[step + 1] - first):
            out[first + lane] = starts[lane] + step


@dataclasses.dataclass(frozen=True)
class Tile:
    """Pieces that run side by side, sorted by falling length.

    Attributes
    ----------
    pieces : (lanes,) indices into the partition's arrays
    starts : (lanes,) flat position of each piece's first observation
    lengths : (lanes,)
    """

    pieces: Index
    starts: Index
    lengths: Index

    @property
    def lanes(self) -> int:
        return len(self.starts)

    @cached_property
    def offsets(self) -> Index:
        """Where each step's columns begin, (steps + 1,)."""
        return step_offsets(self.lengths)

    @property
    def columns(self) -> int:
        return int(self.lengths.sum())

    @property
    def last_columns(self) -> Index:
        """Column of each lane's last step."""
        return self.offsets[self.lengths - 1] + np.arange(self.lanes)

    def positions(self) -> Index:
        """Flat position of the observation in each column."""
        out = np.empty(self.columns, dtype=np.int64)
        _positions(self.starts, self.offsets, out)
        return out


def step_offsets(lengths: Index) -> Index:
    """Column offsets of lanes with falling lengths."""
    longest = int(lengths[0])
    active = len(lengths) - np.searchsorted(lengths[::-1], np.arange(longest), side="right")
    return np.concatenate(([0], np.cumsum(active)))


@dataclasses.dataclass(frozen=True)
class Partition:
    """All pieces of a set of sequences, in the order of the data.

    Attributes
    ----------
    sequence : (P,) sequence that each piece belongs to
    start, length : (P,)
    is_first, is_last : (P,) whether the piece begins or ends its sequence
    tiles : the pieces as tiles
    groups : slices of `tiles`
    """

    sequence: Index
    start: Index
    length: Index
    is_first: NDArray[np.bool_]
    is_last: NDArray[np.bool_]
    tiles: list[Tile]
    groups: list[slice]

    @property
    def is_cut(self) -> bool:
        """Whether any sequence consists of several pieces."""
        return not bool(self.is_first.all())


def partition(offsets: Index, chosen: Index, piece: int, n_states: int, sums_bytes: int) -> Partition:
    """Cut the chosen sequences evenly into pieces of at most `piece` positions, and arrange these in tiles and groups."""
    lengths = np.diff(offsets)[chosen]
    present = lengths > 0
    chosen, lengths = chosen[present], lengths[present]
    counts = -(-lengths // piece)
    sequence = np.repeat(chosen, counts)
    rank = np.arange(len(sequence)) - np.repeat(np.cumsum(counts) - counts, counts)
    even, longer = np.repeat(lengths // counts, counts), np.repeat(lengths % counts, counts)
    start = offsets[sequence] + rank * even + np.minimum(rank, longer)
    length = even + (rank < longer)
    is_last = rank == np.repeat(counts, counts) - 1
    tiles = _arrange(start, length, n_states)
    return Partition(sequence, start, length, rank == 0, is_last, tiles, _groups(tiles, sums_bytes))


def _arrange(start: Index, length: Index, n_states: int) -> list[Tile]:
    order = np.argsort(-length, kind="stable")
    columns = max(TABLE_BYTES // (8 * n_states), 512)
    tiles, at = [], 0
    while at < len(order):
        lanes = int(np.clip(columns // length[order[at]], MIN_LANES, MAX_LANES))
        pieces = order[at : at + lanes]
        tiles.append(Tile(pieces, start[pieces], length[pieces]))
        at += lanes
    return tiles


def _groups(tiles: list[Tile], sums_bytes: int) -> list[slice]:
    """Runs of tiles with about equal work; fewer where each group's sums are large."""
    if not tiles:
        return []
    work = np.cumsum([tile.columns for tile in tiles])
    count = int(np.clip((256 << 20) // max(sums_bytes, 1), 2, MAX_GROUPS))
    edges = np.searchsorted(work, np.linspace(0, work[-1], count + 1)[1:-1], side="left") + 1
    bounds = np.unique(np.concatenate(([0], edges, [len(tiles)])))
    return [slice(int(a), int(b)) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
