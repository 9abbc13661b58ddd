"""Counts of Gaussian columns with normal-inverse-gamma priors: predictive weights are products of Student t densities.

Sums are about the prior's origin, near the mean of the data, as those of the family are.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.collapsed.counts import EmissionCounts
from subchain.emissions.collapsed.gamma_ratios import half_step
from subchain.emissions.collapsed.observations import real_rows
from subchain.propagation.collapsed.verbs import add, weigh
from subchain.propagation.compiled import seldom
from subchain.propagation.verbs import implements

if TYPE_CHECKING:
    from subchain.emissions.diagonal_gaussian import DiagonalGaussianSums, NormalInverseGamma

Array = NDArray[np.float64]

ROOT_PI = math.sqrt(math.pi)


class DiagonalGaussianCounts(NamedTuple):
    """Counts of D columns by state, and their priors.

    Attributes
    ----------
    values : (N, D), nan where missing
    origin : (D,)
    weight, first, second : (K, D) sums of the known entries minus the origin
    strength, prior_first, prior_second, prior_shape, prior_scale : (K, D) the prior: κ, κ m, κ m², a, b
    location, scale, power, log_constant : (K, D) what follows: a density c · (1 + s² (x − m)²)⁻ᵖ
    is_stale : (K,) whether it has to be worked out anew
    """

    values: NDArray[Any]
    origin: Array
    weight: Array
    first: Array
    second: Array
    strength: Array
    prior_first: Array
    prior_second: Array
    prior_shape: Array
    prior_scale: Array
    location: Array
    scale: Array
    power: Array
    log_constant: Array
    is_stale: NDArray[np.bool_]


def diagonal_gaussian_counts(
    prior: NormalInverseGamma, sums: DiagonalGaussianSums, values: NDArray[Any]
) -> EmissionCounts:
    """Counts of columns whose means and variances have this prior."""
    live = sums.about(prior.origin).scale(1.0)  # a copy
    before = prior.location - prior.origin
    location, scale, power, log_constant = np.zeros((4, *before.shape))
    counts = DiagonalGaussianCounts(
        real_rows(values), prior.origin, live.weight, live.first, live.second, prior.strength, prior.strength * before,
        prior.strength * before**2, prior.shape, prior.scale, location, scale, power, log_constant,
        np.ones(len(before), np.bool_),
    )  # fmt: skip
    return EmissionCounts(counts, live, scratch=("location", "scale", "power", "log_constant", "is_stale"))


@implements(add, DiagonalGaussianCounts)
def _add(counts, position, k, amount):
    counts.is_stale[k] = True
    for d in range(counts.values.shape[1]):
        x = counts.values[position, d] - counts.origin[d]
        if not math.isnan(x):
            counts.weight[k, d] += amount
            counts.first[k, d] += amount * x
            counts.second[k, d] += amount * x * x


@seldom
def _refresh(counts, k):
    """Work out what follows from the sums of a state; rounding may have left them below zero."""
    for d in range(counts.first.shape[1]):
        weight = max(counts.weight[k, d], 0.0)
        strength = counts.strength[k, d] + weight
        pulled = counts.prior_first[k, d] + counts.first[k, d]
        location = pulled / strength
        scatter = counts.second[k, d] + counts.prior_second[k, d] - location * pulled
        shape, spread = counts.prior_shape[k, d] + 0.5 * weight, counts.prior_scale[k, d] + 0.5 * max(scatter, 0.0)
        scale = math.sqrt(0.5 * strength / (spread * (strength + 1.0)))
        counts.location[k, d], counts.scale[k, d], counts.power[k, d] = location, scale, shape + 0.5
        counts.log_constant[k, d] = math.log(half_step(shape) * scale / ROOT_PI)
    counts.is_stale[k] = False


@implements(weigh, DiagonalGaussianCounts)
def _weigh(counts, position, k):
    if counts.is_stale[k]:
        _refresh(counts, k)
    log_total = 0.0
    for d in range(counts.values.shape[1]):
        x = counts.values[position, d] - counts.origin[d]
        if not math.isnan(x):
            z = counts.scale[k, d] * (x - counts.location[k, d])
            log_total += counts.log_constant[k, d] - counts.power[k, d] * math.log1p(z * z)
    return 1.0, log_total
