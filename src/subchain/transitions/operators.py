"""Transition weights as an operator: what engines and inference may ask of them, whatever form they are kept in.

`Dense` keeps a (K, K) matrix. `Banded` keeps the entries of a band around the diagonal (or on a circle), (K, width), so
that a chain whose states lead to few others costs O(K · width) in time and memory. Expected counts of transitions have
the form of the weights that they belong to: (K, K), or (K, width).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from subchain.propagation import band as bands
from subchain.propagation.band import Band

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class TransitionOperator(Protocol):
    """Weights A of transitions between K states; rows may sum to less than one.

    Attributes
    ----------
    weights : in the operator's own form, which is also that of counts
    """

    weights: Array

    @property
    def n_states(self) -> int: ...

    def apply(self, table: Array) -> Array:
        """Carry the columns of a (K, n) table one step forward: Σ_j A[j, k] · table[j]."""
        ...

    def apply_transposed(self, table: Array) -> Array:
        """Carry the columns of a (K, n) table one step back: Σ_k A[j, k] · table[k]."""
        ...

    def accumulate(self, before: Array, after: Array, sums: Array) -> None:
        """Add Σ_n before[j, n] · after[k, n] to sums of the operator's form; tables are (K, n)."""
        ...

    def weight(self, i: int, j: int) -> float:
        """Return A[i, j]."""
        ...

    def dense(self) -> Array:
        """Return A as a matrix (K, K)."""
        ...

    def mapped(self, function: Callable[[Array], Array]) -> TransitionOperator:
        """Return the operator with a function applied to every weight; zeros outside its form stay zeros."""
        ...


class Dense:
    """Weights as a matrix, (K, K).

    Examples
    --------
    >>> moves = Dense(np.array([[0.9, 0.1], [0.0, 1.0]]))
    >>> moves.apply(np.array([[0.5], [0.5]])).ravel()
    array([0.45, 0.55])
    """

    def __init__(self, weights: Array) -> None:
        self.weights = weights

    @property
    def n_states(self) -> int:
        return len(self.weights)

    @cached_property
    def matrix(self) -> Array:
        """The weights with rows one after the other in memory."""
        return np.ascontiguousarray(self.weights)

    @cached_property
    def transposed(self) -> Array:
        """The transposed matrix, rows one after the other in memory."""
        return np.ascontiguousarray(self.weights.T)

    def apply(self, table: Array) -> Array:
        return np.asarray(self.transposed @ table)

    def apply_transposed(self, table: Array) -> Array:
        return np.asarray(self.matrix @ table)

    def accumulate(self, before: Array, after: Array, sums: Array) -> None:
        sums += before @ after.T

    def weight(self, i: int, j: int) -> float:
        return float(self.weights[i, j])

    def dense(self) -> Array:
        return self.weights

    def mapped(self, function: Callable[[Array], Array]) -> Dense:
        return Dense(function(self.weights))


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

    def gather(self, table: Array) -> Array:
        """Entries (K, width) of a (K, K) table that lie in the band."""
        out = np.empty((self.n_states, self.width), dtype=np.float64)
        bands.gather(self.first, np.ascontiguousarray(table, dtype=np.float64), out)
        return out

    def spread(self, entries: Array) -> Array:
        """A (K, K) table with the entries of the band, zeros elsewhere."""
        out = np.zeros((self.n_states, self.n_states))
        np.put_along_axis(out, self.columns, entries, axis=1)
        return out

    def column_sums(self, entries: Array) -> Array:
        """Sums (K,) of the entries in each column."""
        return np.bincount(self.columns.ravel(), entries.ravel(), minlength=self.n_states)


class Banded:
    """Weights of a band, (K, width).

    Examples
    --------
    >>> moves = Banded(Layout(np.array([0, 1, 1]), 2), np.array([[0.9, 0.1], [0.7, 0.3], [0.0, 1.0]]))
    >>> moves.dense()
    array([[0.9, 0.1, 0. ],
           [0. , 0.7, 0.3],
           [0. , 0. , 1. ]])
    >>> moves.apply(np.array([[1.0], [1.0], [0.0]])).ravel()
    array([0.9, 0.8, 0.3])
    """

    def __init__(self, layout: Layout, weights: Array) -> None:
        self.layout = layout
        self.weights = weights

    @property
    def n_states(self) -> int:
        return self.layout.n_states

    @cached_property
    def out_of(self) -> Band:
        """Weights of what each state leads to."""
        return Band(self.layout.first, np.ascontiguousarray(self.weights))

    @cached_property
    def into(self) -> Band:
        """Weights of what leads to each state."""
        turned = self.layout.turned
        weights = np.empty((self.n_states, turned.width))
        bands.transpose(self.out_of, turned.first, weights)
        return Band(turned.first, weights)

    def apply(self, table: Array) -> Array:
        return _product(self.into, table)

    def apply_transposed(self, table: Array) -> Array:
        return _product(self.out_of, table)

    def accumulate(self, before: Array, after: Array, sums: Array) -> None:
        bands.outer_sums(np.ascontiguousarray(before), np.ascontiguousarray(after), self.layout.first, sums)

    def weight(self, i: int, j: int) -> float:
        place = (j - self.layout.first[i]) % self.n_states
        return float(self.weights[i, place]) if place < self.layout.width else 0.0

    def dense(self) -> Array:
        return self.layout.spread(self.weights)

    def mapped(self, function: Callable[[Array], Array]) -> Banded:
        return Banded(self.layout, function(self.weights))


def as_operator(given: Array | TransitionOperator) -> TransitionOperator:
    """Return an operator; a matrix becomes a dense one."""
    return Dense(given) if isinstance(given, np.ndarray) else given


def _product(band: Band, table: Array) -> Array:
    out = np.empty_like(table, order="C")
    bands.product(band, np.ascontiguousarray(table), out)
    return out


# ---- from a mask to a band -------------------------------------------------------------------------------------------


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
