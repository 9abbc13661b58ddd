"""Incremental coding of lines of symbols; the vocabulary is built after the last line."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from subchain.data.sequences import Sequences
from subchain.data.vocabulary import MISSING, SymbolTable, Vocabulary, recode


class CodedLines:
    """Lines of symbols as one array of codes, numbered in order of first appearance, and the ends of the lines.

    `known` symbols have the first codes, whether they occur or not.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._table = SymbolTable(known)
        self._codes = array("i")
        self._ends = array("q", [0])

    def append(self, symbols: Iterable[str | None]) -> None:
        """Append one line; ``None`` is a missing symbol."""
        self._codes.extend(map(self._table.__getitem__, symbols))
        self._ends.append(len(self._codes))

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def n_lines(self) -> int:
        """Number of lines."""
        return len(self._ends) - 1

    @property
    def symbols(self) -> list[str]:
        """Symbols in the order of the codes that `codes` has."""
        return self._table.symbols

    def codes(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the codes of all lines, (N,), and the offsets of the lines, (n_lines + 1,)."""
        return self._flat().astype(np.int32), np.array(self._ends, dtype=np.int64)

    def build_vocabulary(
        self, min_count: int = 1, max_size: int | None = None, unknown: str | None = None
    ) -> Vocabulary:
        """Return the vocabulary of all lines, see :meth:`Vocabulary.build`."""
        codes = self._flat()
        counts = np.bincount(codes[codes != MISSING], minlength=len(self._table.symbols))
        return Vocabulary.from_counts(self._table.symbols, counts, min_count, max_size, unknown)

    def as_lines(self, vocabulary: Vocabulary, names: Iterable[str | int] | None = None) -> Sequences:
        """Return the lines coded with `vocabulary`, one sequence per line."""
        return Sequences(self._recoded(vocabulary), self._ends, names=names, vocabulary=vocabulary)

    def as_chain(self, vocabulary: Vocabulary) -> Sequences:
        """Return the lines coded with `vocabulary`, all of them as one sequence."""
        return Sequences(self._recoded(vocabulary), vocabulary=vocabulary)

    def _flat(self) -> NDArray[np.intc]:
        return np.frombuffer(self._codes, dtype=np.intc)

    def _recoded(self, vocabulary: Vocabulary) -> NDArray[np.int32]:
        return recode(self._flat(), self._table.symbols, vocabulary)
