"""Visits of single states of words where every state is legal: the same as in `cvi_states`, with states in vectors.

Two tables of moves are kept, one of them turned, so that the moves into a state and out of it are both products of a
row of marginals with a matrix.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.numerics.vectors import WIDTH, aligned, load, spread, store, total, zeros
from subchain.propagation.collapsed.single_chain import padded, product
from subchain.propagation.compiled import kernel, part

#: The least weight of a state.
LEAST = 1e-300


@part
def _inner(table, row, other):
    """Inner product of two rows."""
    summed = zeros()
    for k in range(0, table.shape[1], WIDTH):
        summed += load(table, row, k, None) * load(table, other, k, None)
    return total(summed)


@part
def _spell_out(marginals, position, there, n_states, near, row):
    """Marginals of a position into a row with padding; zeros where there is no such position."""
    for k in range(n_states):
        near[row, k] = marginals[position, k] if there else 0.0


@part
def _add_outer(matrix, n_states, near, first, second, third, fourth):
    """matrix[j] += near[first, j] · near[second] + near[third, j] · near[fourth]."""
    for j in range(n_states):
        x, y = spread(near, first, j), spread(near, third, j)
        for k in range(0, matrix.shape[1], WIDTH):
            more = x * load(near, second, k, None) + y * load(near, fourth, k, None)
            store(matrix, j, k, None, load(matrix, j, k, None) + more)


#: Rows of the table of marginals around a position, what they become, and the change of its own marginal.
FAR_BEFORE, BEFORE, OWN, AFTER, FAR_AFTER, INTO, OUT_OF, CHANGE, ROWS = 0, 1, 2, 3, 4, 5, 6, 7, 8


@kernel
def visit_dense_state_words(
    order, begins, ends, values, prior_rows, pairs, rows, prior_first, firsts, learns, concentration, counts,
    prior_totals, totals, marginals, new_marginals, excludes, puts_back, since,
):  # fmt: skip
    """Visit the positions `order` of sequences that lie between `begins` and `ends`; see `cvi_states.update_state`.

    `marginals` and `new_marginals` are (N, K).
    """
    n_states = pairs.shape[0]
    width = padded(n_states)
    moves, turned, near = aligned(n_states, width), aligned(n_states, width), aligned(ROWS, width)
    moves[:], turned[:], near[:] = 0.0, 0.0, 0.0
    prior_sums = np.empty(n_states)
    for j in range(n_states):
        prior_sums[j] = prior_rows[j].sum()
        for k in range(n_states):
            moves[j, k] = turned[k, j] = pairs[j, k] + prior_rows[j, k]
    same, share = concentration.shape[0] == 1, 1.0 if excludes else 0.0
    for i in range(order.shape[0]):
        position = order[i]
        is_first, is_last = position == begins[i], position + 1 == ends[i]
        _spell_out(marginals, position - 2, position - 2 >= begins[i], n_states, near, FAR_BEFORE)
        _spell_out(marginals, position - 1, not is_first, n_states, near, BEFORE)
        _spell_out(marginals, position, True, n_states, near, OWN)
        _spell_out(marginals, position + 1, not is_last, n_states, near, AFTER)
        _spell_out(marginals, position + 2, position + 2 < ends[i], n_states, near, FAR_AFTER)
        far_before, before, own, after, far_after, into, out_of, change = near
        # moves into the position, and out of it
        if is_first:
            for k in range(n_states):
                into[k] = prior_first[k] + (max(firsts[k] - share * own[k], 0.0) if learns else 0.0)
        else:
            product(near, BEFORE, moves, n_states, near, INTO)
            if excludes:
                leads_in, leads_here = _inner(near, BEFORE, FAR_BEFORE), _inner(near, BEFORE, BEFORE)
                leads_on = _inner(near, BEFORE, OWN)
                for k in range(n_states):
                    into[k] -= before[k] * leads_in + own[k] * leads_here + after[k] * leads_on
                    into[k] += far_before[k] * before[k]
        if is_last:
            out_of[:n_states] = 1.0
        else:
            product(near, AFTER, turned, n_states, near, OUT_OF)
            leads_here, leads_on = _inner(near, OWN, AFTER), _inner(near, AFTER, AFTER)
            leads_away = _inner(near, FAR_AFTER, AFTER)
            for k in range(n_states):
                if excludes:
                    out_of[k] -= before[k] * leads_here + own[k] * leads_on + after[k] * leads_away
                    out_of[k] += after[k] * far_after[k] + before[k] * after[k]
                out_of[k] = max(out_of[k], LEAST) / max(rows[k] + prior_sums[k] - share * own[k], LEAST)
        # the word
        symbol, norm = values[position], 0.0
        prior = 0 if same else symbol
        for k in range(n_states):
            weight = max(into[k], LEAST) * out_of[k]
            if symbol >= 0:
                weight *= max(counts[symbol, k] - share * own[k], 0.0) + concentration[prior, k]
                weight /= max(totals[k] - share * own[k], 0.0) + prior_totals[k]
            into[k] = weight
            norm += weight
        since[0] += np.log(norm)
        entropy = 0.0
        for k in range(n_states):
            marginal = into[k] / norm
            new_marginals[position, k] = marginal
            change[k] = marginal - own[k]
            if marginal > 0.0:
                entropy -= marginal * np.log(marginal)
        since[1] += entropy
        if not puts_back:
            continue
        if symbol >= 0:
            for k in range(n_states):
                counts[symbol, k] += change[k]
                totals[k] += change[k]
        if is_first:
            for k in range(n_states):
                firsts[k] += change[k]
        if not is_last:
            for k in range(n_states):
                rows[k] += change[k]
        if not (is_first and is_last):  # marginals of neighbours that are not there are zero
            _add_outer(moves, n_states, near, BEFORE, CHANGE, CHANGE, AFTER)
            _add_outer(turned, n_states, near, CHANGE, BEFORE, AFTER, CHANGE)
    for j in range(n_states):
        for k in range(n_states):
            pairs[j, k] = moves[j, k] - prior_rows[j, k]
