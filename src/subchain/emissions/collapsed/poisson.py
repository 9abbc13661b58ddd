"""Counts of Poisson columns with Gamma priors: predictive weights are negative binomial.

A count x has the weight (b / (1 + b))ᵃ · Π (a + i) / ((i + 1) (1 + b)), i = 0 … x − 1, where a and b are the shape and
the rate of the posterior. Few factors are multiplied; more are a ratio of gamma functions.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.collapsed.counts import EmissionCounts
from subchain.emissions.collapsed.gamma_ratios import log_rising
from subchain.emissions.collapsed.observations import whole_rows
from subchain.emissions.collapsed.whole_numbers import add_entries, own_sums
from subchain.emissions.counts import CountSums
from subchain.propagation.collapsed.rows import scaled_log
from subchain.propagation.collapsed.verbs import add, weigh
from subchain.propagation.compiled import seldom
from subchain.propagation.verbs import implements

if TYPE_CHECKING:
    from subchain.emissions.poisson import GammaRates

Array = NDArray[np.float64]

#: Counts up to this are multiplied out.
FEW = 48


class PoissonCounts(NamedTuple):
    """Counts of D columns by state, and their priors.

    Attributes
    ----------
    values : (N, D), below zero where missing
    weight, total : (K, D) sums: known entries, and what they add up to
    prior_shape, prior_rate : (K, D)
    shape, factor, log_zero : (K, D) what follows from them: a, 1 / (1 + b), and the log weight of a zero
    is_stale : (K,) whether it has to be worked out anew
    """

    values: NDArray[Any]
    weight: Array
    total: Array
    prior_shape: Array
    prior_rate: Array
    shape: Array
    factor: Array
    log_zero: Array
    is_stale: NDArray[np.bool_]


def poisson_counts(prior: GammaRates, sums: CountSums, values: NDArray[Any]) -> EmissionCounts:
    """Counts of columns whose rates have this prior."""
    live, (shape, factor, log_zero) = own_sums(sums), np.zeros((3, *prior.shape.shape))
    counts = PoissonCounts(
        whole_rows(values), live.weight, live.total, prior.shape, prior.rate, shape, factor, log_zero,
        np.ones(len(shape), np.bool_),
    )  # fmt: skip
    return EmissionCounts(counts, live, is_exact=True, scratch=("shape", "factor", "log_zero", "is_stale"))


implements(add, PoissonCounts)(add_entries)


@seldom
def _refresh(counts, k):
    """Work out what follows from the sums of a state; rounding may have left them below zero."""
    for d in range(counts.total.shape[1]):
        shape = counts.prior_shape[k, d] + max(counts.total[k, d], 0.0)
        rate = counts.prior_rate[k, d] + max(counts.weight[k, d], 0.0)
        counts.shape[k, d], counts.factor[k, d] = shape, 1.0 / (1.0 + rate)
        counts.log_zero[k, d] = -shape * math.log1p(1.0 / rate)
    counts.is_stale[k] = False


@implements(weigh, PoissonCounts)
def _weigh(counts, position, k):
    if counts.is_stale[k]:
        _refresh(counts, k)
    product, log_total = 1.0, 0.0
    for d in range(counts.values.shape[1]):
        x = np.int64(counts.values[position, d])
        if x < 0:
            continue
        shape, factor = counts.shape[k, d], counts.factor[k, d]
        log_total += counts.log_zero[k, d]
        if x > FEW:
            log_total += log_rising(shape, x) + x * math.log(factor) - math.lgamma(x + 1.0)
        else:
            for i in range(x):
                product, log_total = scaled_log(product * ((shape + i) * factor / (i + 1.0)), log_total)
    return 1.0, log_total + math.log(product)
