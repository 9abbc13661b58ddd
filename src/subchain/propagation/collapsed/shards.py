"""Blocks of clusters that are visited side by side, and tables of symbols of which each block has only its own rows.

Clusters are divided into *shards*, neighbours in the same one, and every shard into as many *blocks* as a pass has
*rounds*. In a round each shard visits its next block with its own copy of the counts; then what they changed is added.
A block of text has few of the symbols: the copy of a table has a row for each of these, and codes number its rows.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.collapsed.pieces import Pieces
from subchain.propagation.compiled import kernel

Index = NDArray[np.int64]


class Blocks(NamedTuple):
    """Which clusters are visited side by side.

    Attributes
    ----------
    edges : (n_shards · n_rounds + 1,) the block of a shard s in round r is edges[i] … edges[i + 1] − 1 for
        i = s · n_rounds + r
    n_shards, n_rounds : numbers of shards and rounds
    pieces : where the pieces of clusters lie
    """

    edges: Index
    n_shards: int
    n_rounds: int
    pieces: Pieces

    def number(self, shard: int, round_number: int) -> int:
        """Return the number of a shard's block in a round."""
        return shard * self.n_rounds + round_number

    def of(self, shard: int, round_number: int) -> Index:
        """Return the clusters of a shard's block in a round."""
        at = self.number(shard, round_number)
        return np.arange(self.edges[at], self.edges[at + 1])


class LocalSymbols(NamedTuple):
    """Symbols of blocks.

    Attributes
    ----------
    codes : (N,) number of each position's symbol among those of its block, −1 where it is missing
    symbols : (E,) the symbols of each block, block after block, in the order in which they first occur
    offsets : (n_blocks + 1,) where those of each block begin
    """

    codes: NDArray[np.integer]
    symbols: NDArray[np.int32]
    offsets: Index


class Merging(NamedTuple):
    """Entries of the tables of all shards in one round, sorted by symbol, and for one symbol by shard.

    `symbols` (E,) says which symbol they belong to, `slots` (E,) which row of all the shards' tables they are.
    """

    symbols: NDArray[np.int32]
    slots: NDArray[np.int32]


@kernel
def local_symbols(codes, edges, pieces, n_symbols, out):
    """Number the symbols of each block; `out` (N,) gets the codes. Returns symbols and offsets of `LocalSymbols`."""
    last_block, number = np.full(n_symbols, -1, np.int64), np.zeros(n_symbols, np.int64)
    symbols, offsets, total = np.empty(codes.shape[0], np.int32), np.zeros(edges.shape[0], np.int64), 0
    for block in range(edges.shape[0] - 1):
        for cluster in range(edges[block], edges[block + 1]):
            for piece in range(cluster, pieces.starts.shape[0], pieces.size):
                for position in range(pieces.starts[piece], pieces.stops[piece]):
                    symbol = np.int64(codes[position])
                    if symbol < 0:
                        out[position] = -1
                        continue
                    if last_block[symbol] != block:
                        last_block[symbol], number[symbol] = block, total - offsets[block]
                        symbols[total] = symbol
                        total += 1
                    out[position] = number[symbol]
        offsets[block + 1] = total
    return symbols[:total].copy(), offsets


@kernel
def sort_by_symbol(symbols, offsets, blocks, room, n_symbols):
    """Return the symbols and slots of `Merging` for the blocks of a round, whose tables have `room` rows each."""
    begins = np.zeros(n_symbols + 1, np.int64)
    for block in blocks:
        for e in range(offsets[block], offsets[block + 1]):
            begins[symbols[e] + 1] += 1
    for symbol in range(n_symbols):
        begins[symbol + 1] += begins[symbol]
    sorted_symbols, slots = np.empty(begins[n_symbols], np.int32), np.empty(begins[n_symbols], np.int32)
    for shard in range(blocks.shape[0]):
        first = offsets[blocks[shard]]
        for e in range(first, offsets[blocks[shard] + 1]):
            at = begins[symbols[e]]
            begins[symbols[e]] += 1
            sorted_symbols[at], slots[at] = symbols[e], shard * room + e - first
    return sorted_symbols, slots


@kernel
def gather_rows(table, symbols, out):
    """Copy the rows of some symbols to the first rows of another table."""
    for e in range(symbols.shape[0]):
        for k in range(table.shape[1]):
            out[e, k] = table[symbols[e], k]


@kernel
def add_changes(symbols, slots, own, first, last, table):
    """Add what shards have changed, `own` (n_shards · room, P) minus the table, to the table.

    Entries from `first` on whose symbol begins there, up to those of symbols that begin before `last`: any division of
    all entries among threads gives the same bits.
    """
    entry, n_entries, width = first, symbols.shape[0], table.shape[1]
    before = np.empty(width)
    while 0 < entry < n_entries and symbols[entry] == symbols[entry - 1]:
        entry += 1
    while entry < min(last, n_entries):
        symbol = symbols[entry]
        for k in range(width):
            before[k] = table[symbol, k]
        while entry < n_entries and symbols[entry] == symbol:
            for k in range(width):
                table[symbol, k] += own[slots[entry], k] - before[k]
            entry += 1
