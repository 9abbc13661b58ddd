"""CSV files with very many columns of numbers, for which Arrow needs a tenth of a millisecond a column."""

from __future__ import annotations

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


def _opened(path: Path) -> TextIO:
    return io.TextIOWrapper(open_unpacked(path), encoding="utf-8-sig", newline="")
