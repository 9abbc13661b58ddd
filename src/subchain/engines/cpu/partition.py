"""How data are cut for the engine: sequences into pieces, pieces into tiles, tiles into groups.

A *piece* is a stretch of one sequence that is short enough to keep its messages in fast memory; short sequences are one
piece. A *tile* is a set of pieces of similar length that run side by side as lanes. A *group* is a run of tiles whose
statistics are summed by one worker. All three depend on the data and the model alone, never on the number of workers,
so sums are taken in the same order whoever computes them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.lanes.groups import TiledPieces
from subchain.propagation.layout import column_positions, step_offsets

Index = NDArray[np.int64]

#: Size of a tile's (K, columns) tables: three of them stay in the cache of a core, beside some parameters and sums.
TABLE_BYTES = 3 << 16
#: Most columns of a tile if there are enough for several tiles.
SHARE = 1 / 4
#: Fewest lanes of a tile: one cache line up to this number of states, two beyond.
FEW_STATES, LINES = 16, (1, 2)
#: Lanes that fill the matrix units where a step is a matrix product, if memory allows.
WIDE_LANES, WIDE_BYTES = 256, 32 << 20
MAX_LANES = 4096
#: Bytes of a table of so few lanes; beyond them there are fewer still.
MOST_BYTES = 256 << 20
#: Lanes come in whole cache lines, and the rows of a table are not a multiple of a page of columns apart if that can be
#: helped: entries at this distance compete for the same places in the cache. Both are bytes.
LINE, PAGE = 64, 4096

#: The marginals of a group are at least so many times as large as its sums, unless there would be less than two groups.
WORTH = 4
#: Most groups. Adding many of them up takes long if their sums are large.
MAX_GROUPS, LARGE_SUMS, MAX_LARGE = 256, 1 << 18, 64
#: What is left after a share u of the groups is (1 − u) to this power.
SHRINKING = 2.0


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
        offsets: Index = step_offsets(self.lengths)
        return offsets

    @cached_property
    def columns(self) -> int:
        return int(self.lengths.sum())

    @cached_property
    def last_columns(self) -> Index:
        """Column of each lane's last step."""
        return self.offsets[self.lengths - 1] + np.arange(self.lanes)

    @property
    def positions(self) -> Index:
        """Flat position of the observation in each column."""
        out = np.empty(self.columns, dtype=np.int64)
        column_positions(self.starts, self.offsets, out)
        return out


@dataclasses.dataclass(frozen=True)
class Partition:
    """All pieces of a set of sequences, in the order of the data.

    Attributes
    ----------
    sequence : (P,) sequence that each piece belongs to
    start, length : (P,)
    is_first, is_last : (P,) whether the piece begins or ends its sequence
    order : (P,) the pieces tile after tile, by falling length
    lanes : what compiled passes need to know of them, in that order
    group_bounds : (G + 1,) where the tiles of each group begin
    """

    sequence: Index
    start: Index
    length: Index
    is_first: NDArray[np.bool_]
    is_last: NDArray[np.bool_]
    order: Index
    lanes: TiledPieces
    group_bounds: Index

    @property
    def n_tiles(self) -> int:
        return len(self.lanes.tiles) - 1

    @property
    def n_groups(self) -> int:
        return len(self.group_bounds) - 1

    def as_stretch(self, *, begins: bool, ends: bool) -> Partition:
        """Return the pieces of a single sequence as those of a stretch, which may begin or end inside its sequence."""
        is_first, is_last = self.is_first.copy(), self.is_last.copy()
        is_first[0], is_last[-1] = begins, ends
        lanes = self.lanes._replace(is_first=is_first[self.order], is_last=is_last[self.order])
        return dataclasses.replace(self, is_first=is_first, is_last=is_last, lanes=lanes)

    def weighed_lanes(self, weights: NDArray[np.float64] | None) -> TiledPieces:
        """Return all pieces as compiled passes take them; sequences count `weights` times."""
        return self.lanes if weights is None else self.lanes._replace(weights=weights[self.sequence[self.order]])

    @cached_property
    def tiles(self) -> list[Tile]:
        """The pieces as tiles, for those who run them one by one."""
        lanes = self.lanes
        return [Tile(self.order[a:b], lanes.starts[a:b], lanes.lengths[a:b]) for a, b in pairwise(lanes.tiles)]

    @cached_property
    def group_of(self) -> Index:
        """Group that each piece belongs to, (P,)."""
        out = np.empty(len(self.order), dtype=np.int64)
        out[self.order] = np.repeat(np.arange(self.n_groups), np.diff(self.lanes.tiles[self.group_bounds]))
        return out

    def most_columns(self, lead: int) -> int:
        """The columns of the largest tile, or of the positions beyond its borders: at most `lead` at either side."""
        columns, lanes = self.largest_tile
        return max(columns, 2 * lead * lanes)

    @cached_property
    def largest_tile(self) -> tuple[int, int]:
        """The most columns and the most lanes of a tile."""
        columns, lanes = _columns(self.lanes.lengths, self.lanes.tiles), np.diff(self.lanes.tiles)
        return int(columns.max(initial=0)), int(lanes.max(initial=0))

    @cached_property
    def is_cut(self) -> bool:
        """Whether any sequence consists of several pieces."""
        return not bool(self.is_first.all())


def partition(
    offsets: Index, chosen: Index, piece: int, n_states: int, sums_bytes: int, *, is_wide: bool = False, size: int = 8
) -> Partition:
    """Cut the chosen sequences evenly into pieces of at most `piece` positions, arranged in tiles and groups.

    `is_wide` asks for the many lanes that matrix products need; `size` is that of a number, in bytes.
    """
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
    order = np.argsort(-length, kind="stable")
    starts, lengths, is_first = start[order], length[order], rank == 0
    total = int(lengths.sum())
    tiles = tile_bounds(lengths, lambda longest: tile_lanes(longest, n_states, total, is_wide, size))
    lanes = TiledPieces(tiles, order, starts, lengths, is_first[order], is_last[order], np.empty(0))
    groups = group_bounds(_columns(lengths, tiles), n_states, sums_bytes, least=2)
    return Partition(sequence, start, length, is_first, is_last, order, lanes, groups)


def tile_bounds(lengths: Index, lanes_of: Callable[[int], int]) -> Index:
    """Where the lanes of each tile begin, and where the last ends.

    `lengths` are those of the pieces, which fall; `lanes_of` gives the lanes of a tile by the length of its longest.
    """
    negative, found, at = -lengths, [], 0
    while at < len(lengths):  # once for each length
        lanes = lanes_of(int(lengths[at]))
        alike = np.arange(at, np.searchsorted(negative, negative[at], side="right"), lanes)
        found.append(alike)
        at = int(alike[-1]) + lanes
    return np.concatenate([*found, [len(lengths)]]).astype(np.int64)


def _columns(lengths: Index, tiles: Index) -> Index:
    """Number of columns of each tile."""
    ends = np.concatenate(([0], np.cumsum(lengths)))[tiles]
    return np.diff(ends)


def tile_lanes(longest: int, n_states: int, total: int, is_wide: bool, size: int = 8) -> int:
    """Number of pieces of a tile whose longest has this length, out of so many positions in all.

    `size` is that of a number, in bytes.
    """
    columns, line = min(TABLE_BYTES // (size * n_states), max(int(SHARE * total), 1 << 15)), LINE // size
    least = line * LINES[n_states > FEW_STATES]
    least = least if size * least * n_states * longest <= MOST_BYTES else line
    if is_wide:
        least = min(WIDE_LANES, max(WIDE_BYTES // (size * n_states * longest), least))
    lanes = min(max(columns // longest, least), MAX_LANES) // line * line
    is_crowded = lanes * longest % (PAGE // size) == 0 and lanes > least
    return lanes - line if is_crowded else lanes


def group_bounds(columns: Index, n_states: int, sums_bytes: int, least: int) -> Index:
    """Where groups of tiles with so many columns begin, and where the last ends; `least` groups, if there are as many.

    Later groups are smaller, so that threads end together. There are fewer where their sums are large.
    """
    if len(columns) < 2:
        return np.arange(len(columns) + 1)
    work = np.cumsum(columns)
    most = 8 * n_states * int(work[-1]) // (WORTH * max(sums_bytes, 1))
    count = min(max(1 << max(most.bit_length() - 1, 0), least), MAX_GROUPS if sums_bytes < LARGE_SUMS else MAX_LARGE)
    shares = 1.0 - np.linspace(1.0, 0.0, count + 1) ** SHRINKING
    edges = np.searchsorted(work, shares[1:-1] * work[-1], side="left") + 1
    return np.unique(np.concatenate(([0], edges, [len(columns)])))
