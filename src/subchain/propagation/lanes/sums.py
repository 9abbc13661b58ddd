"""Sums over the steps and lanes of tables: expected transitions, and lanes that count more or less than once."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.numerics.vectors import first, load, total, width, zeros
from subchain.propagation.band import wrapped
from subchain.propagation.compiled import kernel, part, small_kernel

#: Vectors of columns that are multiplied and summed at a time, so that their rows stay in the first-level cache.
BLOCK = 64


@small_kernel
def _segments(offsets, longest, out):
    """Stretches of columns whose predecessors are contiguous as well, as rows (before, at, count); return their number.

    None is longer than `longest` unless it is a single step.
    """
    n = 0
    for step in range(1, offsets.shape[0] - 1):
        before, at, count = offsets[step - 1], offsets[step], offsets[step + 1] - offsets[step]
        if n > 0 and out[n - 1, 0] + out[n - 1, 2] == before and out[n - 1, 2] + count <= longest:
            out[n - 1, 2] += count
        else:
            out[n, 0], out[n, 1], out[n, 2] = before, at, count
            n += 1
    return n


@part
def _add_products(sums, alpha, weighted, states, j, k, before, at, mask):
    """Add the products of four rows of `alpha` with four of `weighted`, a vector of columns, to sixteen sums."""
    x0, x1 = load(alpha, states[j], before, mask), load(alpha, states[j + 1], before, mask)
    x2, x3 = load(alpha, states[j + 2], before, mask), load(alpha, states[j + 3], before, mask)
    p0, p1, p2, p3, q0, q1, q2, q3, r0, r1, r2, r3, s0, s1, s2, s3 = sums
    y = load(weighted, states[k], at, mask)
    p0, p1, p2, p3 = p0 + x0 * y, p1 + x1 * y, p2 + x2 * y, p3 + x3 * y
    y = load(weighted, states[k + 1], at, mask)
    q0, q1, q2, q3 = q0 + x0 * y, q1 + x1 * y, q2 + x2 * y, q3 + x3 * y
    y = load(weighted, states[k + 2], at, mask)
    r0, r1, r2, r3 = r0 + x0 * y, r1 + x1 * y, r2 + x2 * y, r3 + x3 * y
    y = load(weighted, states[k + 3], at, mask)
    s0, s1, s2, s3 = s0 + x0 * y, s1 + x1 * y, s2 + x2 * y, s3 + x3 * y
    return p0, p1, p2, p3, q0, q1, q2, q3, r0, r1, r2, r3, s0, s1, s2, s3


@part
def _pair_tile(alpha, weighted, segments, states, j, k, out):
    """Sums for the states j … j + 3 before the states k … k + 3, added to `out`."""
    z, wide = zeros(alpha), width(alpha)
    sums = (z, z, z, z, z, z, z, z, z, z, z, z, z, z, z, z)
    for segment in range(segments.shape[0]):
        before, at, count = segments[segment, 0], segments[segment, 1], segments[segment, 2]
        column = 0
        while column + wide <= count:
            sums = _add_products(sums, alpha, weighted, states, j, k, before + column, at + column, None)
            column += wide
        if column < count:
            mask = first(count - column, alpha)
            sums = _add_products(sums, alpha, weighted, states, j, k, before + column, at + column, mask)
    for i in range(16):
        row, column = j + i % 4, k + i // 4
        out[row, column] += total(sums[i])


@kernel
def pair_sums(alpha, weighted, offsets, sums):
    """Add Σ α_{t−1} ⊗ weighted_t over all steps and lanes to `sums`; times the transition matrix, these are counts.

    Sums over a block of columns have the precision of the tables, what they add up to that of doubles.
    """
    n_states = sums.shape[0]
    whole = -(-n_states // 4) * 4
    states = np.minimum(np.arange(whole), n_states - 1)
    padded = np.zeros((whole, whole))
    segments = np.empty((offsets.shape[0], 3), dtype=np.int64)
    longest = BLOCK * width(alpha)
    n_segments = _segments(offsets, longest, segments)
    start = 0
    while start < n_segments:
        stop, columns = start, 0
        while stop < n_segments and columns < longest:
            columns += segments[stop, 2]
            stop += 1
        block = segments[start:stop]
        for j in range(0, whole, 4):
            for k in range(0, whole, 4):
                _pair_tile(alpha, weighted, block, states, j, k, padded)
        start = stop
    sums += padded[:n_states, :n_states]


@kernel
def band_pair_sums(alpha, weighted, offsets, first, sums):
    """The same for the entries of a band alone: `sums` (K, width), whose rows begin at the columns `first`."""
    n_states, n_columns = sums.shape
    segments = np.empty((offsets.shape[0], 3), dtype=np.int64)
    n_segments = _segments(offsets, BLOCK * width(alpha), segments)
    for segment in range(n_segments):
        before, at, count = segments[segment, 0], segments[segment, 1], segments[segment, 2]
        for j in range(n_states):
            x = alpha[j, before : before + count]
            for c in range(n_columns):
                y = weighted[wrapped(first[j] + c, n_states), at : at + count]
                total = 0.0
                for column in range(count):
                    total += x[column] * y[column]
                sums[j, c] += total


@kernel
def weigh(table, offsets, weights):
    """Multiply each lane's columns by its weight."""
    for k in range(table.shape[0]):
        for step in range(offsets.shape[0] - 1):
            start = offsets[step]
            for lane in range(offsets[step + 1] - start):
                table[k, start + lane] *= weights[lane]
