"""Copies of a family's counts, one for each shard of clusters, and how their changes are added.

A shard takes a copy at the beginning of a round (`begin`), visits change it, and what all of them changed is added
afterwards in the order of the shards (`merge`), so that threads change nothing in the results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.collapsed.shards import (
    Blocks,
    LocalSymbols,
    Merging,
    add_changes,
    gather_rows,
    local_symbols,
    sort_by_symbol,
)

if TYPE_CHECKING:
    from subchain.emissions.collapsed.counts import EmissionCounts

Array = NDArray[np.float64]
#: Does a task for every item of a list, on threads.
Map = Callable[[Callable[[Any], Any], list[Any]], list[Any]]

#: Numbers that a thread adds at a time; arrays of shards begin at multiples of so many bytes, so that threads do not
#: write to the same cache line.
CHUNK_VALUES, LINE_BYTES = 1 << 16, 128


class ShardCounts(Protocol):
    """Copies of counts for shards."""

    def adopt(self, counts: Any) -> None:
        """Copy, and add changes to, other counts of the same kind from now on."""

    def begin(self, shard: int, round_number: int) -> Any:
        """Copy the counts for a shard's block of a round; return its copy as a named tuple for kernels."""

    def merge(self, round_number: int, map_items: Map) -> None:
        """Add what all shards have changed in a round."""


def stacked(n_shards: int, array: NDArray[Any]) -> list[NDArray[Any]]:
    """Return as many arrays like this one, which share no cache line."""
    stride = -(-array.nbytes // LINE_BYTES) * LINE_BYTES
    room = np.zeros(n_shards * stride + LINE_BYTES, dtype=np.uint8)
    start = -room.ctypes.data % LINE_BYTES
    firsts = range(start, start + n_shards * stride, stride)
    return [room[first : first + array.nbytes].view(array.dtype).reshape(array.shape) for first in firsts]


def add_differences(array: Array, copies: list[Array]) -> None:
    """Add what was changed in copies of an array to the array, in their order."""
    before = array.copy()
    for copy in copies:
        array += copy - before


class CopiedCounts:
    """Shards have copies of all that visits change: small sums, and what follows from them."""

    def __init__(self, counts: EmissionCounts, blocks: Blocks) -> None:
        self.counts = counts
        kernel = counts.kernel
        self._sums = {name: stacked(blocks.n_shards, getattr(kernel, name)) for name in counts.changing()}
        self._scratch = {name: stacked(blocks.n_shards, getattr(kernel, name)) for name in counts.scratch}

    def adopt(self, counts: EmissionCounts) -> None:
        self.counts = counts

    def begin(self, shard: int, round_number: int) -> Any:
        kernel = self.counts.kernel
        own = {name: copies[shard] for name, copies in (self._sums | self._scratch).items()}
        for name, copy in own.items():
            np.copyto(copy, getattr(kernel, name))
        return kernel._replace(**own)

    def merge(self, round_number: int, map_items: Map) -> None:
        kernel = self.counts.kernel
        for name, copies in self._sums.items():
            add_differences(getattr(kernel, name), copies)
        for name in self._scratch:
            if getattr(kernel, name).dtype == np.bool_:  # what follows from the sums is out of date
                getattr(kernel, name)[:] = True


class TableShards:
    """Shards have the rows of the symbols in their block, so that a round does not cost more for more symbols."""

    def __init__(self, counts: EmissionCounts, blocks: Blocks) -> None:
        self.counts, self.blocks = counts, blocks
        kernel = counts.kernel
        n_shards, n_symbols = blocks.n_shards, len(kernel.table) - 1
        codes = np.empty(len(kernel.codes), dtype=kernel.codes.dtype)
        found = local_symbols(kernel.codes, blocks.edges, blocks.pieces, n_symbols, codes)
        codes.flags.writeable = kernel.codes.flags.writeable  # kernels are compiled for one of both
        self.local = LocalSymbols(codes, *found)
        # the last row is that of missing symbols; a prior of two rows would count as one that all symbols share
        room = max(int(np.diff(self.local.offsets).max(initial=0)) + 1, 3)
        numbers = [
            blocks.number(0, number) + blocks.n_rounds * np.arange(n_shards) for number in range(blocks.n_rounds)
        ]
        self._merging = [
            Merging(*sort_by_symbol(self.local.symbols, self.local.offsets, number, room, n_symbols))
            for number in numbers
        ]
        self._table = np.zeros((n_shards * room, kernel.table.shape[1]))
        self._own = np.split(self._table, n_shards)
        self._priors: list[NDArray[np.float64]] = []
        self.adopt(counts)
        self._totals, self._inverse = stacked(n_shards, kernel.totals), stacked(n_shards, kernel.inverse)

    def adopt(self, counts: EmissionCounts) -> None:
        self.counts = counts
        if len(counts.kernel.prior) > 2 and not self._priors:  # symbols differ, possibly since a prior was learned
            self._priors = np.split(np.zeros_like(self._table), len(self._own))

    def begin(self, shard: int, round_number: int) -> Any:
        kernel, number = self.counts.kernel, self.blocks.number(shard, round_number)
        symbols = self.local.symbols[self.local.offsets[number] : self.local.offsets[number + 1]]
        gather_rows(kernel.table, symbols, self._own[shard])
        np.copyto(self._totals[shard], kernel.totals)
        own = {"codes": self.local.codes, "table": self._own[shard]}
        own |= {"totals": self._totals[shard], "inverse": self._inverse[shard]}
        if len(kernel.prior) > 2:
            gather_rows(kernel.prior, symbols, self._priors[shard])
            self._priors[shard][-1] = kernel.prior[-1]
            own["prior"] = self._priors[shard]
        return kernel._replace(**own)

    def merge(self, round_number: int, map_items: Map) -> None:
        kernel, merging = self.counts.kernel, self._merging[round_number]
        add_differences(kernel.totals, self._totals)
        size = max(CHUNK_VALUES // kernel.table.shape[1], 1)

        def add(first: int) -> None:
            add_changes(*merging, self._table, first, first + size, kernel.table)

        map_items(add, list(range(0, len(merging.symbols), size)))
