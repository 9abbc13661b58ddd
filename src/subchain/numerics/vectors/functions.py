"""The functions on vectors that kernels call, in plain NumPy: the reference for the compiled versions."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, import-untyped"

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

#: Entries of a vector: one cache line of doubles, which is one AVX-512 register, two AVX or four SSE registers.
WIDTH = 8

#: `exponential` returns zero below this argument; normal doubles reach to about −708.
LOWEST_EXPONENT = -700.0
#: Smallest positive normal double.
LEAST_NORMAL = float(np.finfo(np.float64).tiny)


def zeros() -> Any:
    """Return a vector of zeros."""
    return np.zeros(WIDTH)


def spread(table: Any, row: Any, column: Any) -> Any:
    """Return a vector whose entries all equal table[row, column]."""
    return np.full(WIDTH, table[row, column])


def first(count: Any) -> Any:
    """Return the mask of the first `count` entries."""
    return np.arange(WIDTH) < count


def load(table: Any, row: Any, column: Any, mask: Any) -> Any:
    """Return the vector table[row, column : column + WIDTH]; zero where the mask is false."""
    out = np.zeros(WIDTH)
    count = WIDTH if mask is None else np.count_nonzero(mask)
    out[:count] = table[row, column : column + count]
    return out


def store(table: Any, row: Any, column: Any, mask: Any, values: Any) -> None:
    """Write `values` to table[row, column : column + WIDTH] where the mask is true."""
    count = WIDTH if mask is None else np.count_nonzero(mask)
    table[row, column : column + count] = values[:count]


def turned(table: Any, rows: Any, at: Any, column: Any, mask: Any) -> Any:
    """Return the transpose of a WIDTH × WIDTH block of a table: a tuple with one vector for each column of the block.

    The rows of the block are rows[at : at + WIDTH], where negative ones count from the end of the table. Its columns
    begin at `column`; columns where the mask is false are zero.
    """
    return tuple(np.array([load(table, row, column, mask) for row in rows[at : at + WIDTH]]).T)


def reciprocal(values: Any) -> Any:
    """Return 1 / values where values are positive, zero elsewhere."""
    positive = values > 0.0
    return np.where(positive, 1.0 / np.where(positive, values, 1.0), 0.0)


def at_most(values: Any, bound: Any) -> Any:
    """Return min(values, bound)."""
    return np.where(values < bound, values, bound)


def largest(values: Any, others: Any) -> Any:
    """Return the elementwise maximum of two vectors; the entry of `others` where `values` is nan."""
    return np.where(values > others, values, others)


def exponential(values: Any) -> Any:
    """Return exp(values) of nonpositive values; zero below `LOWEST_EXPONENT`.

    Kernels that call it must be compiled without reordering of additions (no `reassoc` in fastmath).
    """
    return np.where(values < LOWEST_EXPONENT, 0.0, np.exp(np.maximum(values, LOWEST_EXPONENT)))


def logarithm(values: Any) -> Any:
    """Return log(values) of nonnegative values; −inf below the smallest normal double.

    Kernels that call it must be compiled without reordering of additions (no `reassoc` in fastmath).
    """
    return np.where(values < LEAST_NORMAL, -np.inf, np.log(np.maximum(values, LEAST_NORMAL)))


def running(values: Any) -> Any:
    """Return the cumulative sums of the entries."""
    return np.cumsum(values)


def reached(values: Any, bound: Any) -> Any:
    """Return the number of entries that are at most `bound`."""
    return int(np.count_nonzero(values <= bound))


def except_at(values: Any, place: Any) -> Any:
    """Return the values with a zero at index `place`; unchanged if `place` is outside the vector."""
    return np.where(np.arange(WIDTH) == place, 0.0, values)


def fetch(table: Any, row: Any, column: Any) -> None:
    """Prefetch the cache line of table[row, column]; the indices may lie outside the table."""


def all_within(values: Any, low: Any, high: Any) -> Any:
    """Return whether low ≤ entry ≤ high for all entries."""
    return bool(np.all((values >= low) & (values <= high)))


def minus(values: Any, others: Any) -> Any:
    """Return values − others."""
    return values - others


def times(values: Any, factor: Any) -> Any:
    """Return the product of a vector and a number."""
    return values * factor


def total(values: Any) -> Any:
    """Return the sum of the entries."""
    return values.sum()


@register_jitable
def aligned(rows: Any, columns: Any) -> Any:
    """Return an uninitialised table, (rows, columns), whose first entry is aligned to a cache line."""
    buffer = np.empty(rows * columns + WIDTH)
    start = -(buffer.ctypes.data // 8) % WIDTH
    return buffer[start : start + rows * columns].reshape(rows, columns)
