"""Observations as kernels read them: copied only if they cannot be read as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.checks import as_matrix
from subchain.emissions.counts import as_codes


def real_rows(values: NDArray[Any]) -> NDArray[Any]:
    """Return vectors of real numbers as (N, D), nan where they are missing; integers are never missing."""
    rows = as_matrix(values)
    return np.ascontiguousarray(rows, dtype=rows.dtype if rows.dtype in (np.float32, np.float64) else np.float64)


def whole_rows(values: NDArray[Any]) -> NDArray[Any]:
    """Return vectors of whole numbers from 0 as integers (N, D), below zero where they are missing."""
    rows = as_matrix(values)
    if rows.dtype.kind not in "iu" or not np.can_cast(rows.dtype, np.int64):
        rows = as_codes(rows).astype(np.int64)
    return np.ascontiguousarray(rows)
