"""Transitions with their probabilities summed out: Dirichlet rows and what was counted in them.

A row may be learned, fixed, or both: a free entry has a share of what the fixed ones leave of its row, in proportion to
its count and concentration; a fixed entry is what it is, and a forbidden one is zero. Row K is that of first states.

Counts are whole numbers where states are drawn and expected numbers elsewhere. What was taken out of expected numbers
may leave a little less than nothing, which counts as nothing.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.stationary import reduce_states, reduced_distribution
from subchain.propagation.compiled import ordered_kernel, ordered_part, rare

Array = NDArray[np.float64]

#: Products are turned into logarithms before they leave this range.
LEAST, MOST = 1e-200, 1e200


class RowPrior(NamedTuple):
    """What is known of all rows beforehand.

    Attributes
    ----------
    concentration : (K + 1, K), zero where an entry is not free; row K for first states
    fixed : (K + 1, K) probabilities of entries that are not free
    is_stationary : whether first states follow the stationary distribution of the other rows instead of row K
    """

    concentration: Array
    fixed: Array
    is_stationary: bool = False


class Rows(NamedTuple):
    """Counts of transitions, and what was known of them before.

    Attributes
    ----------
    counts : (K + 1, K); none where an entry is forbidden
    totals : (K + 1,) what was counted in the free entries of each row
    concentration, fixed : as in `RowPrior`
    prior_totals : (K + 1,) sum of each row's concentration
    shares : (K + 1,) what the fixed entries leave of each row
    is_full : whether all entries of the first K rows are free
    has_fixed : whether any of them is fixed
    is_uniform : whether rows are learned as a whole, but for transitions that cannot happen, or all fixed as a whole
    learns_first, is_stationary : whether row K is learned; whether it is the stationary distribution of the others
    """

    counts: Array
    totals: Array
    concentration: Array
    fixed: Array
    prior_totals: Array
    shares: Array
    is_full: bool
    has_fixed: bool
    is_uniform: bool
    learns_first: bool
    is_stationary: bool


def count_rows(prior: RowPrior, counts: Array) -> Rows:
    """Return rows with the given counts (K + 1, K), which are changed in place from now on.

    Counts of transitions that cannot happen, as a rough start may have them, are dropped.
    """
    free = prior.concentration > 0.0
    fixed = np.where(free, 0.0, prior.fixed)
    counts[~(free | (fixed > 0.0))] = 0.0
    return Rows(
        counts,
        np.where(free, counts, 0.0).sum(axis=1),
        np.ascontiguousarray(prior.concentration),
        fixed,
        prior.concentration.sum(axis=1),
        1.0 - np.where(free.any(axis=1), fixed.sum(axis=1), 0.0),
        bool(free[:-1].all()),
        bool(fixed[:-1].any()),
        not (fixed[:-1].any() and free[:-1].any()),
        bool(free[-1].any()),
        prior.is_stationary,
    )


# ---- single entries --------------------------------------------------------------------------------------------------


@ordered_part
def entry(rows, j, k):
    """Predictive probability of a transition."""
    prior = rows.concentration[j, k]
    if not prior > 0.0:
        return rows.fixed[j, k]
    return rows.shares[j] * (prior + max(rows.counts[j, k], 0.0)) / (max(rows.totals[j], 0.0) + rows.prior_totals[j])


@ordered_part
def count(rows, j, k, amount):
    """Count a transition so many times, if it can happen."""
    if rows.concentration[j, k] > 0.0:
        rows.counts[j, k] += amount
        rows.totals[j] += amount
    elif rows.fixed[j, k] > 0.0:
        rows.counts[j, k] += amount


@rare
def stationary_first(chances, n_states, out):
    """Write the stationary distribution of a transition matrix into the first row of `out`, if there is only one."""
    matrix = np.empty((n_states, n_states))
    for j in range(n_states):
        for k in range(n_states):
            matrix[j, k] = chances[j, k]
    if reduce_states(matrix):
        found = reduced_distribution(matrix)
        for k in range(n_states):
            out[0, k] = found[k]


# ---- drawn states ----------------------------------------------------------------------------------------------------


@ordered_part
def scaled_log(product, log_total):
    """Move a product into the logarithm of all of them if it comes near the end of the doubles."""
    if LEAST < product < MOST:
        return product, log_total
    return 1.0, log_total + np.log(product)


@ordered_kernel
def predictive(rows, out):
    """Predictive probabilities of all transitions, (K + 1, K) in the first columns of `out`."""
    for j in range(rows.counts.shape[0]):
        for k in range(rows.counts.shape[1]):
            out[j, k] = entry(rows, j, k)


@ordered_part
def take_out_state_of(rows, before, old, after):
    """Take the transitions into and out of a state out; `before` is K at the first position, `after` K at the last."""
    count(rows, before, old, -1.0)
    if after < rows.counts.shape[1]:
        count(rows, old, after, -1.0)


@ordered_part
def put_state(rows, before, state, after):
    """Count the transitions into and out of a state."""
    count(rows, before, state, 1.0)
    if after < rows.counts.shape[1]:
        count(rows, state, after, 1.0)


@ordered_part
def weigh_state_of(rows, before, k, after):
    """Weight of state k between two others, its transitions not being counted."""
    weight = entry(rows, before, k)
    if after < rows.counts.shape[1]:
        # the transition into the state is one more of those that leave `before`
        count(rows, before, k, 1.0)
        weight *= entry(rows, k, after)
        count(rows, before, k, -1.0)
    return weight


@ordered_kernel
def take_out_path(rows, path):
    """Take the transitions of one sequence out of the counts; return their log probability given all others."""
    product, log_total = 1.0, 0.0
    for position in range(path.shape[0] - 1, -1, -1):
        before = path[position - 1] if position > 0 else rows.counts.shape[1]
        count(rows, before, path[position], -1.0)
        product, log_total = scaled_log(product * entry(rows, before, path[position]), log_total)
    return log_total + np.log(product)


@ordered_kernel
def put_in_path(rows, path):
    """Count the transitions of one sequence; return their log probability given all others."""
    product, log_total = 1.0, 0.0
    before = rows.counts.shape[1]
    for position in range(path.shape[0]):
        product, log_total = scaled_log(product * entry(rows, before, path[position]), log_total)
        count(rows, before, path[position], 1.0)
        before = path[position]
    return log_total + np.log(product)
