"""A parallel text prepared for alignment: the word pairs that occur together, and the pair of every cell."""

from __future__ import annotations

import dataclasses
from typing import Self

import numpy as np
from numpy.typing import NDArray

from subchain.data.parallel_text import ParallelText
from subchain.propagation.alignment.cooccurrence import Cells, count_pairs, find_pairs, number_pairs, occurrences
from subchain.propagation.alignment.sentence import VECTOR
from subchain.tables import TranslationTable

Index = NDArray[np.int64]

#: Words of the longest sentence that is aligned: time grows with their third power, and room with their square. Longer
#: ones are left out, and aligned to nothing.
MOST_WORDS = 1000


@dataclasses.dataclass
class AlignedText:
    """Sentence pairs with their cells; 4 bytes a cell and 4 bytes a word pair.

    Attributes
    ----------
    text : the sentence pairs
    cells : what kernels read
    rows, targets : word pairs by source word; see `TranslationTable`
    sizes : (3,) longest source and target sentence, and cells of the largest pair, with padded rows
    """

    text: ParallelText
    cells: Cells
    rows: Index
    targets: NDArray[np.int32]
    sizes: Index

    @classmethod
    def of(cls, text: ParallelText) -> Self:
        """Return the prepared text; pairs with an empty or too long sentence have no cells."""
        source, target = text.source_lengths, text.target_lengths
        n_cells = np.where(np.maximum(source, target) <= MOST_WORDS, source * target, 0)
        starts = np.concatenate([[0], np.cumsum(n_cells)])
        cells = Cells(
            np.ascontiguousarray(text.source_tokens, dtype=np.int32),
            np.ascontiguousarray(text.target_tokens, dtype=np.int32),
            text.source_offsets.astype(np.int64), text.target_offsets.astype(np.int64),
            starts, np.empty(starts[-1], dtype=np.int32),
        )  # fmt: skip
        n_sources, n_targets = len(text.source_words), len(text.target_words)
        where = occurrences(cells.source, cells.source_starts, n_sources)
        counts = np.zeros(n_sources, dtype=np.int64)
        count_pairs(cells, where, n_targets, counts)
        rows = np.concatenate([[0], np.cumsum(counts)])
        targets = np.empty(rows[-1], dtype=np.int32)
        number_pairs(cells, where, rows, targets, n_targets)
        used = n_cells > 0
        source, target = source[used], target[used]
        padded = [-(-lengths // VECTOR) * VECTOR for lengths in (source, target)]
        largest = max((target * padded[0]).max(initial=0), (source * padded[1]).max(initial=0))
        sizes = np.array([source.max(initial=0), target.max(initial=0), largest])
        return cls(text, cells, rows, targets, sizes)

    @property
    def n_pairs(self) -> int:
        return len(self.cells.starts) - 1

    @property
    def n_cells(self) -> int:
        return int(self.cells.starts[-1])

    def left_out(self) -> Index:
        """Return the numbers of the sentence pairs that are too long, (n,)."""
        return np.flatnonzero(np.maximum(self.text.source_lengths, self.text.target_lengths) > MOST_WORDS)

    def prior(self, concentration: float, known: TranslationTable | None = None) -> TranslationTable:
        """Return the prior over this text's word pairs, with the counts of a `known` table whose codes are the same."""
        found = TranslationTable.prior(self.rows, self.targets, len(self.text.target_words), concentration)
        if known is None:
            return found
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
