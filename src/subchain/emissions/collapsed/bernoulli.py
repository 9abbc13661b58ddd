"""Counts of columns of zeros and ones with Beta priors: predictive weights are ratios of counts."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.collapsed.counts import EmissionCounts
from subchain.emissions.collapsed.observations import whole_rows
from subchain.emissions.collapsed.whole_numbers import add_entries, own_sums
from subchain.emissions.counts import CountSums
from subchain.propagation.collapsed.rows import scaled_log
from subchain.propagation.collapsed.verbs import add, weigh
from subchain.propagation.compiled import seldom
from subchain.propagation.verbs import implements

if TYPE_CHECKING:
    from subchain.emissions.bernoulli import BetaTable

Array = NDArray[np.float64]


class BernoulliCounts(NamedTuple):
    """Counts of D columns by state, and their priors.

    Attributes
    ----------
    values : (N, D) zeros and ones, below zero where missing
    weight, total : (K, D) sums: known entries, and ones among them
    successes, failures : (K, D) the prior's
    chances : (K, D, 2) what follows from them: probabilities of a zero and of a one
    is_stale : (K,) whether it has to be worked out anew
    """

    values: NDArray[Any]
    weight: Array
    total: Array
    successes: Array
    failures: Array
    chances: Array
    is_stale: NDArray[np.bool_]


def bernoulli_counts(prior: BetaTable, sums: CountSums, values: NDArray[Any]) -> EmissionCounts:
    """Counts of columns whose probabilities of a one have this prior."""
    live, chances = own_sums(sums), np.zeros((*prior.successes.shape, 2))
    counts = BernoulliCounts(
        whole_rows(values), live.weight, live.total, prior.successes, prior.failures, chances,
        np.ones(len(chances), np.bool_),
    )  # fmt: skip
    return EmissionCounts(counts, live, is_exact=True, scratch=("chances", "is_stale"))


implements(add, BernoulliCounts)(add_entries)


@seldom
def _refresh(counts, k):
    """Work out what follows from the sums of a state; rounding may have left them below zero."""
    for d in range(counts.total.shape[1]):
        ones = counts.successes[k, d] + max(counts.total[k, d], 0.0)
        zeros = counts.failures[k, d] + max(counts.weight[k, d] - counts.total[k, d], 0.0)
        inverse = 1.0 / (ones + zeros)
        counts.chances[k, d, 0], counts.chances[k, d, 1] = zeros * inverse, ones * inverse
    counts.is_stale[k] = False


@implements(weigh, BernoulliCounts)
def _weigh(counts, position, k):
    if counts.is_stale[k]:
        _refresh(counts, k)
    product, log_total = 1.0, 0.0
    for d in range(counts.values.shape[1]):
        x = np.int64(counts.values[position, d])
        if x >= 0:
            product, log_total = scaled_log(product * counts.chances[k, d, x], log_total)
    return 1.0, log_total + math.log(product)
