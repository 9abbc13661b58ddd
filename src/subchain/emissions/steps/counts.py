"""Counts and flags for compiled stochastic updates: from prior and sums to likelihoods.

The formulas are those of `emissions.poisson` and `emissions.bernoulli`.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import EXPECTED_LOG, KINDS, MEAN, MODE
from subchain.emissions.checks import as_matrix, suits_kernels
from subchain.emissions.compiled.counts import LinearCounts, RisingCounts
from subchain.emissions.counts import EMPTY, LOG_FACTORIALS, CountSums
from subchain.emissions.steps.base import EmissionSteps, flat, read_only
from subchain.numerics.linking import linked
from subchain.numerics.special import digamma_of
from subchain.propagation.lanes.learning import weigh_family
from subchain.propagation.verbs import implements, task

if TYPE_CHECKING:
    from subchain.emissions.bernoulli import BetaTable
    from subchain.emissions.poisson import GammaRates

Array = NDArray[np.float64]

#: Counts whose predictive weights are tabulated in every update; larger ones take a log gamma function each.
TABULATED = 256

#: Products may be fused with sums, but sums are never reordered.
part = linked(fastmath={"contract"}, error_model="numpy")


class RateSteps(NamedTuple):
    """Sums of counts under Gamma(shape, rate) priors of their rates.

    Attributes
    ----------
    sums : (2 K D,) numbers of known counts, and their totals
    shape, rate : (K, D)
    likelihood : `LinearCounts`, or `RisingCounts` for the predictive distribution
    """

    sums: Array
    shape: Array
    rate: Array
    likelihood: Any


class FlagSteps(NamedTuple):
    """Sums of zeros and ones under Beta(successes, failures) priors, (K, D) each; other fields as in `RateSteps`."""

    sums: Array
    successes: Array
    failures: Array
    likelihood: LinearCounts


def rate_steps(prior: GammaRates, sums: CountSums, kind: str, values: NDArray[Any]) -> EmissionSteps | None:
    """Return a posterior of rates for compiled updates; None where observations would be copied."""
    rows, shape = as_matrix(read_only(values)), prior.shape.shape
    if rows.shape[1] != shape[1] or not suits_kernels(rows):
        return None
    likelihood: Any = LinearCounts(rows, np.zeros(shape), np.zeros(shape), LOG_FACTORIALS)
    if KINDS[kind] == MEAN:
        rising = np.zeros((shape[1], TABULATED, shape[0]))
        empty = np.zeros((3, *shape))
        likelihood = RisingCounts(rows, empty[0], empty[1], LOG_FACTORIALS, empty[2], rising)
    return EmissionSteps(RateSteps(flat(sums), prior.shape, prior.rate, likelihood), sums)


def flag_steps(prior: BetaTable, sums: CountSums, kind: str, values: NDArray[Any]) -> EmissionSteps | None:
    """Return a posterior of probabilities for compiled updates; None where observations would be copied."""
    rows, shape = as_matrix(read_only(values)), prior.successes.shape
    if rows.shape[1] != shape[1] or not suits_kernels(rows):
        return None
    likelihood = LinearCounts(rows, np.zeros(shape), np.zeros(shape), LOG_FACTORIALS[:0])
    return EmissionSteps(FlagSteps(flat(sums), prior.successes, prior.failures, likelihood), sums)


@part
def _sums(learned, k, d):
    """Number and total of the known counts of a state in a column."""
    at = k * learned.likelihood.slopes.shape[1] + d
    return learned.sums[at], learned.sums[learned.likelihood.slopes.size + at]


# ---- rates -----------------------------------------------------------------------------------------------------------


@task
def _weigh_as(likelihood, learned, kind):
    """Work out one of the forms of likelihoods."""


@implements(weigh_family, RateSteps)
def _weigh_rates(learned, kind):
    return _weigh_as(learned.likelihood, learned, kind)


@part
def _pooled(learned, d):
    """The ratio of counts to their number over all states; 1 if there are none."""
    amounts, weights = 0.0, 0.0
    for k in range(learned.shape.shape[0]):
        weight, total = _sums(learned, k, d)
        amounts += max(learned.shape[k, d] + total - 1.0, 0.0)
        weights += learned.rate[k, d] + weight
    return amounts / weights if weights > 0.0 else 1.0


@implements(_weigh_as, LinearCounts)
def _weigh_linear(likelihood, learned, kind):
    for d in range(learned.shape.shape[1]):
        pooled = _pooled(learned, d) if kind == MODE else 0.0
        for k in range(learned.shape.shape[0]):
            weight, total = _sums(learned, k, d)
            shape, rate = learned.shape[k, d] + total, learned.rate[k, d] + weight
            if kind == EXPECTED_LOG:
                mean = shape / rate
                likelihood.slopes[k, d] = digamma_of(shape) - np.log(rate)
            else:
                mean = max(shape - 1.0, 0.0) / rate if rate > EMPTY else pooled
                likelihood.slopes[k, d] = np.log(mean)
            likelihood.constants[k, d] = -mean
            if not np.isfinite(mean) or np.isnan(likelihood.slopes[k, d]):
                return False
    return True


@implements(_weigh_as, RisingCounts)
def _weigh_rising(likelihood, learned, kind):
    for d in range(learned.shape.shape[1]):
        for k in range(learned.shape.shape[0]):
            weight, total = _sums(learned, k, d)
            shape, rate = learned.shape[k, d] + total, learned.rate[k, d] + weight
            likelihood.slopes[k, d], likelihood.constants[k, d] = -np.log1p(rate), -shape * np.log1p(1.0 / rate)
            likelihood.shapes[k, d] = shape
            if not (np.isfinite(likelihood.constants[k, d]) and np.isfinite(likelihood.slopes[k, d])):
                return False
            likelihood.rising[d, 0, k] = 0.0
            for count in range(1, likelihood.rising.shape[1]):
                likelihood.rising[d, count, k] = likelihood.rising[d, count - 1, k] + np.log(shape + (count - 1))
    return True


# ---- flags -----------------------------------------------------------------------------------------------------------


@implements(weigh_family, FlagSteps)
def _weigh_flags(learned, kind):
    likelihood = learned.likelihood
    for k in range(learned.successes.shape[0]):
        for d in range(learned.successes.shape[1]):
            weight, total = _sums(learned, k, d)
            ones, zeros = learned.successes[k, d] + total, learned.failures[k, d] + (weight - total)
            if kind == MODE:
                ones, zeros = max(ones - 1.0, 0.0), max(zeros - 1.0, 0.0)
                if not ones + zeros > EMPTY:
                    ones = zeros = 0.5
            if kind == EXPECTED_LOG:
                whole = digamma_of(ones + zeros)
                one, zero = digamma_of(ones) - whole, digamma_of(zeros) - whole
            else:
                whole = np.log(ones + zeros)
                one, zero = np.log(ones) - whole, np.log(zeros) - whole
            if not zero > -np.inf or np.isnan(one):
                return False
            likelihood.slopes[k, d], likelihood.constants[k, d] = one - zero, zero
    return True
