"""The functions on vectors that kernels call, in plain NumPy: the reference for the compiled versions."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, import-untyped"

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

#: Entries of a vector of doubles: one cache line, which is one AVX-512 register, two AVX or four SSE registers.
WIDTH = 8

#: `exponential` does not go below these arguments, for doubles and for singles; normal numbers reach a little further.
LOWEST_EXPONENT, LOWEST_SINGLE_EXPONENT = -700.0, -85.0
#: Doubles below this stand for −inf, whose exponential is zero.
IMPOSSIBLE = -1e299
#: Smallest positive normal double.
LEAST_NORMAL = float(np.finfo(np.float64).tiny)


def width(table: Any) -> Any:
    """Return the number of entries of a vector that is loaded from this table: those of a cache line."""
    return WIDTH * 8 // table.dtype.itemsize


def zeros(table: Any = None) -> Any:
    """Return a vector of zeros of the table's floating type; of doubles without a table."""
    return np.zeros(WIDTH) if table is None else np.zeros(width(table), dtype=table.dtype)


def spread(table: Any, row: Any, column: Any) -> Any:
    """Return a vector whose entries all equal table[row, column]."""
    return np.full(width(table), table[row, column])


def first(count: Any, table: Any = None) -> Any:
    """Return the mask of the first `count` entries of a vector from this table; of a vector of doubles without one."""
    return np.arange(WIDTH if table is None else width(table)) < count


def load(table: Any, row: Any, column: Any, mask: Any) -> Any:
    """Return the vector table[row, column : column + width]; zero where the mask is false."""
    out = np.zeros(width(table), dtype=table.dtype)
    count = len(out) if mask is None else np.count_nonzero(mask)
    out[:count] = table[row, column : column + count]
    return out


def load_doubles(table: Any, row: Any, column: Any, mask: Any) -> Any:
    """Return table[row, column : column + WIDTH] as a vector of doubles, whatever the floating type of the table."""
    out = np.zeros(WIDTH)
    count = WIDTH if mask is None else np.count_nonzero(mask)
    out[:count] = table[row, column : column + count]
    return out


def store(table: Any, row: Any, column: Any, mask: Any, values: Any) -> None:
    """Write `values` to a row of a table from `column` on, rounded to its floating type, where the mask is true."""
    count = len(values) if mask is None else np.count_nonzero(mask)
    table[row, column : column + count] = values[:count]


def turned(table: Any, rows: Any, at: Any, column: Any, mask: Any) -> Any:
    """Return the transpose of a square block of a table: a tuple with one vector for each column of the block.

    The rows of the block are rows[at : at + width], where negative ones count from the end of the table. Its columns
    begin at `column`; columns where the mask is false are zero.
    """
    return tuple(np.array([load(table, row, column, mask) for row in rows[at : at + width(table)]]).T)


def turned_doubles(table: Any, rows: Any, at: Any, column: Any, mask: Any) -> Any:
    """Return the same of a WIDTH × WIDTH block as vectors of doubles, whatever the floating type of the table."""
    return tuple(np.array([load_doubles(table, row, column, mask) for row in rows[at : at + WIDTH]]).T)


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
    """Return exp(values) of nonpositive values.

    Doubles below `LOWEST_EXPONENT` have that of the lowest exponent, those below `IMPOSSIBLE` zero. Singles are zero
    below `LOWEST_SINGLE_EXPONENT`. Kernels that call it must be compiled without reordering of additions (no `reassoc`
    in fastmath).
    """
    is_double = values.dtype == np.float64
    lowest = values.dtype.type(LOWEST_EXPONENT if is_double else LOWEST_SINGLE_EXPONENT)
    is_zero = values < (IMPOSSIBLE if is_double else lowest)
    return np.where(is_zero, values.dtype.type(0.0), np.exp(np.maximum(values, lowest)))


def logarithm(values: Any) -> Any:
    """Return log(values) of nonnegative doubles; −inf below the smallest normal double.

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
    return np.where(np.arange(len(values)) == place, values.dtype.type(0.0), values)


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
    """Return the sum of the entries, in double precision."""
    return values.sum(dtype=np.float64)


@register_jitable
def aligned(rows: Any, columns: Any) -> Any:
    """Return an uninitialised table of doubles, (rows, columns), whose first entry is aligned to a cache line."""
    buffer = np.empty(rows * columns + WIDTH)
    return buffer[_ahead(buffer) :][: rows * columns].reshape(rows, columns)


@register_jitable
def aligned_like(table: Any, rows: Any, columns: Any) -> Any:
    """Return the same of the floating type of another table."""
    buffer = np.empty(rows * columns + 2 * WIDTH, table.dtype)
    return buffer[_ahead(buffer) :][: rows * columns].reshape(rows, columns)


@register_jitable
def _ahead(buffer: Any) -> Any:
    """Entries before the first one that begins a cache line."""
    return -(buffer.ctypes.data // buffer.itemsize) % (WIDTH * 8 // buffer.itemsize)
