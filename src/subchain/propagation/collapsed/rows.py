"""Moves with the parameters summed out: what the next move of a chain is, given the moves that were counted.

Rows may be learned, fixed, or both: a free entry has a share of what the fixed ones leave of its row, in proportion to
its count and prior; a fixed entry is what it is, and a forbidden one is zero. Row K is the law of first states.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.compiled import ordered_kernel as kernel
from subchain.propagation.compiled import ordered_part as part

Array = NDArray[np.float64]

#: Products are turned into logarithms before they leave this range.
LEAST, MOST = 1e-200, 1e200


class Rows(NamedTuple):
    """Counts of moves, and what was known of them before.

    Attributes
    ----------
    counts : (K + 1, K) of free entries; zero elsewhere
    totals : (K + 1,) sum of each row's counts
    concentration : (K + 1, K), zero where an entry is not free
    prior_totals : (K + 1,) sum of each row's concentration
    fixed : (K + 1, K), the probability of entries that are not free
    shares : (K + 1,) what the fixed entries leave of each row
    """

    counts: Array
    totals: Array
    concentration: Array
    prior_totals: Array
    fixed: Array
    shares: Array


@part
def _entry(rows, j, k, added, added_in_all):
    """Predictive probability of a move, with more moves of this kind, and from this state, than were counted."""
    prior = rows.concentration[j, k]
    if not prior > 0.0:
        return rows.fixed[j, k]
    total = rows.totals[j] + added_in_all + rows.prior_totals[j]
    return rows.shares[j] * (prior + rows.counts[j, k] + added) / total


@part
def count_move(rows, j, k, sign):
    """Add or take away a move, if anything is to be learned from it."""
    if rows.concentration[j, k] > 0.0:
        rows.counts[j, k] += sign
        rows.totals[j] += sign


@part
def scaled_log(product, log_total):
    """Move a product into the logarithm of all of them if it comes near the end of the doubles."""
    if LEAST < product < MOST:
        return product, log_total
    return 1.0, log_total + np.log(product)


@kernel
def count_moves(rows, states, offsets, sign):
    """Add or take away the moves of whole sequences."""
    for sequence in range(offsets.shape[0] - 1):
        before = rows.counts.shape[1]
        for position in range(offsets[sequence], offsets[sequence + 1]):
            count_move(rows, before, states[position], sign)
            before = states[position]


@kernel
def predictive(rows, out):
    """Predictive probabilities of all moves, (K + 1, K)."""
    for j in range(out.shape[0]):
        total = rows.totals[j] + rows.prior_totals[j]
        scale = rows.shares[j] / total if total > 0.0 else 0.0
        for k in range(out.shape[1]):
            prior = rows.concentration[j, k]
            out[j, k] = scale * (prior + rows.counts[j, k]) if prior > 0.0 else rows.fixed[j, k]


@kernel
def replace_state(rows, before, old, after, legal, out):
    """Take a state out of its chain, and weigh by its moves alone what may take its place.

    Parameters
    ----------
    rows : Rows, in place: the moves into and out of the state are no longer counted
    before, after : the states beside it, K before the first position and −1 after the last
    legal, out : (n,) states, and their weights
    """
    count_move(rows, before, old, -1.0)
    if after >= 0:
        count_move(rows, old, after, -1.0)
    for i in range(legal.shape[0]):
        k = legal[i]
        out[i] = _entry(rows, before, k, 0.0, 0.0)
        if after >= 0:
            # the move into the state is one more of those that leave `before`
            once_more = 1.0 if before == k and rows.concentration[k, k] > 0.0 else 0.0
            out[i] *= _entry(rows, k, after, once_more if after == k else 0.0, once_more)


@kernel
def put_state(rows, before, state, after):
    """Count the moves into and out of a state."""
    count_move(rows, before, state, 1.0)
    if after >= 0:
        count_move(rows, state, after, 1.0)


@kernel
def take_out_path(rows, path):
    """Take the moves of one sequence out of the counts; return their log probability given all others."""
    product, log_total = 1.0, 0.0
    for position in range(path.shape[0] - 1, -1, -1):
        before = path[position - 1] if position > 0 else rows.counts.shape[1]
        count_move(rows, before, path[position], -1.0)
        product, log_total = scaled_log(product * _entry(rows, before, path[position], 0.0, 0.0), log_total)
    return log_total + np.log(product)


@kernel
def put_in_path(rows, path):
    """Count the moves of one sequence; return their log probability given all others."""
    product, log_total = 1.0, 0.0
    before = rows.counts.shape[1]
    for position in range(path.shape[0]):
        product, log_total = scaled_log(product * _entry(rows, before, path[position], 0.0, 0.0), log_total)
        count_move(rows, before, path[position], 1.0)
        before = path[position]
    return log_total + np.log(product)
