"""Counts and flags for compiled passes: log likelihoods that are linear in the observations of each column."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from math import lgamma
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.collapsed.gamma_ratios import log_rising
from subchain.emissions.normal_kernels import STRIP
from subchain.emissions.scaling import exponentiate_columns, exponentiate_strip
from subchain.propagation.compiled import kernel, small_kernel
from subchain.propagation.lanes.observing import (
    add_observations,
    likelihoods,
    log_likelihoods,
    observation_room,
    observe,
)
from subchain.propagation.verbs import implements

Array = NDArray[np.float64]


class LinearCounts(NamedTuple):
    """Log likelihoods Σ_d (slope_d x_d + constant_d), less log x_d! if counts have factorials; unknown x are left out.

    Attributes
    ----------
    values : (N, D), −1 or nan where missing
    slopes, constants : (K, D); slopes may be −inf, constants are finite
    log_factorials : (n,) of the counts below n; (0,) where the likelihood has none
    """

    values: NDArray[Any]
    slopes: Array
    constants: Array
    log_factorials: Array


class RisingCounts(NamedTuple):
    """As `LinearCounts`, plus log Γ(shape_d + x_d) − log Γ(shape_d): counts whose rates are integrated out.

    Attributes
    ----------
    values, slopes, constants, log_factorials : as in `LinearCounts`, all finite
    shapes : (K, D)
    rising : (D, n, K) the last terms of counts below n
    """

    values: NDArray[Any]
    slopes: Array
    constants: Array
    log_factorials: Array
    shapes: Array
    rising: Array


class Amounts(NamedTuple):
    """Room for the counts of a tile, ones where they are known, and the numbers of columns and of unknown counts."""

    amounts: Array
    known: Array
    n: NDArray[np.int64]


@small_kernel
def _part(room, rows, n):
    return room[: rows * n].reshape(rows, n)


@implements(observation_room, LinearCounts)
@implements(observation_room, RisingCounts)
def _room(family, columns):
    size = family.slopes.shape[1] * columns
    return Amounts(np.empty(size), np.empty(size), np.zeros(2, dtype=np.int64))


@kernel
def _read(values, positions, amounts, known):
    """Write counts and whether they are known, (D, n) each; return how many are not."""
    n_missing = 0
    for start in range(0, positions.shape[0], STRIP):
        stop = min(start + STRIP, positions.shape[0])
        for d in range(values.shape[1]):
            x, is_known = amounts[d], known[d]
            for i in range(start, stop):
                value = np.float64(values[positions[i], d])
                x[i] = value if value >= 0.0 else 0.0
                is_known[i] = 1.0 if value >= 0.0 else 0.0
                n_missing += not value >= 0.0
    return n_missing


@implements(observe, LinearCounts)
@implements(observe, RisingCounts)
def _observe(family, positions, seen):
    n, rows = positions.shape[0], family.slopes.shape[1]
    seen.n[0] = n
    seen.n[1] = _read(family.values, positions, _part(seen.amounts, rows, n), _part(seen.known, rows, n))
    return True


@small_kernel
def _add_column(slope, amounts, row):
    """Add slope · amount; a slope of −inf makes all but zeros impossible."""
    for i in range(row.shape[0]):
        if slope > -np.inf:
            row[i] += slope * amounts[i]
        elif amounts[i] > 0.0:
            row[i] = -np.inf


@kernel
def _linear(x, known, n_missing, slopes, constants, start, stop, out, at):
    """Write Σ_d (slope_d x_d + constant_d known_d) of the columns `start` to `stop` into `out` (K, …) from `at` on."""
    n_states, n_features = slopes.shape
    fours = n_features // 4 * 4
    for k in range(n_states):
        row, slope = out[k, at : at + stop - start], slopes[k]
        row[:] = constants[k].sum() if n_missing == 0 else 0.0
        if n_missing > 0:
            for d in range(n_features):
                constant, is_known = constants[k, d], known[d, start:stop]
                for i in range(row.shape[0]):
                    row[i] += constant * is_known[i]
        whole = 0 if slope.min() == -np.inf else fours
        for d in range(0, whole, 4):
            x0, x1, x2, x3 = x[d, start:stop], x[d + 1, start:stop], x[d + 2, start:stop], x[d + 3, start:stop]
            a0, a1, a2, a3 = slope[d], slope[d + 1], slope[d + 2], slope[d + 3]
            for i in range(row.shape[0]):
                row[i] += a0 * x0[i] + a1 * x1[i] + a2 * x2[i] + a3 * x3[i]
        for d in range(whole, n_features):
            _add_column(slope[d], x[d, start:stop], row)


@kernel
def _take_factorials(amounts, known, out):
    """Subtract the log factorials of counts (D, n) from `out` (n,); `known` are those of small counts, if any are."""
    size = known.shape[0]
    if size > 0:
        for d in range(amounts.shape[0]):
            for i in range(amounts.shape[1]):
                amount = amounts[d, i]
                out[i] -= known[np.int64(amount)] if amount < size else lgamma(amount + 1.0)


@implements(likelihoods, LinearCounts)
def _likelihoods(family, seen, out, shift):
    n, rows = seen.n[0], family.slopes.shape[1]
    amounts, known, shifts = _part(seen.amounts, rows, n), _part(seen.known, rows, n), shift.reshape(1, n)
    logs = np.empty((out.shape[0], STRIP))
    for start in range(0, n, STRIP):
        stop = min(start + STRIP, n)
        _linear(amounts, known, seen.n[1], family.slopes, family.constants, start, stop, logs, np.int64(0))
        exponentiate_strip(logs, 0, out, start, stop, shifts)
    _take_factorials(amounts, family.log_factorials, shift)


@implements(log_likelihoods, LinearCounts)
def _logs(family, seen, out):
    n, rows = seen.n[0], family.slopes.shape[1]
    amounts, known, common = _part(seen.amounts, rows, n), _part(seen.known, rows, n), np.zeros(n)
    for start in range(0, n, STRIP):
        stop = min(start + STRIP, n)
        _linear(amounts, known, seen.n[1], family.slopes, family.constants, start, stop, out, start)
    _take_factorials(amounts, family.log_factorials, common)
    for k in range(out.shape[0]):
        for i in range(n):
            out[k, i] += common[i]


@kernel
def _add_rising(amounts, shapes, rising, out):
    """Add log Γ(shape + count) − log Γ(shape) to `out` (K, n); unknown counts are zeros."""
    for d in range(amounts.shape[0]):
        for i in range(amounts.shape[1]):
            count = amounts[d, i]
            if count < rising.shape[1]:
                row = rising[d, np.int64(count)]
                for k in range(out.shape[0]):
                    out[k, i] += row[k]
            else:
                for k in range(out.shape[0]):
                    out[k, i] += log_rising(shapes[k, d], count)


@small_kernel
def _rising_logs(family, seen, out):
    n, rows = seen.n[0], family.slopes.shape[1]
    amounts, known = _part(seen.amounts, rows, n), _part(seen.known, rows, n)
    _linear(amounts, known, seen.n[1], family.slopes, family.constants, np.int64(0), n, out, np.int64(0))
    _add_rising(amounts, family.shapes, family.rising, out)
    return amounts


@implements(likelihoods, RisingCounts)
def _rising_likelihoods(family, seen, out, shift):
    amounts = _rising_logs(family, seen, out)
    exponentiate_columns(out, shift.reshape(1, shift.shape[0]))
    _take_factorials(amounts, family.log_factorials, shift)


@implements(log_likelihoods, RisingCounts)
def _rising_log_likelihoods(family, seen, out):
    amounts, common = _rising_logs(family, seen, out), np.zeros(seen.n[0])
    _take_factorials(amounts, family.log_factorials, common)
    for k in range(out.shape[0]):
        for i in range(common.shape[0]):
            out[k, i] += common[i]


@small_kernel
def _weighted(weights, values):
    """Σ weight · value."""
    total = 0.0
    for i in range(weights.shape[0]):
        total += weights[i] * values[i]
    return total


@kernel
def _add_linear(x, known, n_missing, marginals, weight, total):
    """Add Σ γ x to `total` and Σ γ over known entries to `weight`, (K, D) each."""
    fours = x.shape[0] // 4 * 4
    for start in range(0, x.shape[1], STRIP):
        stop = min(start + STRIP, x.shape[1])
        for k in range(marginals.shape[0]):
            row = marginals[k, start:stop]
            whole = 0.0
            for i in range(row.shape[0]):
                whole += row[i]
            for d in range(0, fours, 4):
                x0, x1, x2, x3 = x[d, start:stop], x[d + 1, start:stop], x[d + 2, start:stop], x[d + 3, start:stop]
                s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
                for i in range(row.shape[0]):
                    s0 += row[i] * x0[i]
                    s1 += row[i] * x1[i]
                    s2 += row[i] * x2[i]
                    s3 += row[i] * x3[i]
                total[k, d] += s0
                total[k, d + 1] += s1
                total[k, d + 2] += s2
                total[k, d + 3] += s3
            for d in range(fours, x.shape[0]):
                total[k, d] += _weighted(row, x[d, start:stop])
            for d in range(x.shape[0]):
                weight[k, d] += whole if n_missing == 0 else _weighted(row, known[d, start:stop])


@implements(add_observations, LinearCounts)
@implements(add_observations, RisingCounts)
def _add(family, seen, marginals, sums):
    n, rows = seen.n[0], family.slopes.shape[1]
    amounts, known = _part(seen.amounts, rows, n), _part(seen.known, rows, n)
    weight, total = sums[: family.slopes.size], sums[family.slopes.size :]
    shape = family.slopes.shape
    _add_linear(amounts, known, seen.n[1], marginals, weight.reshape(shape), total.reshape(shape))
