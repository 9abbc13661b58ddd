"""Gaussian families for compiled stochastic updates: from prior and sums to likelihoods.

The formulas are those of `emissions.gaussian` and `emissions.diagonal_gaussian`. Locations and sums are about the
prior's origin, near the mean of the data.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import EXPECTED_LOG, KINDS, MEAN
from subchain.emissions.collapsed.gamma_ratios import half_step, log_half_steps
from subchain.emissions.compiled.normal import FullNormal, FullStudent, SeparateNormal, SeparateStudent
from subchain.emissions.moments import EMPTY, FLOOR, LOG_2PI, contiguous_rows
from subchain.emissions.normal_kernels import even
from subchain.emissions.steps.base import EmissionSteps, flat, read_only
from subchain.numerics.linking import linked
from subchain.numerics.special import digamma_of
from subchain.propagation.lanes.learning import weigh_family
from subchain.propagation.verbs import implements, task

if TYPE_CHECKING:
    from subchain.emissions.diagonal_gaussian import DiagonalGaussianSums, NormalInverseGamma
    from subchain.emissions.elliptical import GaussianSums
    from subchain.emissions.gaussian import NormalInverseWishart

Array = NDArray[np.float64]

LOG_2, LOG_PI = float(np.log(2.0)), float(np.log(np.pi))

#: Products may be fused with sums, but sums are never reordered.
part = linked(fastmath={"contract"}, error_model="numpy")


class NormalSteps(NamedTuple):
    """Sums of vectors under a normal-inverse-Wishart prior: m about the origin, κ, ν and Ψ.

    Attributes
    ----------
    sums : (K + K D + K D²,) weights, first and second moments about the origin
    location, strength, degrees, scale : (K, D), (K,), (K,) and (K, D, D)
    data_covariance : (D, D)
    likelihood : `FullNormal`, or `FullStudent` for the predictive distribution
    """

    sums: Array
    location: Array
    strength: Array
    degrees: Array
    scale: Array
    data_covariance: Array
    likelihood: Any


class SeparateSteps(NamedTuple):
    """The same under normal-inverse-gamma priors: m about the origin, κ, a and b, each (K, D).

    Attributes
    ----------
    sums : (3 K D,) weights, first and second moments about the origin
    location, strength, shape, scale : (K, D)
    data_variances : (D,)
    likelihood : `SeparateNormal`, or `SeparateStudent` for the predictive distribution
    """

    sums: Array
    location: Array
    strength: Array
    shape: Array
    scale: Array
    data_variances: Array
    likelihood: Any


def normal_steps(
    prior: NormalInverseWishart, sums: GaussianSums, kind: str, values: NDArray[Any]
) -> EmissionSteps | None:
    """Return a posterior of means and covariances for compiled updates; None where observations would be copied."""
    n_states, n_features = prior.location.shape
    rows, padded = contiguous_rows(read_only(values), n_features), even(n_features)
    if rows is None:
        return None
    own = sums.about(prior.origin)
    arrays = np.zeros((n_states, padded, padded)), np.zeros((n_states, padded)), np.zeros(n_states)
    likelihood: Any = FullNormal(rows, prior.origin, *arrays)
    if KINDS[kind] == MEAN:
        likelihood = FullStudent(rows, prior.origin, *arrays, np.zeros(n_states))
    location = prior.location - prior.origin
    learned = NormalSteps(
        flat(own), location, prior.strength, prior.degrees, prior.scale, prior.data_covariance, likelihood
    )
    return EmissionSteps(learned, own)


def separate_steps(
    prior: NormalInverseGamma, sums: DiagonalGaussianSums, kind: str, values: NDArray[Any]
) -> EmissionSteps | None:
    """Return a posterior of means and variances for compiled updates; None where observations would be copied."""
    rows = contiguous_rows(read_only(values), prior.location.shape[1])
    if rows is None:
        return None
    own, shape = sums.about(prior.origin), prior.location.shape
    arrays = np.zeros(shape), np.zeros(shape), np.zeros(len(prior.location))
    likelihood: Any = SeparateNormal(rows, prior.origin, *arrays)
    if KINDS[kind] == MEAN:
        likelihood = SeparateStudent(rows, prior.origin, *arrays, np.zeros(shape))
    location = prior.location - prior.origin
    learned = SeparateSteps(
        flat(own), location, prior.strength, prior.shape, prior.scale, prior.data_variances, likelihood
    )
    return EmissionSteps(learned, own)


@task
def _weigh_as(likelihood, learned, kind):
    """Work out one of the forms of likelihoods."""


@implements(weigh_family, NormalSteps)
@implements(weigh_family, SeparateSteps)
def _weigh(learned, kind):
    return _weigh_as(learned.likelihood, learned, kind)


# ---- full covariances ------------------------------------------------------------------------------------------------


@part
def factorise(matrix, factor):
    """Write the lower Cholesky factor of a matrix (D, D); return log |matrix|, nan if it is not positive definite."""
    log_determinant = 0.0
    for j in range(matrix.shape[0]):
        for i in range(j, matrix.shape[0]):
            left = matrix[i, j]
            for before in range(j):
                left -= factor[i, before] * factor[j, before]
            if i > j:
                factor[i, j] = left / factor[j, j]
            elif left > 0.0:
                log_determinant += np.log(left)
                factor[j, j] = np.sqrt(left)
            else:
                return np.nan
    return log_determinant


@part
def _whiten(factor, mean, unit, factors, offsets):
    """Write unit · L⁻¹ of a lower factor L (D, D), and that times a mean (D,), into tables that may be larger."""
    for j in range(factor.shape[0]):
        for i in range(j, factor.shape[0]):
            left = unit if i == j else 0.0
            for before in range(j, i):
                left -= factor[i, before] * factors[before, j]
            factors[i, j] = left / factor[i, i]
    for i in range(factor.shape[0]):
        total = 0.0
        for j in range(i + 1):
            total += factors[i, j] * mean[j]
        offsets[i] = total


@part
def _posterior(learned, k, mean, scale):
    """Write location and scale matrix of a state's posterior; return its strength and degrees."""
    n_states, n = learned.location.shape
    first, second = learned.sums[n_states + k * n :], learned.sums[n_states * (1 + n) + k * n * n :]
    prior, before = learned.strength[k], learned.location[k]
    strength = prior + learned.sums[k]
    for i in range(n):
        mean[i] = (prior * before[i] + first[i]) / (strength if strength > 0.0 else 1.0)
    for i in range(n):
        pulled = prior * before[i] + first[i]
        for j in range(i + 1):
            found = learned.scale[k, i, j] + second[i * n + j] + before[j] * (prior * before[i]) - mean[j] * pulled
            scale[i, j] = scale[j, i] = found
    return strength, learned.degrees[k] + learned.sums[k]


@part
def _expected_log(learned, k, strength, degrees, mean, scale, factor):
    """Precision ν Ψ⁻¹ and constant −½ (E[log |Σ|] + D log 2π + D / κ)."""
    n, likelihood = mean.shape[0], learned.likelihood
    if not (strength > 0.0 and degrees > n - 1.0):
        return False
    scale /= degrees
    log_determinant = factorise(scale, factor) + n * np.log(degrees) - n * LOG_2
    for i in range(n):
        log_determinant -= digamma_of(0.5 * (degrees - i))
    likelihood.constants[k] = -0.5 * (log_determinant + n * LOG_2PI + n / strength)
    _whiten(factor, mean, 1.0, likelihood.factors[k], likelihood.offsets[k])
    return True


@part
def _mode(learned, k, degrees, mean, scale, factor):
    """Ψ / (ν + D + 2), or the data's moments for a state without data; a variance below the floor is not done."""
    n, likelihood = mean.shape[0], learned.likelihood
    divisor = degrees + n + 2.0
    if divisor < EMPTY:
        mean[:] = 0.0
        scale[:] = learned.data_covariance
    else:
        scale /= divisor
    above = np.empty_like(scale)
    for i in range(n):
        for j in range(n):
            unit = np.sqrt(FLOOR * learned.data_covariance[i, i]) * np.sqrt(FLOOR * learned.data_covariance[j, j])
            above[i, j] = scale[i, j] / unit - (1.0 + FLOOR if i == j else 0.0)
    if not np.isfinite(factorise(above, factor)):
        return False
    likelihood.constants[k] = -0.5 * (n * LOG_2PI + factorise(scale, factor))
    _whiten(factor, mean, 1.0, likelihood.factors[k], likelihood.offsets[k])
    return True


@implements(_weigh_as, FullNormal)
def _weigh_normal(likelihood, learned, kind):
    n_states, n = learned.location.shape
    mean, scale, factor = np.empty(n), np.empty((n, n)), np.zeros((n, n))
    for k in range(n_states):
        strength, degrees = _posterior(learned, k, mean, scale)
        if kind == EXPECTED_LOG:
            done = _expected_log(learned, k, strength, degrees, mean, scale, factor)
        else:
            done = _mode(learned, k, degrees, mean, scale, factor)
        if not (done and np.isfinite(likelihood.constants[k])):
            return False
    return True


@implements(_weigh_as, FullStudent)
def _weigh_student(likelihood, learned, kind):
    """Student t with ν − D + 1 degrees of freedom, location m and spread (κ + 1) / (κ (ν − D + 1)) Ψ."""
    n_states, n = learned.location.shape
    mean, scale, factor = np.empty(n), np.empty((n, n)), np.zeros((n, n))
    for k in range(n_states):
        strength, degrees = _posterior(learned, k, mean, scale)
        if not (strength > 0.0 and degrees > n - 1.0):
            return False
        degrees = degrees - n + 1.0
        scale *= (strength + 1.0) / (strength * degrees)
        constant = log_half_steps(0.5 * degrees, n) - 0.5 * n * (np.log(degrees) + LOG_PI)
        likelihood.constants[k] = constant - 0.5 * factorise(scale, factor)
        likelihood.powers[k] = 0.5 * (degrees + n)
        if not np.isfinite(likelihood.constants[k]):
            return False
        _whiten(factor, mean, 1.0 / np.sqrt(degrees), likelihood.factors[k], likelihood.offsets[k])
    return True


# ---- diagonal covariances --------------------------------------------------------------------------------------------


@part
def _separate_posterior(learned, k, d):
    """Location, strength, shape and scale of one coordinate of a state."""
    size, at = learned.location.size, k * learned.location.shape[1] + d
    weight, first, second = learned.sums[at], learned.sums[size + at], learned.sums[2 * size + at]
    prior, before = learned.strength[k, d], learned.location[k, d]
    strength, pulled = prior + weight, prior * before + first
    mean = pulled / (strength if strength > 0.0 else 1.0)
    scatter = second + prior * before**2 - mean * pulled
    return mean, strength, learned.shape[k, d] + 0.5 * weight, learned.scale[k, d] + 0.5 * max(scatter, 0.0)


@part
def _separate_form(learned, kind, d, mean, strength, shape, scale):
    """Mean, precision and log constant of a coordinate; the precision is not positive where there is none."""
    if kind == EXPECTED_LOG:
        if not (strength > 0.0 and shape > 0.0 and scale > 0.0):
            return mean, 0.0, 0.0
        return mean, shape / scale, -0.5 * (LOG_2PI + np.log(scale) - digamma_of(shape) + 1.0 / strength)
    divisor, variance = shape + 1.5, learned.data_variances[d]
    if divisor < 0.5 * EMPTY:
        mean = 0.0
    else:
        variance = max(scale / divisor, FLOOR * variance)
    return mean, 1.0 / variance, -0.5 * (LOG_2PI + np.log(variance))


@implements(_weigh_as, SeparateNormal)
def _weigh_separate_normal(likelihood, learned, kind):
    for k in range(learned.location.shape[0]):
        likelihood.constants[k] = 0.0
        for d in range(learned.location.shape[1]):
            mean, strength, shape, scale = _separate_posterior(learned, k, d)
            mean, precision, constant = _separate_form(learned, kind, d, mean, strength, shape, scale)
            if not (precision > 0.0 and np.isfinite(constant)):
                return False
            likelihood.scales[k, d] = np.sqrt(precision)
            likelihood.offsets[k, d] = likelihood.scales[k, d] * mean
            likelihood.constants[k] += constant
    return True


@implements(_weigh_as, SeparateStudent)
def _weigh_separate_student(likelihood, learned, kind):
    """Student t with 2 a degrees of freedom, location m and squared scale b (κ + 1) / (a κ)."""
    for k in range(learned.location.shape[0]):
        likelihood.constants[k] = 0.0
        for d in range(learned.location.shape[1]):
            mean, strength, shape, scale = _separate_posterior(learned, k, d)
            if not (strength > 0.0 and shape > 0.0 and scale > 0.0):
                return False
            unit = 1.0 / np.sqrt(2.0 * scale * (strength + 1.0) / strength)
            likelihood.scales[k, d], likelihood.offsets[k, d] = unit, unit * mean
            likelihood.powers[k, d] = shape + 0.5
            likelihood.constants[k] += np.log(half_step(shape)) + np.log(unit) - 0.5 * LOG_PI
    return True
