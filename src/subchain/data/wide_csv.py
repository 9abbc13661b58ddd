"""CSV files with very many columns of numbers, or of words, for which Arrow needs a tenth of a millisecond a column."""

from __future__ import annotations

import csv
import io
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from subchain.data.sniffing import MISSING_CELLS
from subchain.data.unpacking import open_unpacked
from subchain.data.vocabulary import MISSING, Vocabulary
from subchain.errors import SubchainError

#: Number of columns from which a table is wide.
WIDE = 4096
#: Most rows of words that are read here.
MOST_ROWS = 100
#: Letters that are no words: a column of nothing else may hold numbers, truth values or nothing.
_NO_WORDS = frozenset({"inf", "infinity", "true", "false", "nan", "na", "n/a", "null"})
#: How fields are read: as integers, as floating numbers, as floating numbers of which some are missing.
_KINDS: tuple[dict[str, Any], ...] = (
    {"dtype": np.int64},
    {"dtype": np.float64},
    {"dtype": np.float64, "converters": lambda field: float(field) if field else np.nan},
)


def is_wide(names: list[str]) -> bool:
    """Return whether a table has very many columns."""
    return len(names) >= WIDE


def read_numbers(path: Path, n_columns: int, delimiter: str, has_header: bool) -> NDArray[Any] | None:
    """Return all fields below the line of names as numbers, (N, D); None if some are not numbers."""
    for kind in _KINDS:
        with _opened(path) as file, warnings.catch_warnings():
            warnings.simplefilter("error")  # for integers that are written as fractions
            if has_header:
                file.readline()
            try:
                values = np.loadtxt(file, delimiter=delimiter, comments=None, quotechar='"', ndmin=2, **kind)
            except (ValueError, OverflowError, Warning) as error:
                if isinstance(error, SubchainError):
                    raise
                continue
        return values if values.shape[1] == n_columns else None
    return None


def read_words(
    path: Path, n_columns: int, delimiter: str, has_header: bool
) -> tuple[NDArray[np.int32], list[Vocabulary]] | None:
    """Return all fields below the line of names as codes, (N, D), with the vocabulary of each column.

    None if a column may hold something else than words, if there are blank lines, and for many rows, which Arrow reads
    as fast.
    """
    rows: list[list[str]] = []
    try:
        with _opened(path) as file:
            for row in csv.reader(file, delimiter=delimiter):
                if len(row) != n_columns or len(rows) > MOST_ROWS:
                    return None
                rows.append(row)
    except SubchainError:
        raise
    except (ValueError, csv.Error):
        return None
    columns = list(_coded_columns(rows[1:] if has_header else rows))
    if len(columns) < n_columns:
        return None
    codes, vocabularies = zip(*columns, strict=True)
    return np.ascontiguousarray(np.array(codes, dtype=np.int32).T), list(vocabularies)


def _coded_columns(rows: list[list[str]]) -> Iterator[tuple[list[int], Vocabulary]]:
    """Yield codes and vocabulary of each column up to one that may hold something else than words.

    Columns with the same symbols in the same order share a vocabulary.
    """
    known: dict[tuple[tuple[str, int], ...], tuple[dict[str, int], Vocabulary]] = {}
    for column in zip(*rows, strict=True):
        counts = tuple(Counter(cell for cell in column if cell not in MISSING_CELLS).items())
        if counts not in known:
            symbols = [symbol for symbol, _ in counts]
            if not any(map(_is_word, symbols)):
                return
            vocabulary = Vocabulary.from_counts(symbols, np.array([count for _, count in counts]), unknown=None)
            known[counts] = {symbol: code for code, symbol in enumerate(vocabulary)}, vocabulary
        codes, vocabulary = known[counts]
        yield [codes.get(cell, MISSING) for cell in column], vocabulary


def _is_word(cell: str) -> bool:
    return cell[:1].isalpha() and cell.lower() not in _NO_WORDS


def _opened(path: Path) -> TextIO:
    return io.TextIOWrapper(open_unpacked(path), encoding="utf-8-sig", newline="")
