"""Gaussian families for compiled passes: complete observations under full or diagonal covariances.

A tile with a missing coordinate is left to the methods of the family.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.normal_kernels import (
    STRIP,
    TOGETHER,
    add_moments,
    center_at,
    quadratic,
    quadratic_strip,
    separate_moments,
    separate_products,
    separate_squares,
    separate_strip,
)
from subchain.emissions.scaling import exponentiate_columns, exponentiate_strip
from subchain.numerics.vectors import WIDTH, load, logarithm, spread, store, times
from subchain.propagation.compiled import ordered_kernel, small_kernel
from subchain.propagation.lanes.observing import (
    add_observations,
    likelihoods,
    log_likelihoods,
    observation_room,
    observe,
)
from subchain.propagation.verbs import implements

Array = NDArray[np.float64]


class FullNormal(NamedTuple):
    """Likelihoods exp{c − ½ |F (x − origin) − e|²}.

    Attributes
    ----------
    values : (N, D)
    origin : (D,)
    factors, offsets, constants : F (K, P, P), e (K, P) and c (K,), where P is D or one more, the next even number
    """

    values: NDArray[Any]
    origin: Array
    factors: Array
    offsets: Array
    constants: Array


class SeparateNormal(NamedTuple):
    """Likelihoods exp{c − ½ Σ_d (s_d (x_d − origin_d) − e_d)²}.

    Attributes
    ----------
    values : (N, D)
    origin : (D,)
    scales, offsets, constants : s (K, D), e (K, D) and c (K,)
    """

    values: NDArray[Any]
    origin: Array
    scales: Array
    offsets: Array
    constants: Array


class FullStudent(NamedTuple):
    """Likelihoods exp{c − p log(1 + |F (x − origin) − e|²)}: as in `FullNormal`, with powers p (K,)."""

    values: NDArray[Any]
    origin: Array
    factors: Array
    offsets: Array
    constants: Array
    powers: Array


class SeparateStudent(NamedTuple):
    """Likelihoods exp{c − Σ_d p_d log(1 + (s_d (x_d − origin_d) − e_d)²)}: as in `SeparateNormal`, with p (K, D)."""

    values: NDArray[Any]
    origin: Array
    scales: Array
    offsets: Array
    constants: Array
    powers: Array


class Vectors(NamedTuple):
    """Room for the coordinates of a tile's observations minus the origin, and how many observations there are."""

    coordinates: Array
    n: NDArray[np.int64]


@small_kernel
def _in_use(seen, rows):
    """The coordinates of a tile's observations, (rows, n)."""
    return seen.coordinates[: rows * seen.n[0]].reshape(rows, seen.n[0])


@implements(observation_room, FullNormal)
@implements(observation_room, SeparateNormal)
@implements(observation_room, FullStudent)
@implements(observation_room, SeparateStudent)
def _room(family, columns):
    return Vectors(np.empty(family.offsets.shape[1] * columns), np.zeros(1, dtype=np.int64))


@implements(observe, FullNormal)
@implements(observe, SeparateNormal)
@implements(observe, FullStudent)
@implements(observe, SeparateStudent)
def _observe(family, positions, seen):
    seen.n[0] = positions.shape[0]
    return not center_at(family.values, positions, family.origin, _in_use(seen, family.offsets.shape[1]))


@implements(likelihoods, FullNormal)
def _likelihoods(family, seen, out, shift):
    x, n = _in_use(seen, family.offsets.shape[1]), seen.n[0]
    logs, z, shifts = np.empty((out.shape[0], STRIP)), np.zeros((4, STRIP)), shift.reshape(1, n)
    for start in range(0, n, STRIP):
        stop = min(start + STRIP, n)
        quadratic_strip(x, start, stop, family.factors, family.offsets, family.constants, z, logs, 0)
        exponentiate_strip(logs, 0, out, start, stop, shifts)


@implements(log_likelihoods, FullNormal)
def _logs(family, seen, out):
    quadratic(_in_use(seen, family.offsets.shape[1]), family.factors, family.offsets, family.constants, out)


@implements(add_observations, FullNormal)
@implements(add_observations, FullStudent)
def _add(family, seen, marginals, sums):
    n_states, n_features = marginals.shape[0], family.origin.shape[0]
    weight, first, second = (
        sums[:n_states],
        sums[n_states : n_states * (1 + n_features)],
        sums[n_states * (1 + n_features) :],
    )
    add_moments(
        _in_use(seen, family.offsets.shape[1]), marginals, weight, first.reshape(n_states, n_features),
        second.reshape(n_states, n_features, n_features),
    )  # fmt: skip


@implements(likelihoods, SeparateNormal)
def _separate_likelihoods(family, seen, out, shift):
    x, n = _in_use(seen, family.offsets.shape[1]), seen.n[0]
    logs, shifts = np.empty((out.shape[0], STRIP)), shift.reshape(1, n)
    for start in range(0, n, STRIP):
        stop = min(start + STRIP, n)
        separate_strip(x, start, stop, family.scales, family.offsets, family.constants, logs, 0)
        exponentiate_strip(logs, 0, out, start, stop, shifts)


@implements(log_likelihoods, SeparateNormal)
def _separate_logs(family, seen, out):
    separate_squares(_in_use(seen, family.offsets.shape[1]), family.scales, family.offsets, family.constants, out)


@implements(add_observations, SeparateNormal)
@implements(add_observations, SeparateStudent)
def _add_separately(family, seen, marginals, sums):
    moments = sums.reshape(3, family.offsets.shape[0], family.offsets.shape[1])
    separate_moments(_in_use(seen, family.offsets.shape[1]), marginals, moments[1], moments[2])
    for k in range(marginals.shape[0]):
        total = 0.0
        for i in range(marginals.shape[1]):
            total += marginals[k, i]
        moments[0, k] += total


@ordered_kernel
def _take_logarithms(table, k, factor, power, constant):
    """Replace row k, of numbers a, by constant − power · log(factor · a)."""
    n, constants = table.shape[1], np.full((1, 1), constant)
    whole = n - n % WIDTH
    for at in range(0, whole, WIDTH):
        logs = logarithm(times(load(table, k, at, None), factor))
        store(table, k, at, None, times(logs, -power) + spread(constants, 0, 0))
    for at in range(whole, n):
        table[k, at] = constant - power * np.log(factor * table[k, at])


@small_kernel
def _student_logs(family, seen, out):
    x, halves = _in_use(seen, family.offsets.shape[1]), np.full(family.constants.shape[0], -0.5)
    quadratic(x, family.factors, family.offsets, halves, out)  # −½ (1 + distance)
    for k in range(out.shape[0]):
        _take_logarithms(out, k, -2.0, family.powers[k], family.constants[k])


@implements(likelihoods, FullStudent)
def _student_likelihoods(family, seen, out, shift):
    _student_logs(family, seen, out)
    exponentiate_columns(out, shift.reshape(1, shift.shape[0]))


@implements(log_likelihoods, FullStudent)
def _student_log_likelihoods(family, seen, out):
    _student_logs(family, seen, out)


@small_kernel
def _separate_student_logs(family, seen, out):
    """Columns with the same power share a logarithm, some at a time."""
    n_states, n_features = family.scales.shape
    x, factors = _in_use(seen, n_features), np.empty_like(out)
    for k in range(n_states):
        out[k] = family.constants[k]
    first = 0
    while first < n_features:
        last = first + 1
        while last < min(first + TOGETHER, n_features) and (family.powers[:, last] == family.powers[:, first]).all():
            last += 1
        scales, offsets = family.scales[:, first:last].copy(), family.offsets[:, first:last].copy()
        separate_products(x[first:last], scales, offsets, factors)
        for k in range(n_states):
            _take_logarithms(factors, k, 1.0, family.powers[k, first], 0.0)
            for i in range(out.shape[1]):
                out[k, i] += factors[k, i]
        first = last


@implements(likelihoods, SeparateStudent)
def _separate_student_likelihoods(family, seen, out, shift):
    _separate_student_logs(family, seen, out)
    exponentiate_columns(out, shift.reshape(1, shift.shape[0]))


@implements(log_likelihoods, SeparateStudent)
def _separate_student_log_likelihoods(family, seen, out):
    _separate_student_logs(family, seen, out)
