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
    add_moments,
    center_at,
    quadratic,
    quadratic_strip,
    separate_moments,
    separate_squares,
    separate_strip,
)
from subchain.emissions.scaling import exponentiate_strip
from subchain.propagation.compiled import small_kernel
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
def _room(family, columns):
    return Vectors(np.empty(family.offsets.shape[1] * columns), np.zeros(1, dtype=np.int64))


@implements(observe, FullNormal)
@implements(observe, SeparateNormal)
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
def _add_separately(family, seen, marginals, sums):
    moments = sums.reshape(3, family.offsets.shape[0], family.offsets.shape[1])
    separate_moments(_in_use(seen, family.offsets.shape[1]), marginals, moments[1], moments[2])
    for k in range(marginals.shape[0]):
        total = 0.0
        for i in range(marginals.shape[1]):
            total += marginals[k, i]
        moments[0, k] += total
