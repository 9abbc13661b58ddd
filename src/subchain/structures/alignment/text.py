"""A parallel text prepared for alignment: the word pairs that occur together, and the pair of every cell."""

from __future__ import annotations

import dataclasses
from typing import Self

import numpy as np
from numpy.typing import NDArray

from subchain.data.parallel_text import ParallelText
from subchain.engines.threads import each, share
from subchain.propagation.alignment.cooccurrence import (
    Cells,
    Occurrences,
    copy_sentences,
    count_cells,
    find_pairs,
    list_pairs,
    look_up,
    measure_pairs,
    number_cells,
    occurrences,
    sum_cells,
)
from subchain.tables import TranslationTable

Index = NDArray[np.int64]

#: Words of the longest sentence that is aligned: time grows with their third power, and room with their square. Longer
#: ones are left out, and aligned to nothing.
MOST_WORDS = 1000
#: Cells of the source words that are treated together, and most such blocks, each of which reads the text again.
BLOCK_CELLS, MOST_BLOCKS = 1 << 20, 64


@dataclasses.dataclass
class AlignedText:
    """Sentence pairs with their cells: 4 bytes a word pair and, if entries are kept, 4 bytes a cell.

    Attributes
    ----------
    text : the sentence pairs
    cells : what kernels read
    rows, targets : word pairs by source word, then by target word; see `TranslationTable`
    sizes : (3,) longest source and target sentence, and cells of the largest pair, with padded rows
    n_jobs : threads that look up cells
    """

    text: ParallelText
    cells: Cells
    rows: Index
    targets: NDArray[np.int32]
    sizes: Index
    n_jobs: int = 1

    @classmethod
    def of(cls, text: ParallelText, *, keeps_entries: bool = True, n_jobs: int = 1) -> Self:
        """Return the prepared text; pairs with an empty or too long sentence have no cells.

        Without `keeps_entries` the word pair of a cell is looked up whenever it is needed, and nothing is kept of
        cells: for texts whose cells do not fit into memory.
        """
        starts = np.zeros(len(text) + 1, dtype=np.int64)
        sizes = _measure(text, starts)
        cells = Cells(
            np.ascontiguousarray(text.source_tokens, dtype=np.int32),
            np.ascontiguousarray(text.target_tokens, dtype=np.int32),
            text.source_offsets.astype(np.int64, copy=False), text.target_offsets.astype(np.int64, copy=False),
            starts, np.empty(starts[-1] if keeps_entries else 0, dtype=np.int32),
        )  # fmt: skip
        n_sources, n_targets = len(text.source_words), len(text.target_words)
        edges = _blocks(cells, n_sources)
        n_blocks = len(edges) - 1
        rows, found = np.zeros(n_sources + 1, dtype=np.int64), [np.zeros(0, dtype=np.int32)] * n_blocks
        kept: list[Occurrences | None] = [None] * n_blocks

        def list_block(block: int) -> None:
            where = occurrences(cells, edges[block], edges[block + 1])
            counts = rows[edges[block] + 1 : edges[block + 1] + 1]
            room = np.empty(min(sum_cells(cells, where), len(counts) * n_targets), dtype=np.int32)
            found[block] = room[: list_pairs(cells, where, n_targets, counts, room)].copy()
            if keeps_entries:
                kept[block] = where

        each(list_block, n_blocks, n_jobs)
        np.cumsum(rows, out=rows)
        targets = np.concatenate([np.zeros(0, dtype=np.int32), *found])
        found.clear()

        def number_block(block: int) -> None:
            number_cells(cells, kept[block], edges[block], rows, targets, n_targets)

        if keeps_entries:
            each(number_block, n_blocks, n_jobs)
        return cls(text, cells, rows, targets, sizes, n_jobs)

    @property
    def keeps_entries(self) -> bool:
        """Whether the word pair of every cell is kept."""
        return len(self.cells.entries) == self.n_cells

    def span(self, first: int, last: int) -> Cells:
        """Return cells, without entries, of the sentence pairs `first` … `last` − 1, the first of which is pair 0."""
        of, inside = self.cells, slice(first, last + 1)
        starts = of.starts[inside] - of.starts[first]
        return Cells(of.source, of.target, of.source_starts[inside], of.target_starts[inside], starts, of.entries[:0])

    def part(self, pairs: Index) -> tuple[Cells, Index]:
        """Return cells in which some sentence pairs can be read, and their numbers there."""
        if self.keeps_entries:
            return self.cells, pairs
        of, sides = self.cells, list[tuple[NDArray[np.int32], Index]]()
        for tokens, starts in ((of.source, of.source_starts), (of.target, of.target_starts)):
            own = np.concatenate([[0], np.cumsum(starts[pairs + 1] - starts[pairs])])
            copied = np.empty(own[-1], dtype=np.int32)
            copy_sentences(tokens, starts, pairs, copied)
            sides.append((copied, own))
        first = np.concatenate([[0], np.cumsum(of.starts[pairs + 1] - of.starts[pairs])])
        entries = np.empty(first[-1], dtype=np.int32)
        cells = Cells(sides[0][0], sides[1][0], sides[0][1], sides[1][1], first, entries)
        counter = np.zeros(1, dtype=np.int64)
        share(lambda: look_up(cells, self.rows, self.targets, counter), self.n_jobs)
        return cells, np.arange(len(pairs))

    @property
    def n_pairs(self) -> int:
        return len(self.cells.starts) - 1

    @property
    def n_cells(self) -> int:
        return int(self.cells.starts[-1])

    def cut_words(self, n_parts: int) -> Index:
        """Return the edges of parts of the source words with about the same number of cells, at most (n_parts + 1,)."""
        counts = np.zeros(len(self.text.source_words), dtype=np.int64)
        count_cells(self.cells, counts)
        ends = np.cumsum(counts)
        cuts = np.searchsorted(ends, self.n_cells * np.arange(1, n_parts) / n_parts) + 1
        return np.unique(np.concatenate([[0], np.minimum(cuts, len(ends)), [len(ends)]])).astype(np.int64)

    def left_out(self) -> Index:
        """Return the numbers of the sentence pairs that are too long, (n,)."""
        return np.flatnonzero(np.maximum(self.text.source_lengths, self.text.target_lengths) > MOST_WORDS)

    def prior(self, concentration: float, known: TranslationTable | None = None) -> TranslationTable:
        """Return the prior over this text's word pairs, with the counts of a `known` table whose codes are the same."""
        found = TranslationTable.prior(self.rows, self.targets, len(self.text.target_words), concentration)
        if known is None:
            return found
        found.pairs = np.zeros(found.pairs.shape)
        places = np.empty(len(self.targets), dtype=np.int64)
        n_targets = max(len(self.text.target_words), len(known.null_target))
        find_pairs(self.rows, self.targets, known.rows, known.targets, n_targets, places)
        is_known = places >= 0
        found.pairs[is_known] = known.pairs[places[is_known]]
        for mine, theirs in (
            (found.null_target, known.null_target),
            (found.null_source, known.null_source),
            (found.totals_source[:-1], known.totals_source[:-1]),
            (found.totals_target[:-1], known.totals_target[:-1]),
        ):
            mine[: len(theirs)] = theirs
        found.totals_source[-1], found.totals_target[-1] = known.totals_source[-1], known.totals_target[-1]
        return found


def _measure(text: ParallelText, starts: Index) -> Index:
    """Write the first cell of every pair, and the number of all, to `starts`; return `AlignedText.sizes`."""
    sizes = np.zeros(3, dtype=np.int64)
    measure_pairs(text.source_offsets, text.target_offsets, MOST_WORDS, starts, sizes)
    return sizes


def _blocks(cells: Cells, n_words: int) -> Index:
    """Return the edges of blocks of source words with about the same number of cells."""
    counts = np.zeros(n_words, dtype=np.int64)
    count_cells(cells, counts)
    ends = np.cumsum(counts)
    most = max(BLOCK_CELLS, int(cells.starts[-1]) // MOST_BLOCKS)
    cuts = np.searchsorted(ends, np.arange(most, int(cells.starts[-1]), most)) + 1
    return np.unique(np.concatenate([[0], np.minimum(cuts, n_words), [n_words]])).astype(np.int64)
