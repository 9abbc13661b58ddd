# mypy: disable-error-code="no-untyped-def"
"""Banded matrices in compact form, and what a banded chain can reach.

A band keeps, for each of K rows, `width` neighbouring entries and the column of the first of them; columns continue at
zero after K − 1, so that rows on a circle are bands too. What is not in the band is zero. Memory and the time of a
product with a vector are O(K · width).

A kernel that computes out[k] = Σ_j x[j] · A[j, k] takes the matrix A where this is dense, and the band of Aᵀ, whose row
k lists the states that lead to k, where it is banded; a kernel that computes Σ_k A[j, k] · x[k] takes Aᵀ, or the band
of A.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.compiled import kernel, part

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Band(NamedTuple):
    """Rows of a banded matrix.

    Attributes
    ----------
    first : (K,) column of each row's first entry
    weights : (K, width) entry c of row k stands in column (first[k] + c) modulo K
    """

    first: Index
    weights: Array


@part
def wrapped(column, n_states):
    """A column that may lie beyond the last one, on the circle of all columns."""
    return column - n_states if column >= n_states else column


@kernel
def columns_of(first, width):
    """Columns (K, width) of all entries of a band."""
    n_states = first.shape[0]
    out = np.empty((n_states, width), dtype=np.int64)
    for k in range(n_states):
        for c in range(width):
            out[k, c] = wrapped(first[k] + c, n_states)
    return out


@kernel
def transpose(band, first, out):
    """Write the transposed band, whose rows begin at `first`, into `out` (K, width'); others stay as they are."""
    n_states = out.shape[0]
    for j in range(n_states):
        for c in range(band.weights.shape[1]):
            k = wrapped(band.first[j] + c, n_states)
            place = j - first[k] if j >= first[k] else j - first[k] + n_states
            if place < out.shape[1]:
                out[k, place] = band.weights[j, c]


@kernel
def product(band, table, out):
    """Σ_c weights[k, c] · table[first[k] + c] for all columns of a (K, n) table."""
    n_states = out.shape[0]
    for k in range(n_states):
        row = out[k]
        row[:] = 0.0
        for c in range(band.weights.shape[1]):
            weight, other = band.weights[k, c], table[wrapped(band.first[k] + c, n_states)]
            for column in range(row.shape[0]):
                row[column] += weight * other[column]


@kernel
def outer_sums(before, after, first, sums):
    """Add Σ_n before[j, n] · after[first[j] + c, n] to `sums` (K, width); tables are (K, n)."""
    n_states = sums.shape[0]
    for j in range(n_states):
        for c in range(sums.shape[1]):
            row, total = after[wrapped(first[j] + c, n_states)], 0.0
            for column in range(before.shape[1]):
                total += before[j, column] * row[column]
            sums[j, c] += total


@kernel
def walk(initial, band, points, states):
    """Draw a path of a Markov chain: each of `points` (n,) in [0, 1) chooses a state; `states` (n,) output.

    States are taken in their order, as a matrix would have them.
    """
    n_states, width = band.weights.shape
    for position in range(points.shape[0]):
        before = states[position - 1] if position else -1
        first, count = (band.first[before], width) if position else (0, n_states)
        beyond = max(first + count - n_states, 0)  # entries that continue at state zero, and so come first
        total = 0.0
        for c in range(count):
            total += band.weights[before, c] if position else initial[c]
        running, state = 0.0, 0
        for i in range(count):
            c = (i + count - beyond) % count
            weight = band.weights[before, c] if position else initial[c]
            if weight > 0.0:
                state = wrapped(first + c, n_states)
                running += weight
                if running > points[position] * total:
                    break
        states[position] = state


# ---- what can be reached ---------------------------------------------------------------------------------------------


@kernel
def reached(into, possible):
    """Mark, in place, all states that can be reached from those that are marked; `into` is the transposed band."""
    n_states = possible.shape[0]
    grown, sweep = True, 0
    while grown:
        grown = False
        for i in range(n_states):
            k = i if sweep % 2 == 0 else n_states - 1 - i
            if not possible[k]:
                for c in range(into.weights.shape[1]):
                    if into.weights[k, c] > 0.0 and possible[wrapped(into.first[k] + c, n_states)]:
                        possible[k] = grown = True
                        break
        sweep += 1
