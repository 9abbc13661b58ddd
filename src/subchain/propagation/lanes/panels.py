"""Transition matrices laid out for products with the messages of many lanes.

Four rows of a product are computed at a time, from one reading of the messages. A matrix is copied into panels first,
so that the entries that belong to four rows lie side by side; a band needs no copy.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.numerics.vectors import WIDTH, aligned, first, load, spread, store, width, zeros
from subchain.propagation.band import wrapped
from subchain.propagation.compiled import by_kind, kernel, part

#: Bytes of messages that are kept at hand, half of the smallest first-level cache in use.
AT_HAND = 1 << 14


@part
def strip_of(table):
    """Lanes of a table (K, n) that are worked on together: as many as let two messages of all states stay at hand."""
    return max(AT_HAND // (16 * table.shape[0] * WIDTH), 1) * width(table)


def _dense_panels(matrix):
    """A (K, K) matrix with its columns in fours: four columns' entries side by side, K rows, then the next four.

    The last columns are filled up with zeros.
    """
    n_states = matrix.shape[0]
    panels = np.zeros((-(-n_states // 4) * n_states, 4), matrix.dtype)
    for k in range(n_states):
        for j in range(n_states):
            panels[k // 4 * n_states + j, k % 4] = matrix[j, k]
    return panels


def _band_panels(matrix):
    """A band is in the order in which it is read."""
    return matrix


def _dense_mix(panels, k, source, row, lane, n_states):
    """Σ_j matrix[j, k] · source[row + j], and the same for k + 1, k + 2 and k + 3; k is a multiple of four."""
    p, q, r, s = zeros(source), zeros(source), zeros(source), zeros(source)
    panel = k // 4 * n_states
    for j in range(n_states):
        x = load(source, row + j, lane, None)
        p += spread(panels, panel + j, 0) * x
        q += spread(panels, panel + j, 1) * x
        r += spread(panels, panel + j, 2) * x
        s += spread(panels, panel + j, 3) * x
    return p, q, r, s


@part
def _band_row(first, weights, k, source, row, lane, n_states):
    """Σ_c weights[k, c] · source[row + first[k] + c]."""
    out = zeros(source)
    for c in range(weights.shape[1]):
        out += spread(weights, k, c) * load(source, row + wrapped(first[k] + c, n_states), lane, None)
    return out


def _band_mix(panels, k, source, row, lane, n_states):
    """The same for a band; rows beyond the last one are those of the last."""
    first, weights, last = panels.first, panels.weights, n_states - 1
    return (
        _band_row(first, weights, k, source, row, lane, n_states),
        _band_row(first, weights, min(k + 1, last), source, row, lane, n_states),
        _band_row(first, weights, min(k + 2, last), source, row, lane, n_states),
        _band_row(first, weights, min(k + 3, last), source, row, lane, n_states),
    )


panels_of, mix_four = by_kind(_dense_panels, _band_panels), by_kind(_dense_mix, _band_mix)


@part
def _mix_columns(panels, table, at, mask, block, out):
    n_states = table.shape[0]
    for k in range(n_states):
        store(block, k, 0, None, load(table, k, at, mask))
    for k in range(0, n_states, 4):
        mixed = mix_four(panels, k, block, np.int64(0), np.int64(0), n_states)
        for i in range(4):
            if k + i < n_states:
                store(out, k + i, at, mask, mixed[i])


@kernel
def mix(matrix, table, out):
    """Σ_j matrix[j, k] · table[j] for all columns of a (K, n) table."""
    n_states, columns = table.shape
    panels, block = panels_of(matrix), aligned(n_states, WIDTH)
    at = np.int64(0)
    while at + WIDTH <= columns:
        _mix_columns(panels, table, at, None, block, out)
        at += WIDTH
    if at < columns:
        _mix_columns(panels, table, at, first(columns - at), block, out)
