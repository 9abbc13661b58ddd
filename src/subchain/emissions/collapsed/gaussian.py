"""Counts of Gaussian vectors with normal-inverse-Wishart priors: predictive weights are Student t densities.

Sums are about the prior's origin, near the mean of the data, as those of the family are. The scale matrix of a state is
factorised from its sums whenever they have changed: for few coordinates that takes no longer than changing a factor,
and rounding does not add up.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.collapsed.counts import EmissionCounts
from subchain.emissions.collapsed.gamma_ratios import log_half_steps
from subchain.emissions.collapsed.observations import real_rows
from subchain.emissions.moments import cholesky
from subchain.propagation.collapsed.rows import scaled_log
from subchain.propagation.collapsed.verbs import add, weigh
from subchain.propagation.compiled import ordered_part, seldom
from subchain.propagation.verbs import implements

if TYPE_CHECKING:
    from subchain.emissions.elliptical import GaussianSums
    from subchain.emissions.gaussian import NormalInverseWishart

Array = NDArray[np.float64]

#: Columns of `GaussianCounts.form`.
LOG_CONSTANT, POWER, SHRINKAGE = range(3)


class GaussianCounts(NamedTuple):
    """Counts of vectors of D coordinates by state, and their priors.

    Attributes
    ----------
    values : (N, D); a row is known entirely, or begins with nan
    origin : (D,)
    weight, first, second : (K,), (K, D) and (K, D, D) sums of the vectors minus the origin
    strength, degrees, prior_first, prior_second : (K,), (K,), (K, D) and (K, D, D) the prior: κ, ν, κ m, Ψ + κ m mᵀ
    least_pivots : (K, D) squared diagonal of the factor of Ψ; data only add to it
    location : (K, D) what follows: the posterior's m
    factor : (K, D, D) lower triangular factor L of the posterior's Ψ, with the inverse of its diagonal in place of that
    form : (K, 3) a density c · (1 + s |L⁻¹ (x − m)|²)⁻ᵖ: log c, p and s
    whitened : (D,) scratch
    is_stale : (K,) whether they have to be worked out anew
    """

    values: NDArray[Any]
    origin: Array
    weight: Array
    first: Array
    second: Array
    strength: Array
    degrees: Array
    prior_first: Array
    prior_second: Array
    least_pivots: Array
    location: Array
    factor: Array
    form: Array
    whitened: Array
    is_stale: NDArray[np.bool_]


def gaussian_counts(prior: NormalInverseWishart, sums: GaussianSums, values: NDArray[Any]) -> EmissionCounts:
    """Counts of vectors whose means and covariances have this prior."""
    live = sums.about(prior.origin).scale(1.0)  # a copy
    before = prior.location - prior.origin
    pulled = prior.strength[:, None] * before
    pivots = np.diagonal(cholesky("scale", prior.scale), axis1=1, axis2=2) ** 2
    counts = GaussianCounts(
        real_rows(values), prior.origin, live.weight, live.first, live.second, prior.strength, prior.degrees, pulled,
        prior.scale + before[:, :, None] * pulled[:, None, :], pivots, np.zeros_like(before),
        np.zeros_like(prior.scale), np.zeros((len(before), 3)), np.zeros(before.shape[1]),
        np.ones(len(before), np.bool_),
    )  # fmt: skip
    return EmissionCounts(counts, live, scratch=("location", "factor", "form", "whitened", "is_stale"))


@implements(add, GaussianCounts)
def _add(counts, position, k, amount):
    if math.isnan(counts.values[position, 0]):
        return
    counts.is_stale[k] = True
    counts.weight[k] += amount
    for i in range(counts.values.shape[1]):
        share = amount * (counts.values[position, i] - counts.origin[i])
        counts.first[k, i] += share
        for j in range(i + 1):
            counts.second[k, i, j] += share * (counts.values[position, j] - counts.origin[j])
            counts.second[k, j, i] = counts.second[k, i, j]


@seldom
def _refresh(counts, k):
    """Work out what follows from the sums of a state; rounding may have left them below zero."""
    n, weight = counts.first.shape[1], max(counts.weight[k], 0.0)
    strength, degrees = counts.strength[k] + weight, counts.degrees[k] + weight - n + 1.0
    for i in range(n):
        counts.location[k, i] = (counts.prior_first[k, i] + counts.first[k, i]) / strength
    shrinkage = strength / (strength + 1.0)
    log_constant = log_half_steps(0.5 * degrees, n) + 0.5 * n * math.log(shrinkage / math.pi)
    counts.form[k, LOG_CONSTANT] = log_constant - _factorise(counts, k)
    counts.form[k, POWER], counts.form[k, SHRINKAGE] = 0.5 * (degrees + n), shrinkage
    counts.is_stale[k] = False


@ordered_part
def _factorise(counts, k):
    """Factorise the scale matrix of a state; return half of its log determinant."""
    factor, product, log_total = counts.factor, 1.0, 0.0
    for j in range(counts.first.shape[1]):
        pulled = counts.prior_first[k, j] + counts.first[k, j]
        for i in range(j, counts.first.shape[1]):
            left = counts.prior_second[k, i, j] + counts.second[k, i, j] - counts.location[k, i] * pulled
            for before in range(j):
                left -= factor[k, i, before] * factor[k, j, before]
            if i == j:
                root = math.sqrt(max(left, counts.least_pivots[k, j]))
                product, log_total = scaled_log(product * root, log_total)
                factor[k, j, j] = 1.0 / root
            else:
                factor[k, i, j] = left * factor[k, j, j]
    return log_total + math.log(product)


@implements(weigh, GaussianCounts)
def _weigh(counts, position, k):
    if math.isnan(counts.values[position, 0]):
        return 1.0, 0.0
    if counts.is_stale[k]:
        _refresh(counts, k)
    distance = 0.0
    for i in range(counts.values.shape[1]):
        z = counts.values[position, i] - counts.origin[i] - counts.location[k, i]
        for j in range(i):
            z -= counts.factor[k, i, j] * counts.whitened[j]
        z *= counts.factor[k, i, i]
        counts.whitened[i] = z
        distance += z * z
    shrunk = counts.form[k, SHRINKAGE] * distance
    return 1.0, counts.form[k, LOG_CONSTANT] - counts.form[k, POWER] * math.log1p(shrunk)
