"""Where the entries of a band stand: a few neighbouring columns of each row, on a circle if need be."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.propagation import band as bands

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Fewer states are run as a matrix, and so are bands that fill a larger share of it.
FEWEST_STATES, MOST_OF_ROW = 64, 0.25


class Square:
    """Where the entries of a matrix stand: the counterpart of `Layout` for all K² of them."""

    def __init__(self, n_states: int) -> None:
        self.n_states = n_states

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_states, self.n_states

    def column(self, row: int, place: int) -> int:
        """Column of one entry."""
        return place

    def gather(self, table: NDArray[Any]) -> NDArray[Any]:
        """Entries of a (K, K) table."""
        return np.array(table)

    def diagonal(self) -> Array:
        """A table with ones on the diagonal."""
        return np.eye(self.n_states)


class Layout:
    """Where the entries of a band stand, for rows and for columns.

    Parameters
    ----------
    first : (K,) column of each row's first entry; columns continue at zero after the last
    width : entries of a row
    """

    def __init__(self, first: Index, width: int) -> None:
        self.first = np.ascontiguousarray(first, dtype=np.int64)
        self.width = int(width)

    @property
    def n_states(self) -> int:
        return len(self.first)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_states, self.width

    def column(self, row: int, place: int) -> int:
        """Column of one entry."""
        return int(self.first[row] + place) % self.n_states

    def place(self, rows: Index, columns: Index) -> Index:
        """Where entries (n,) stand in their rows; `width` or more for those outside the band."""
        return np.asarray((columns - self.first[rows]) % self.n_states)

    @cached_property
    def columns(self) -> Index:
        """Column of each entry, (K, width)."""
        found: Index = bands.columns_of(self.first, self.width)
        return found

    @cached_property
    def turned(self) -> Layout:
        """The layout of the transposed band: which states lead to each."""
        first, width = windows(*_entries_of_columns(self.columns), self.n_states)
        return Layout(first, width)

    def gather(self, table: NDArray[Any]) -> NDArray[Any]:
        """Entries (K, width) of a (K, K) table that lie in the band."""
        return np.take_along_axis(table, self.columns, axis=1)

    def diagonal(self) -> Array:
        """A table of the band's form with ones on the diagonal."""
        return (self.columns == np.arange(self.n_states)[:, None]).astype(np.float64)

    def spread(self, entries: Array) -> Array:
        """A (K, K) table with the entries of the band, zeros elsewhere."""
        out = np.zeros((self.n_states, self.n_states))
        np.put_along_axis(out, self.columns, entries, axis=1)
        return out

    def column_sums(self, entries: Array) -> Array:
        """Sums (K,) of the entries in each column."""
        return np.bincount(self.columns.ravel(), entries.ravel(), minlength=self.n_states).astype(np.float64)


def band_of(mask: NDArray[np.bool_]) -> Layout | None:
    """Return the band that holds all entries of a mask (K, K); None where a matrix is as good, or a row is empty."""
    n_states = len(mask)
    if n_states < FEWEST_STATES or not mask.any(axis=1).all():
        return None
    rows, columns = np.nonzero(mask)
    layout = Layout(*windows(rows, columns, n_states))
    return layout if max(layout.width, layout.turned.width) <= MOST_OF_ROW * n_states else None


def windows(rows: Index, columns: Index, n_states: int) -> tuple[Index, int]:
    """Return the narrowest windows of neighbouring columns, on a circle, that hold all entries of each row.

    Parameters
    ----------
    rows, columns : (n,) places of entries, by row and within a row by column
    n_states : number of rows, and of columns

    Returns
    -------
    first : (K,) where each row's window begins; such that it ends before column K where it need not be wrapped
    width : that of the widest window
    """
    begins = np.searchsorted(rows, np.arange(n_states + 1))
    # The widest gap between neighbouring entries of a row, on the circle, is what its window leaves out.
    after = np.empty_like(columns)
    after[:-1] = columns[1:]
    filled = np.flatnonzero(begins[1:] > begins[:-1])
    after[begins[filled + 1] - 1] = columns[begins[filled]] + n_states
    gaps = after - columns
    first, lengths = np.arange(n_states), np.ones(n_states, dtype=np.int64)
    widest = np.maximum.reduceat(gaps, begins[filled]) if len(filled) else np.empty(0, dtype=np.int64)
    is_widest = gaps == np.repeat(widest, np.diff(begins)[filled])
    # of several widest gaps the one beyond the last column is preferred: no window is wrapped without need
    last = np.flatnonzero(is_widest)
    place = np.empty(n_states, dtype=np.int64)
    place[rows[last]] = last
    first[filled] = after[place[filled]] % n_states
    lengths[filled] = n_states - widest + 1
    width = int(lengths.max(initial=1))
    fits = (first + lengths <= n_states) & (first + width > n_states)
    first[fits] = n_states - width
    return first, width


def _entries_of_columns(columns: Index) -> tuple[Index, Index]:
    """Rows and columns of the transposed band's entries, sorted by row and then by column."""
    n_states, width = columns.shape
    order = np.argsort(columns, axis=None, kind="stable")
    return columns.ravel()[order], np.repeat(np.arange(n_states), width)[order]
