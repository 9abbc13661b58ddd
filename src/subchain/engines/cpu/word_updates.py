"""Many stochastic updates of categorical emissions in one compiled call.

An update of a thousand words takes fifty microseconds; called piece by piece from Python it would take three times as
long. The pieces are the same functions in the same order, so the numbers are the same. What is out of the ordinary (a
subchain at a ragged end, one that underflows) is left to the general method: the run of updates ends before it.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from subchain.core.parts import MEAN
from subchain.emissions.incremental_table import (
    LEAST_FACTOR,
    add_rows,
    distinct_symbols,
    weigh_rows,
)
from subchain.emissions.symbol_kernels import gather, scatter
from subchain.numerics.linking import called
from subchain.numerics.stationary import reduce_states, reduced_distribution
from subchain.numerics.vectors import aligned
from subchain.propagation.guard_messages import fill_silent, gather_guards, write_guards
from subchain.propagation.lanes import advance, backward, forward, mix, pair_sums, retreat
from subchain.propagation.lanes.recursions import LARGEST_PRODUCT, LEAST_PRODUCT
from subchain.propagation.underflow import LEAST_SCALE, LEAST_TRANSITION
from subchain.transitions.incremental import dirichlet_rows

#: What is known of the rest of a chain: `WordBoundary.kind`.
BUFFERS, GUARDS = 1, 2

kernel = called(error_model="numpy")


@kernel
def _read(values, starts, steps, out):
    """Symbols of stretches of equal length side by side; `out` (steps · M)."""
    lanes = starts.shape[0]
    for step in range(steps):
        for lane in range(lanes):
            out[step * lanes + lane] = values[starts[lane] + step]


@kernel
def _log_product(scale):
    """Logarithm of the product of all normalisers; −inf if one of them is too small to be believed."""
    out, product = 0.0, 1.0
    for column in range(scale.shape[0]):
        if not LEAST_SCALE <= scale[column] <= 1.0 / LEAST_SCALE:
            return -np.inf
        product *= scale[column]
        if not LEAST_PRODUCT <= product <= LARGEST_PRODUCT:
            out += np.log(product)
            product = 1.0
    return out + np.log(product)


@kernel
def _begin(chosen, length, n_whole, n_values, buffer, begins, is_first, is_last):
    """First positions of subchains of one sequence; whether all of them, and their buffers, are whole."""
    for lane in range(chosen.shape[0]):
        begins[lane] = chosen[lane] * length
        is_first[lane] = chosen[lane] == 0
        is_last[lane] = begins[lane] + length == n_values
        if chosen[lane] >= n_whole or begins[lane] < buffer or begins[lane] + length + buffer > n_values:
            return False
    return True


@kernel
def _enter_alone(initial, stationary, is_first, start, stop):
    """`start` and `stop` of subchains that know nothing of the rest; those that begin their sequence are `is_first`."""
    for lane in range(is_first.shape[0]):
        for k in range(initial.shape[0]):
            start[k, lane] = initial[k] if is_first[lane] else stationary[k]
            stop[k, lane] = 1.0


@kernel
def _enter_buffered(rows, before, after, transition, transposed, start, stop):
    """Carry `start` and `stop` over the buffers, whose symbols' rows are given, to the subchains."""
    n_states, size = start.shape
    around, near = aligned(n_states, before.shape[0]), np.empty_like(start)
    offsets = np.arange(before.shape[0] // size + 1) * size
    gather(rows, before, around)
    advance(around, transition, start, offsets, near)
    start[:] = transposed @ near
    gather(rows, after, around)
    retreat(around, transposed, stop, offsets, near)
    stop[:] = near


@kernel
def _move_chain(rate, gains, marginals, is_first, moved, transition, first, pairs):
    """Let the fresh counts of first states and of transitions enter the old ones."""
    for j in range(pairs.shape[0]):
        begun = 0.0
        for lane in range(is_first.shape[0]):
            if is_first[lane]:
                begun += marginals[j, lane]
        first[0, j] = (1.0 - rate) * first[0, j] + rate * (gains[0] * begun)
        for k in range(pairs.shape[0]):
            pairs[j, k] = (1.0 - rate) * pairs[j, k] + rate * (gains[1] * (moved[j, k] * transition[j, k]))


@kernel
def _move_table(rate, gain, symbols, rows, counts, factor, totals):
    """Let the fresh rows of some symbols enter the old ones."""
    factor[0] *= 1.0 - rate
    if factor[0] < LEAST_FACTOR:
        counts *= factor[0]
        factor[0] = 1.0
    added = np.zeros_like(totals)
    add_rows(counts, symbols, rows, rate * gain / factor[0], added)
    for k in range(totals.shape[0]):
        totals[k] = (1.0 - rate) * totals[k] + rate * gain * added[k]


@kernel
def update_words(kind, minibatches, chain, table, boundary, since):
    """Do one update after the other; return how many were done before one that needs the general method.

    Parameters
    ----------
    kind : how posteriors become weights
    minibatches, chain, table, boundary : named tuples of these names, see `engines.base`
    since : (2,) log normalisers and observations, in place
    """
    values, length, pieces, n_whole, rates, gains = minibatches
    prior_rows, fixed, pairs, prior_first, first = chain
    counts, factor, concentration, totals, prior_totals, place = table
    knows, buffer, firsts, lasts, keeps_marginals = boundary
    n_states, size, n_values = pairs.shape[0], pieces.shape[1], values.shape[0]
    columns, margin = size * length, size * buffer
    offsets = np.arange(length + 1) * size
    symbols, local = np.empty(columns + 2 * margin, np.int64), np.empty(columns + 2 * margin, np.int64)
    found = np.empty(columns + 2 * margin, np.int64)
    rows, row_shift = np.empty((columns + 2 * margin, n_states)), np.empty(columns + 2 * margin)
    weighted, alpha, marginals = aligned(n_states, columns), aligned(n_states, columns), aligned(n_states, columns)
    scale = np.empty(columns)
    transition, mean, initial = np.empty_like(pairs), np.empty_like(pairs), np.empty((1, n_states))
    moved = np.empty_like(pairs)
    start, stop = np.empty((n_states, size)), np.empty((n_states, size))
    before, after = np.empty((n_states, size)), np.empty((n_states, size))
    begins, is_first, is_last = np.empty(size, np.int64), np.empty(size, np.bool_), np.empty(size, np.bool_)
    nothing_fixed = np.zeros((1, n_states))
    for update in range(pieces.shape[0]):
        chosen = pieces[update]
        if not _begin(chosen, length, n_whole, n_values, buffer, begins, is_first, is_last):
            return update
        # the surrogate
        dirichlet_rows(kind, prior_rows, pairs, fixed, transition)
        dirichlet_rows(kind, prior_first, first, nothing_fixed, initial)
        dirichlet_rows(np.int64(MEAN), prior_rows, pairs, fixed, mean)
        if not (transition.min() >= LEAST_TRANSITION and reduce_states(mean)):
            return update
        stationary = reduced_distribution(mean)
        transposed = np.ascontiguousarray(transition.T)
        _read(values, begins, length, symbols)
        if knows == BUFFERS:
            _read(values, begins - buffer, buffer, symbols[columns:])
            _read(values, begins + length, buffer, symbols[columns + margin :])
        n_found = distinct_symbols(symbols, place, found, local)
        if weigh_rows(
            kind, counts, factor[0], concentration, totals + prior_totals, found[:n_found], rows[:n_found],
            row_shift[:n_found],
        ):  # fmt: skip
            return update
        # what lies around the subchains
        if knows == GUARDS:
            gather_guards(lasts, firsts, chosen, is_first, is_last, before, after)
            mix(transition, before, start)
            mix(transposed, after, stop)
            fill_silent(before, after, is_first, is_last, initial[0], stationary, start, stop)
        else:
            _enter_alone(initial[0], stationary, begins == buffer, start, stop)
        if knows == BUFFERS and buffer > 0:
            left, right = local[columns : columns + margin], local[columns + margin :]
            _enter_buffered(rows[:n_found], left, right, transition, transposed, start, stop)
        # the subchains
        gather(rows[:n_found], local[:columns], weighted)
        forward(weighted, transition, start, offsets, alpha, scale)
        total = _log_product(scale)
        if total == -np.inf:
            return update
        backward(weighted, transposed, stop, offsets, alpha, scale, marginals)
        moved[:] = 0.0
        pair_sums(alpha, weighted, offsets, moved)
        if knows == GUARDS:
            write_guards(firsts, chosen, marginals[:, :size] if keeps_marginals else weighted[:, :size])
            write_guards(
                lasts, chosen, marginals[:, columns - size :] if keeps_marginals else alpha[:, columns - size :]
            )
        # the statistics
        rate = rates[update]
        _move_chain(rate, gains, marginals, is_first, moved, transition, first, pairs)
        if knows == BUFFERS:
            n_found = distinct_symbols(symbols[:columns], place, found, local)
        rows[:n_found] = 0.0
        scatter(rows[:n_found], local[:columns], marginals)
        _move_table(rate, gains[2], found[:n_found], rows[:n_found], counts, factor, totals)
        since[0] += total
        since[1] += columns
    return pieces.shape[0]
