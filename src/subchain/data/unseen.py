"""Vocabularies of data of which some sequences were left out: symbols that occur in these alone go with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.missing import is_missing
from subchain.data.sequences import Sequences
from subchain.data.vocabulary import Vocabulary


def without_unseen(rest: Sequences, whole: Sequences) -> Sequences:
    """Return the rest of some data, coded as if the other sequences had never been read.

    Vocabularies that do not follow from the whole data, such as declared categories of a table, stay as they are.
    """
    parts = zip(rest.vocabularies, rest.select(None).T, whole.select(None).T, strict=True)
    return rest.recode([_learned(vocabulary, *columns) for vocabulary, *columns in parts])


def _learned(vocabulary: Vocabulary | None, rest: NDArray[Any], whole: NDArray[Any]) -> Vocabulary | None:
    if vocabulary is None or _by_frequency(whole, vocabulary) != vocabulary:
        return vocabulary
    return _by_frequency(rest, vocabulary)


def _by_frequency(column: NDArray[Any], vocabulary: Vocabulary) -> Vocabulary:
    """Return the vocabulary that is built from a column of codes of another one."""
    used, first, counts = np.unique(column[~is_missing(column)], return_index=True, return_counts=True)
    order = np.argsort(first)
    symbols = [vocabulary.symbols[int(code)] for code in used[order]]
    return Vocabulary.from_counts(symbols, counts[order], unknown=vocabulary.unknown)
