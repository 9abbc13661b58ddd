"""Steps of a visit of single states with posterior marginals: mean field in collapsed space (algorithm 1 of Wang 2016).

The transitions into and out of a state depend on two neighbours, of which only marginals are known. The expected count
of transitions from an uncertain neighbour is the average over its states of the counts without the three transitions
around it, plus the one transition that is known to share the neighbour's state (3.37, 3.39).

Over all states (`DenseMarginals`) two tables of transitions are kept, one of them transposed, so that transitions into
a state and out of it are both products of a row of marginals with a matrix.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.vectors import WIDTH, aligned, load, spread, store, total, zeros
from subchain.propagation.collapsed.dense_pieces import DenseMarginals
from subchain.propagation.collapsed.listed_pieces import ListedMarginals
from subchain.propagation.collapsed.log_space import log_table, rescue_state, with_evidence
from subchain.propagation.collapsed.rows import count
from subchain.propagation.collapsed.single_chain import padded, product
from subchain.propagation.collapsed.states import (
    finish_states,
    is_certain,
    look_around,
    put_back_state,
    renew_state,
    state_room,
    take_out_state,
)
from subchain.propagation.collapsed.verbs import add, add_rows, has_logs, scaled_exponential, weigh, weigh_rows
from subchain.propagation.compiled import bare_part
from subchain.propagation.verbs import implements

Array = NDArray[np.float64]

#: The least weight of a state.
LEAST = 1e-300
#: Rows of the table of marginals around a position, what they become, the change of its own, and weights of what was
#: seen.
FAR_BEFORE, BEFORE, OWN, AFTER, FAR_AFTER, INTO, OUT_OF, CHANGE, LIKELIHOOD, ROWS = range(10)


class DenseStateRoom(NamedTuple):
    """Counts of transitions with their priors (K, P), the same transposed, marginals around a position (`ROWS`, P), and
    the weights of its observation (1, P)."""

    moves: Array
    turned: Array
    near: Array
    likelihood: Array


class ListedStateRoom(NamedTuple):
    """Marginals around a position (`ROWS`, K), zero but for legal states while it is visited."""

    near: Array


@implements(is_certain)
def _is_certain(shares, position):
    return False


@bare_part
def _inner(table, row, other):
    """Inner product of two rows with padding."""
    summed = zeros()
    for k in range(0, table.shape[1], WIDTH):
        summed += load(table, row, k, None) * load(table, other, k, None)
    return total(summed)


# ---- all states ------------------------------------------------------------------------------------------------------


@implements(state_room, DenseMarginals)
def _dense_room(shares, rows):
    n_states = rows.counts.shape[1]
    width = padded(n_states)
    moves, turned, near = aligned(n_states, width), aligned(n_states, width), aligned(ROWS, width)
    moves[:], turned[:], near[:] = 0.0, 0.0, 0.0
    for j in range(n_states):
        for k in range(n_states):
            moves[j, k] = turned[k, j] = rows.counts[j, k] + rows.concentration[j, k]
    likelihood = aligned(1, width)
    likelihood[:] = 0.0
    return DenseStateRoom(moves, turned, near, likelihood)


@bare_part
def _spell_out(marginals, position, is_there, near, row):
    """Marginals of a position into a row with padding; zeros where there is no such position."""
    for k in range(marginals.shape[1]):
        near[row, k] = marginals[position, k] if is_there else 0.0


@implements(look_around, DenseMarginals)
def _look_around(shares, position, ends, tables):
    marginals, near = shares.marginals, tables.near
    is_first, is_last = ends.is_first[position], ends.is_last[position]
    _spell_out(marginals, position - 2, not is_first and not ends.is_first[position - 1], near, FAR_BEFORE)
    _spell_out(marginals, position - 1, not is_first, near, BEFORE)
    _spell_out(marginals, position, True, near, OWN)
    _spell_out(marginals, position + 1, not is_last, near, AFTER)
    _spell_out(marginals, position + 2, not is_last and not ends.is_last[position + 1], near, FAR_AFTER)
    return is_first, is_last


@implements(take_out_state, DenseMarginals)
def _take_out_state(shares, position, place, rows, emissions, how, tables):
    if how.excludes:
        add_rows(emissions, position, position + 1, shares.marginals, position, -1.0)


@implements(renew_state, DenseMarginals)
def _renew_state(shares, position, place, rows, emissions, how, tables, since):
    near, n_states = tables.near, rows.counts.shape[1]
    _weigh_into(place[0], rows, how.excludes, tables)
    _weigh_out_of(place[1], rows, how.excludes, tables)
    log_scale = weigh_rows(emissions, position, position + 1, n_states, tables.likelihood)
    norm = 0.0
    for k in range(n_states):
        near[OUT_OF, k] *= near[INTO, k]
        near[INTO, k] = near[OUT_OF, k] * tables.likelihood[0, k]
        norm += near[INTO, k]
    if not norm > 0.0:
        norm, log_scale = rescue_state(log_table(emissions, position, position + 1, n_states), near, OUT_OF, INTO)
    if not norm > 0.0:
        return -1.0
    since[0] += np.log(norm) + log_scale
    for k in range(n_states):
        near[INTO, k] /= norm
        near[CHANGE, k] = near[INTO, k] - near[OWN, k]
    return norm


@bare_part
def _weigh_into(is_first, rows, excludes, tables):
    """Expected counts of transitions into the position (3.37)."""
    near, n_states = tables.near, rows.counts.shape[1]
    far_before, before, own, after = near[FAR_BEFORE], near[BEFORE], near[OWN], near[AFTER]
    if is_first:
        share = 1.0 if excludes else 0.0
        for k in range(n_states):
            counted = max(rows.counts[n_states, k] - share * own[k], 0.0) if rows.learns_first else 0.0
            near[INTO, k] = rows.concentration[n_states, k] + rows.fixed[n_states, k] + counted
        return
    product(near, BEFORE, tables.moves, n_states, near, INTO)
    if excludes:
        leads_in, leads_here = _inner(near, BEFORE, FAR_BEFORE), _inner(near, BEFORE, BEFORE)
        leads_on = _inner(near, BEFORE, OWN)
        for k in range(n_states):
            near[INTO, k] -= before[k] * leads_in + own[k] * leads_here + after[k] * leads_on
            near[INTO, k] += far_before[k] * before[k]
    for k in range(n_states):  # rounding, not the prior, may leave nothing; first states may be impossible
        near[INTO, k] = max(near[INTO, k], LEAST)


@bare_part
def _weigh_out_of(is_last, rows, excludes, tables):
    """Expected counts of transitions out of the position (3.39), over what leaves each state."""
    near, n_states, share = tables.near, rows.counts.shape[1], 1.0 if excludes else 0.0
    before, own, after, far_after = near[BEFORE], near[OWN], near[AFTER], near[FAR_AFTER]
    if is_last:
        near[OUT_OF, :n_states] = 1.0
        return
    product(near, AFTER, tables.turned, n_states, near, OUT_OF)
    leads_here, leads_on = _inner(near, OWN, AFTER), _inner(near, AFTER, AFTER)
    leads_away = _inner(near, FAR_AFTER, AFTER)
    for k in range(n_states):
        if excludes:
            near[OUT_OF, k] -= before[k] * leads_here + own[k] * leads_on + after[k] * leads_away
            near[OUT_OF, k] += after[k] * far_after[k] + before[k] * after[k]
        leaves = max(rows.totals[k] + rows.prior_totals[k] - share * own[k], LEAST)
        near[OUT_OF, k] = max(near[OUT_OF, k], LEAST) / leaves


@implements(put_back_state, DenseMarginals)
def _put_back_state(shares, position, place, new, rows, emissions, how, tables, since):
    near, n_states, (is_first, is_last) = tables.near, rows.counts.shape[1], place
    if how.excludes != how.puts_back:
        add_rows(emissions, position, position + 1, shares.marginals, position, 1.0 if how.excludes else -1.0)
    entropy = 0.0
    for k in range(n_states):
        marginal = near[INTO, k]
        shares.new_marginals[position, k] = marginal
        if marginal > 0.0:
            entropy -= marginal * np.log(marginal)
    since[1] += entropy
    if not how.puts_back:
        return
    add_rows(emissions, position, position + 1, shares.new_marginals, position, 1.0)
    for k in range(n_states):
        if is_first:
            count(rows, n_states, k, near[CHANGE, k])
        if not is_last:
            rows.totals[k] += near[CHANGE, k]
    if not (is_first and is_last):  # marginals of neighbours that are not there are zero
        _add_outer(tables.moves, near, BEFORE, CHANGE, CHANGE, AFTER)
        _add_outer(tables.turned, near, CHANGE, BEFORE, AFTER, CHANGE)


@bare_part
def _add_outer(matrix, near, first, second, third, fourth):
    """matrix[j] += near[first, j] · near[second] + near[third, j] · near[fourth]."""
    for j in range(matrix.shape[0]):
        x, y = spread(near, first, j), spread(near, third, j)
        for k in range(0, matrix.shape[1], WIDTH):
            more = x * load(near, second, k, None) + y * load(near, fourth, k, None)
            store(matrix, j, k, None, load(matrix, j, k, None) + more)


@implements(finish_states, DenseMarginals)
def _finish_states(shares, rows, tables):
    n_states = rows.counts.shape[1]
    for j in range(n_states):
        for k in range(n_states):
            rows.counts[j, k] = tables.moves[j, k] - rows.concentration[j, k]


# ---- legal states ----------------------------------------------------------------------------------------------------


@implements(state_room, ListedMarginals)
def _listed_room(shares, rows):
    return ListedStateRoom(np.zeros((ROWS, rows.counts.shape[1])))


@bare_part
def _list_out(shares, position, is_there, near, row, wipes):
    """Marginals of a position's legal states, if it is there, into a row of zeros; or zeros in their place."""
    if is_there:
        for a in range(shares.legal.offsets[position], shares.legal.offsets[position + 1]):
            near[row, shares.legal.states[a]] = 0.0 if wipes else shares.old.marginals[a]


@bare_part
def _list_around(shares, position, ends, near, wipes):
    """Marginals of a position and its neighbours into the table, or zeros in their place."""
    is_first, is_last = ends[0], ends[1]
    _list_out(shares, position - 2, ends[2], near, FAR_BEFORE, wipes)
    _list_out(shares, position - 1, not is_first, near, BEFORE, wipes)
    _list_out(shares, position, True, near, OWN, wipes)
    _list_out(shares, position + 1, not is_last, near, AFTER, wipes)
    _list_out(shares, position + 2, ends[3], near, FAR_AFTER, wipes)


@implements(look_around, ListedMarginals)
def _look_around_listed(shares, position, ends, tables):
    is_first, is_last = ends.is_first[position], ends.is_last[position]
    is_far = not is_first and not ends.is_first[position - 1]
    place = (is_first, is_last, is_far, not is_last and not ends.is_last[position + 1])
    _list_around(shares, position, place, tables.near, False)
    return place


@implements(take_out_state, ListedMarginals)
def _take_out_listed(shares, position, place, rows, emissions, how, tables):
    if how.excludes:
        _add_listed(shares.legal, shares.old.marginals, position, emissions, -1.0)


@bare_part
def _add_listed(legal, marginals, position, emissions, gain):
    """Count an observation by the marginals of its legal states."""
    for a in range(legal.offsets[position], legal.offsets[position + 1]):
        add(emissions, position, legal.states[a], gain * marginals[a])


@bare_part
def _inner_listed(shares, low, high, near, row):
    """Inner product of the marginals from entry `low` to `high` with a row of the table."""
    summed = 0.0
    for a in range(low, high):
        summed += shares.old.marginals[a] * near[row, shares.legal.states[a]]
    return summed


@implements(renew_state, ListedMarginals)
def _renew_listed(shares, position, place, rows, emissions, how, tables, since):
    legal, near = shares.legal, tables.near
    low, high, top = legal.offsets[position], legal.offsets[position + 1], -np.inf
    _weigh_into_listed(shares, position, place[0], rows, how.excludes, near)
    _weigh_out_of_listed(shares, position, place[1], rows, how.excludes, near)
    for a in range(low, high):
        factor, log = weigh(emissions, position, legal.states[a])
        if has_logs(emissions):
            log += legal.logs[a] if legal.logs.shape[0] else 0.0
            near[LIKELIHOOD, legal.states[a]] = log
            top = max(top, log)
        near[OUT_OF, legal.states[a]] *= near[INTO, legal.states[a]]
        near[INTO, legal.states[a]] = near[OUT_OF, legal.states[a]] * factor
    norm = 0.0
    for a in range(low, high):
        k = legal.states[a]
        if legal.factors.shape[0] and not has_logs(emissions):
            near[INTO, k] *= legal.factors[a]
        if has_logs(emissions):
            near[INTO, k] *= scaled_exponential(near[LIKELIHOOD, k], top)
        norm += near[INTO, k]
    log_scale = top if has_logs(emissions) else 0.0
    if not norm > 0.0:
        logs = with_evidence(log_table(emissions, position, position + 1, near.shape[1]), legal, position)
        norm, log_scale = rescue_state(logs, near, OUT_OF, INTO)
    if not norm > 0.0:
        return -1.0
    since[0] += np.log(norm) + log_scale
    return norm


@bare_part
def _weigh_into_listed(shares, position, is_first, rows, excludes, near):
    """Expected counts of transitions into the position (3.37)."""
    offsets, states, n_states = shares.legal.offsets, shares.legal.states, rows.counts.shape[1]
    low, high = offsets[position], offsets[position + 1]
    if is_first:
        share = 1.0 if excludes else 0.0
        for a in range(low, high):
            k = states[a]
            counted = max(rows.counts[n_states, k] - share * near[OWN, k], 0.0) if rows.learns_first else 0.0
            near[INTO, k] = rows.concentration[n_states, k] + rows.fixed[n_states, k] + counted
        return
    for a in range(low, high):
        near[INTO, states[a]] = 0.0
    for b in range(offsets[position - 1], low):
        j = states[b]
        if near[BEFORE, j] > 0.0:
            for a in range(low, high):
                k = states[a]
                near[INTO, k] += near[BEFORE, j] * (rows.counts[j, k] + rows.concentration[j, k])
    if excludes:
        leads_in = _inner_listed(shares, offsets[position - 1], low, near, FAR_BEFORE)
        leads_here = _inner_listed(shares, offsets[position - 1], low, near, BEFORE)
        leads_on = _inner_listed(shares, offsets[position - 1], low, near, OWN)
        for a in range(low, high):
            k = states[a]
            near[INTO, k] -= near[BEFORE, k] * leads_in + near[OWN, k] * leads_here + near[AFTER, k] * leads_on
            near[INTO, k] += near[FAR_BEFORE, k] * near[BEFORE, k]
    for a in range(low, high):
        near[INTO, states[a]] = max(near[INTO, states[a]], LEAST)


@bare_part
def _weigh_out_of_listed(shares, position, is_last, rows, excludes, near):
    """Expected counts of transitions out of the position (3.39), over what leaves each state."""
    offsets, states = shares.legal.offsets, shares.legal.states
    low, high = offsets[position], offsets[position + 1]
    if is_last:
        for a in range(low, high):
            near[OUT_OF, states[a]] = 1.0
        return
    end = offsets[position + 2]
    leads_here = _inner_listed(shares, high, end, near, OWN)
    leads_on = _inner_listed(shares, high, end, near, AFTER)
    leads_away = _inner_listed(shares, high, end, near, FAR_AFTER)
    for a in range(low, high):
        k, summed = states[a], 0.0
        for b in range(high, end):
            summed += near[AFTER, states[b]] * (rows.counts[k, states[b]] + rows.concentration[k, states[b]])
        leaves = rows.totals[k] + rows.prior_totals[k]
        if excludes:
            summed -= near[BEFORE, k] * leads_here + near[OWN, k] * leads_on + near[AFTER, k] * leads_away
            summed += near[AFTER, k] * near[FAR_AFTER, k] + near[BEFORE, k] * near[AFTER, k]
            leaves -= near[OWN, k]
        near[OUT_OF, k] = max(summed, LEAST) / max(leaves, LEAST)


@implements(put_back_state, ListedMarginals)
def _put_back_listed(shares, position, place, new, rows, emissions, how, tables, since):
    legal, near, (is_first, is_last) = shares.legal, tables.near, place[:2]
    low, high, entropy = legal.offsets[position], legal.offsets[position + 1], 0.0
    if how.excludes != how.puts_back:
        _add_listed(legal, shares.old.marginals, position, emissions, 1.0 if how.excludes else -1.0)
    for a in range(low, high):
        k = legal.states[a]
        marginal = near[INTO, k] / new
        shares.new.marginals[a] = marginal
        if marginal > 0.0:
            entropy -= marginal * np.log(marginal)
        if not how.puts_back:
            continue
        change = marginal - near[OWN, k]
        if is_first:
            count(rows, rows.counts.shape[1], k, change)
        else:
            for b in range(legal.offsets[position - 1], low):
                rows.counts[legal.states[b], k] += near[BEFORE, legal.states[b]] * change
        if not is_last:
            rows.totals[k] += change
            for b in range(high, legal.offsets[position + 2]):
                rows.counts[k, legal.states[b]] += change * near[AFTER, legal.states[b]]
    since[1] += entropy
    if how.puts_back:
        _add_listed(legal, shares.new.marginals, position, emissions, 1.0)
    _list_around(shares, position, place, near, True)


@implements(finish_states, ListedMarginals)
def _finish_listed(shares, rows, tables):
    pass
