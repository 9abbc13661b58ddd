"""Compiled loops of the Gaussian families: whitened squared distances and weighted moments.

Observations are (D, n), one contiguous row per coordinate, so that every inner loop runs over observations and is
vectorised. A strip of `STRIP` observations stays in the first-level cache while all states are computed for it. Values
are read into locals before anything is stored, because the compiler must assume that arrays may overlap.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.checks import as_matrix
from subchain.errors import InputError
from subchain.numerics.linking import linked

Array = NDArray[np.float64]

#: Observations per strip; not a power of two, so that rows do not compete for the same cache sets.
STRIP = 320

FASTMATH = {"contract", "reassoc", "nsz", "arcp", "afn"}  # without nnan and ninf: nan marks missing values


#: Number of Student t factors 1 + z² / ν that are multiplied before one logarithm is taken.
TOGETHER = 8


def even(n_features: int) -> int:
    """Round D up to an even number: the kernels of full covariances work on pairs of coordinates, padded with zeros."""
    return n_features + n_features % 2


def centered(values: NDArray[Any], origin: Array) -> tuple[Array, bool]:
    """Return observations minus `origin` as (even(D), n), and whether any coordinate is missing (nan)."""
    rows = as_matrix(np.asarray(values))
    n_features = len(origin)
    if rows.shape[1] != n_features:
        raise InputError(
            f"the observations have {rows.shape[1]} columns, but the parameters are for {n_features}; "
            "give the columns that the model was fitted to."
        )
    if rows.dtype not in (np.float64, np.float32):
        rows = rows.astype(np.float64)
    out = np.empty((even(n_features), len(rows)))
    out[n_features:] = 0.0
    return out, bool(_center(np.ascontiguousarray(rows), origin, out))


@linked(fastmath=FASTMATH, error_model="numpy")
def _center(values, origin, out):  # type: ignore[no-untyped-def]
    missing = False
    for start in range(0, values.shape[0], STRIP):
        stop = min(start + STRIP, values.shape[0])
        for d in range(values.shape[1]):
            zero, row = origin[d], out[d]
            for r in range(start, stop):
                value = values[r, d] - zero
                missing |= value != value
                row[r] = value
    return missing


@linked(fastmath=FASTMATH, error_model="numpy")
def center_at(values, positions, origin, out):  # type: ignore[no-untyped-def]
    """Write the observations at some positions (n,) minus `origin` (D,) into `out` (D or more, n), zeros in other rows.

    Return whether any coordinate is missing.
    """
    missing, n_features = False, values.shape[1]
    out[n_features:] = 0.0
    for start in range(0, positions.shape[0], STRIP):
        stop = min(start + STRIP, positions.shape[0])
        for d in range(n_features):
            zero, row = origin[d], out[d]
            for r in range(start, stop):
                value = values[positions[r], d] - zero
                missing |= value != value
                row[r] = value
    return missing


# ---- full covariances ------------------------------------------------------------------------------------------------
#
# z = F x − c is computed four coordinates at a time (the last two of D = 4 j + 2 as a pair). The off-diagonal 4 × 4
# tiles of F add the contributions of earlier coordinates to `z`; the diagonal tile completes z, adds its squares to the
# result and resets `z` to zero for the next four. The first coordinates have no earlier ones and need no `z`.


@linked(fastmath=FASTMATH, error_model="numpy")
def _first_two(factor, offset, x, start, width, constant, out):  # type: ignore[no-untyped-def]
    x0, x1 = x[0][start : start + width], x[1][start : start + width]
    a0, b0, b1 = factor[0, 0], factor[1, 0], factor[1, 1]
    e0, e1 = offset[0], offset[1]
    for r in range(width):
        y0, y1 = x0[r], x1[r]
        t0 = a0 * y0 - e0
        t1 = b0 * y0 + b1 * y1 - e1
        out[r] = constant - 0.5 * (t0 * t0 + t1 * t1)


@linked(fastmath=FASTMATH, error_model="numpy")
def _first_four(factor, offset, x, start, width, constant, out):  # type: ignore[no-untyped-def]
    x0, x1 = x[0][start : start + width], x[1][start : start + width]
    x2, x3 = x[2][start : start + width], x[3][start : start + width]
    a0 = factor[0, 0]
    b0, b1 = factor[1, 0], factor[1, 1]
    c0, c1, c2 = factor[2, 0], factor[2, 1], factor[2, 2]
    d0, d1, d2, d3 = factor[3, 0], factor[3, 1], factor[3, 2], factor[3, 3]
    e0, e1, e2, e3 = offset[0], offset[1], offset[2], offset[3]
    for r in range(width):
        y0, y1, y2, y3 = x0[r], x1[r], x2[r], x3[r]
        t0 = a0 * y0 - e0
        t1 = b0 * y0 + b1 * y1 - e1
        t2 = c0 * y0 + c1 * y1 + c2 * y2 - e2
        t3 = d0 * y0 + d1 * y1 + d2 * y2 + d3 * y3 - e3
        out[r] = constant - 0.5 * (t0 * t0 + t1 * t1 + t2 * t2 + t3 * t3)


@linked(fastmath=FASTMATH, error_model="numpy")
def _tile_of_four(factor, i, j, x, start, width, z):  # type: ignore[no-untyped-def]
    z0, z1, z2, z3 = z[0][:width], z[1][:width], z[2][:width], z[3][:width]
    x0, x1 = x[j][start : start + width], x[j + 1][start : start + width]
    x2, x3 = x[j + 2][start : start + width], x[j + 3][start : start + width]
    a0, a1, a2, a3 = factor[i, j], factor[i, j + 1], factor[i, j + 2], factor[i, j + 3]
    b0, b1, b2, b3 = factor[i + 1, j], factor[i + 1, j + 1], factor[i + 1, j + 2], factor[i + 1, j + 3]
    c0, c1, c2, c3 = factor[i + 2, j], factor[i + 2, j + 1], factor[i + 2, j + 2], factor[i + 2, j + 3]
    d0, d1, d2, d3 = factor[i + 3, j], factor[i + 3, j + 1], factor[i + 3, j + 2], factor[i + 3, j + 3]
    for r in range(width):
        y0, y1, y2, y3 = x0[r], x1[r], x2[r], x3[r]
        z0[r] += a0 * y0 + a1 * y1 + a2 * y2 + a3 * y3
        z1[r] += b0 * y0 + b1 * y1 + b2 * y2 + b3 * y3
        z2[r] += c0 * y0 + c1 * y1 + c2 * y2 + c3 * y3
        z3[r] += d0 * y0 + d1 * y1 + d2 * y2 + d3 * y3


@linked(fastmath=FASTMATH, error_model="numpy")
def _finish_four(factor, offset, i, x, start, width, z, out):  # type: ignore[no-untyped-def]
    z0, z1, z2, z3 = z[0][:width], z[1][:width], z[2][:width], z[3][:width]
    x0, x1 = x[i][start : start + width], x[i + 1][start : start + width]
    x2, x3 = x[i + 2][start : start + width], x[i + 3][start : start + width]
    a0 = factor[i, i]
    b0, b1 = factor[i + 1, i], factor[i + 1, i + 1]
    c0, c1, c2 = factor[i + 2, i], factor[i + 2, i + 1], factor[i + 2, i + 2]
    d0, d1, d2, d3 = factor[i + 3, i], factor[i + 3, i + 1], factor[i + 3, i + 2], factor[i + 3, i + 3]
    e0, e1, e2, e3 = offset[i], offset[i + 1], offset[i + 2], offset[i + 3]
    for r in range(width):
        y0, y1, y2, y3 = x0[r], x1[r], x2[r], x3[r]
        t0 = z0[r] - e0 + a0 * y0
        t1 = z1[r] - e1 + b0 * y0 + b1 * y1
        t2 = z2[r] - e2 + c0 * y0 + c1 * y1 + c2 * y2
        t3 = z3[r] - e3 + d0 * y0 + d1 * y1 + d2 * y2 + d3 * y3
        out[r] -= 0.5 * (t0 * t0 + t1 * t1 + t2 * t2 + t3 * t3)
        z0[r] = 0.0
        z1[r] = 0.0
        z2[r] = 0.0
        z3[r] = 0.0


@linked(fastmath=FASTMATH, error_model="numpy")
def _tile_of_two(factor, i, j, x, start, width, z):  # type: ignore[no-untyped-def]
    z0, z1 = z[0][:width], z[1][:width]
    x0, x1 = x[j][start : start + width], x[j + 1][start : start + width]
    x2, x3 = x[j + 2][start : start + width], x[j + 3][start : start + width]
    a0, a1, a2, a3 = factor[i, j], factor[i, j + 1], factor[i, j + 2], factor[i, j + 3]
    b0, b1, b2, b3 = factor[i + 1, j], factor[i + 1, j + 1], factor[i + 1, j + 2], factor[i + 1, j + 3]
    for r in range(width):
        y0, y1, y2, y3 = x0[r], x1[r], x2[r], x3[r]
        z0[r] += a0 * y0 + a1 * y1 + a2 * y2 + a3 * y3
        z1[r] += b0 * y0 + b1 * y1 + b2 * y2 + b3 * y3


@linked(fastmath=FASTMATH, error_model="numpy")
def _finish_two(factor, offset, i, x, start, width, z, out):  # type: ignore[no-untyped-def]
    z0, z1 = z[0][:width], z[1][:width]
    x0, x1 = x[i][start : start + width], x[i + 1][start : start + width]
    a0, b0, b1 = factor[i, i], factor[i + 1, i], factor[i + 1, i + 1]
    e0, e1 = offset[i], offset[i + 1]
    for r in range(width):
        y0, y1 = x0[r], x1[r]
        t0 = z0[r] - e0 + a0 * y0
        t1 = z1[r] - e1 + b0 * y0 + b1 * y1
        out[r] -= 0.5 * (t0 * t0 + t1 * t1)
        z0[r] = 0.0
        z1[r] = 0.0


@linked(fastmath=FASTMATH, error_model="numpy")
def quadratic_strip(x, start, stop, factors, offsets, constants, z, out, at):  # type: ignore[no-untyped-def]
    """Write constant − ½ |F x − offset|² of the columns `start` to `stop` of `x` into those of `out` from `at` on.

    `x` is (D, n) with D even, `factors` (K, D, D) lower triangular, `offsets` (K, D), `constants` (K,); `z` is scratch
    (4, STRIP), zeros before and after.
    """
    n_states, n_features, _ = factors.shape
    fours, width = n_features // 4 * 4, stop - start
    for k in range(n_states):
        factor, offset, row = factors[k], offsets[k], out[k][at : at + width]
        if n_features == 2:
            _first_two(factor, offset, x, start, width, constants[k], row)
            continue
        _first_four(factor, offset, x, start, width, constants[k], row)
        for i in range(4, fours, 4):
            for j in range(0, i, 4):
                _tile_of_four(factor, i, j, x, start, width, z)
            _finish_four(factor, offset, i, x, start, width, z, row)
        if fours < n_features:
            for j in range(0, fours, 4):
                _tile_of_two(factor, fours, j, x, start, width, z)
            _finish_two(factor, offset, fours, x, start, width, z, row)


@linked(fastmath=FASTMATH, error_model="numpy")
def quadratic(x, factors, offsets, constants, out):  # type: ignore[no-untyped-def]
    """Write constant − ½ |F x − offset|² for all states into `out` (K, n); see `quadratic_strip`."""
    z = np.zeros((4, STRIP))
    for start in range(0, x.shape[1], STRIP):
        quadratic_strip(x, start, min(start + STRIP, x.shape[1]), factors, offsets, constants, z, out, start)


@linked(fastmath=FASTMATH, error_model="numpy")
def _moments_of_pair(x, i, start, width, weights, t, first, second):  # type: ignore[no-untyped-def]
    """Add the weighted moments of coordinates i, i + 1; leave weight · coordinate in `t` for the other products."""
    t0, t1 = t[0][:width], t[1][:width]
    x0, x1 = x[i][start : start + width], x[i + 1][start : start + width]
    s0, s1, s00, s10, s11 = 0.0, 0.0, 0.0, 0.0, 0.0
    for r in range(width):
        weight, y0, y1 = weights[r], x0[r], x1[r]
        w0, w1 = weight * y0, weight * y1
        s0 += w0
        s1 += w1
        s00 += w0 * y0
        s10 += w1 * y0
        s11 += w1 * y1
        t0[r] = w0
        t1[r] = w1
    first[i] += s0
    first[i + 1] += s1
    second[i, i] += s00
    second[i + 1, i] += s10
    second[i + 1, i + 1] += s11


@linked(fastmath=FASTMATH, error_model="numpy")
def _products_with_four(x, i, j, start, width, t, second):  # type: ignore[no-untyped-def]
    t0, t1 = t[0][:width], t[1][:width]
    x0, x1 = x[j][start : start + width], x[j + 1][start : start + width]
    x2, x3 = x[j + 2][start : start + width], x[j + 3][start : start + width]
    a0, a1, a2, a3, b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for r in range(width):
        w0, w1, y0, y1, y2, y3 = t0[r], t1[r], x0[r], x1[r], x2[r], x3[r]
        a0 += w0 * y0
        a1 += w0 * y1
        a2 += w0 * y2
        a3 += w0 * y3
        b0 += w1 * y0
        b1 += w1 * y1
        b2 += w1 * y2
        b3 += w1 * y3
    upper, lower = second[i], second[i + 1]
    upper[j] += a0
    upper[j + 1] += a1
    upper[j + 2] += a2
    upper[j + 3] += a3
    lower[j] += b0
    lower[j + 1] += b1
    lower[j + 2] += b2
    lower[j + 3] += b3


@linked(fastmath=FASTMATH, error_model="numpy")
def _products_with_two(x, i, j, start, width, t, second):  # type: ignore[no-untyped-def]
    t0, t1 = t[0][:width], t[1][:width]
    x0, x1 = x[j][start : start + width], x[j + 1][start : start + width]
    a0, a1, b0, b1 = 0.0, 0.0, 0.0, 0.0
    for r in range(width):
        w0, w1, y0, y1 = t0[r], t1[r], x0[r], x1[r]
        a0 += w0 * y0
        a1 += w0 * y1
        b0 += w1 * y0
        b1 += w1 * y1
    second[i, j] += a0
    second[i, j + 1] += a1
    second[i + 1, j] += b0
    second[i + 1, j + 1] += b1


@linked(fastmath=FASTMATH, error_model="numpy")
def _moments(x, marginals, weight, first, second):  # type: ignore[no-untyped-def]
    t = np.empty((2, STRIP))
    for start in range(0, x.shape[1], STRIP):
        width = min(STRIP, x.shape[1] - start)
        for k in range(marginals.shape[0]):
            weights = marginals[k][start : start + width]
            total = 0.0
            for r in range(width):
                total += weights[r]
            weight[k] += total
            for i in range(0, x.shape[0], 2):
                _moments_of_pair(x, i, start, width, weights, t, first[k], second[k])
                fours = i // 4 * 4
                for j in range(0, fours, 4):
                    _products_with_four(x, i, j, start, width, t, second[k])
                if fours < i:
                    _products_with_two(x, i, fours, start, width, t, second[k])
    for k in range(marginals.shape[0]):
        for i in range(x.shape[0]):
            for j in range(i):
                second[k, j, i] = second[k, i, j]


@linked(fastmath=FASTMATH, error_model="numpy")
def add_moments(x, marginals, weight, first, second):  # type: ignore[no-untyped-def]
    """Add Σ γ (K,), Σ γ x (K, D) and Σ γ x xᵀ (K, D, D) of observations `x` (even(D), n) to sums."""
    n_states, padded, n_features = marginals.shape[0], x.shape[0], first.shape[1]
    own_first, own_second = np.zeros((n_states, padded)), np.zeros((n_states, padded, padded))
    _moments(x, marginals, weight, own_first, own_second)
    for k in range(n_states):
        for i in range(n_features):
            first[k, i] += own_first[k, i]
            for j in range(n_features):
                second[k, i, j] += own_second[k, i, j]


def weighted_moments(x: Array, marginals: Array, n_features: int) -> tuple[Array, Array, Array]:
    """Return Σ γ (K,), Σ γ x (K, D) and Σ γ x xᵀ (K, D, D) of observations `x` (even(D), n); γ = `marginals` (K, n)."""
    n_states, padded = len(marginals), len(x)
    weight = np.zeros(n_states)
    first = np.zeros((n_states, padded))
    second = np.zeros((n_states, padded, padded))
    _moments(x, np.ascontiguousarray(marginals), weight, first, second)
    return weight, first[:, :n_features], second[:, :n_features, :n_features]


# ---- diagonal covariances --------------------------------------------------------------------------------------------


@linked(fastmath=FASTMATH, error_model="numpy")
def separate_strip(x, start, stop, scales, offsets, constants, out, at):  # type: ignore[no-untyped-def]
    """Write constant − ½ Σ_d (scale_d x_d − offset_d)² of the columns `start` to `stop` of `x` into `out` from `at` on.

    `scales` and `offsets` are (K, D), `constants` (K,).
    """
    n_states, n_features = scales.shape
    fours, width = n_features // 4 * 4, stop - start
    for k in range(n_states):
        row, scale, offset = out[k][at : at + width], scales[k], offsets[k]
        row[:] = constants[k]
        for d in range(0, fours, 4):
            x0, x1 = x[d][start : start + width], x[d + 1][start : start + width]
            x2, x3 = x[d + 2][start : start + width], x[d + 3][start : start + width]
            a0, a1, a2, a3 = scale[d], scale[d + 1], scale[d + 2], scale[d + 3]
            e0, e1, e2, e3 = offset[d], offset[d + 1], offset[d + 2], offset[d + 3]
            for r in range(width):
                t0, t1, t2, t3 = a0 * x0[r] - e0, a1 * x1[r] - e1, a2 * x2[r] - e2, a3 * x3[r] - e3
                row[r] -= 0.5 * (t0 * t0 + t1 * t1 + t2 * t2 + t3 * t3)
        for d in range(fours, n_features):
            x0, a0, e0 = x[d][start : start + width], scale[d], offset[d]
            for r in range(width):
                t0 = a0 * x0[r] - e0
                row[r] -= 0.5 * t0 * t0


@linked(fastmath=FASTMATH, error_model="numpy")
def separate_squares(x, scales, offsets, constants, out):  # type: ignore[no-untyped-def]
    """Write constant − ½ Σ_d (scale_d x_d − offset_d)² for all states into `out` (K, n); see `separate_strip`."""
    for start in range(0, x.shape[1], STRIP):
        separate_strip(x, start, min(start + STRIP, x.shape[1]), scales, offsets, constants, out, start)


@linked(fastmath=FASTMATH, error_model="numpy")
def separate_products(x, scales, offsets, out):  # type: ignore[no-untyped-def]
    """Write Π_d (1 + (scale_d x_d − offset_d)²) for all states into `out` (K, n)."""
    n_states, n_features = scales.shape
    for start in range(0, x.shape[1], STRIP):
        width = min(STRIP, x.shape[1] - start)
        for k in range(n_states):
            row = out[k][start : start + width]
            row[:] = 1.0
            for d in range(n_features):
                x0, a0, e0 = x[d][start : start + width], scales[k, d], offsets[k, d]
                for r in range(width):
                    t0 = a0 * x0[r] - e0
                    row[r] *= 1.0 + t0 * t0


@linked(fastmath=FASTMATH, error_model="numpy")
def separate_moments(x, marginals, first, second):  # type: ignore[no-untyped-def]
    """Add Σ γ x and Σ γ x² of observations `x` (D, n) to `first` and `second` (K, D), with γ = `marginals` (K, n)."""
    for start in range(0, x.shape[1], STRIP):
        width = min(STRIP, x.shape[1] - start)
        for k in range(marginals.shape[0]):
            weights = marginals[k][start : start + width]
            for d in range(first.shape[1]):
                x0 = x[d][start : start + width]
                s, ss = 0.0, 0.0
                for r in range(width):
                    y = x0[r]
                    t = weights[r] * y
                    s += t
                    ss += t * y
                first[k, d] += s
                second[k, d] += ss
