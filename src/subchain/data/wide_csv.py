"""CSV files with very many columns of numbers, for which Arrow needs a tenth of a millisecond a column."""

from __future__ import annotations

import csv
import io
import warnings
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from subchain.data.unpacking import open_unpacked
from subchain.errors import SubchainError

#: Number of columns from which a table is wide.
WIDE = 4096
#: How fields are read: as integers, as floating numbers, as floating numbers of which some are missing.
_KINDS: tuple[dict[str, Any], ...] = (
    {"dtype": np.int64},
    {"dtype": np.float64},
    {"dtype": np.float64, "converters": lambda field: float(field) if field else np.nan},
)


def read_names(path: Path, delimiter: str) -> list[str]:
    """Return the names on the first line of a CSV file, if they are very many; else an empty list."""
    try:
        with _opened(path) as file:
            names = next(csv.reader(file, delimiter=delimiter), [])
    except (ValueError, OSError, EOFError, csv.Error) as error:
        if isinstance(error, SubchainError):
            raise
        return []  # Arrow describes what is wrong
    return names if len(names) >= WIDE else []


def read_numbers(path: Path, n_columns: int, delimiter: str) -> NDArray[Any] | None:
    """Return all fields below the first line as numbers, (N, D); None if some are not numbers."""
    for kind in _KINDS:
        with _opened(path) as file, warnings.catch_warnings():
            warnings.simplefilter("error")  # for integers that are written as fractions
            file.readline()
            try:
                values = np.loadtxt(file, delimiter=delimiter, comments=None, quotechar='"', ndmin=2, **kind)
            except (ValueError, OverflowError, Warning) as error:
                if isinstance(error, SubchainError):
                    raise
                continue
        return values if values.shape[1] == n_columns else None
    return None


def _opened(path: Path) -> TextIO:
    return io.TextIOWrapper(open_unpacked(path), encoding="utf-8-sig", newline="")
