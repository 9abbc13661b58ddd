"""Steps of a visit of single states that are drawn with the parameters summed out (Goldwater and Griffiths 2007).

What is left of the parameters are counts. The state of one position given all others has weights that are products of
three ratios of counts, those of the position itself left out (equation 3.25 of Wang's thesis):

    (C[before, k] + α) · (C[k, after] + α + δ(before = k = after)) / (C[k, ·] + Σα + δ(before = k))
                       · predictive weight of the observation in state k

Where all rows are learned, counts of transitions stay in place while a state is drawn. Leaving the position out changes
the weight of its own state and of at most one other (`_other`); these two are worked out by themselves and all the rest
in vectors. Transitions are counted in both directions, so that those into the state after a position lie as close
together as those out of the state before it. A row beyond the states holds the counts of first states, and rows of ones
stand for the end of a sequence, so that there is one formula for all positions. Rows that are partly fixed take the
plain way: take out, weigh, put back.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.random import stream, uniform
from subchain.numerics.vectors import (
    WIDTH,
    except_at,
    exponential,
    largest,
    load,
    logarithm,
    minus,
    reached,
    running,
    spread,
    store,
    zeros,
)
from subchain.propagation.collapsed.pieces import Legal
from subchain.propagation.collapsed.rows import put_state, take_out_state_of, weigh_state_of
from subchain.propagation.collapsed.states import (
    finish_states,
    is_certain,
    look_around,
    put_back_state,
    renew_state,
    state_room,
    take_out_state,
)
from subchain.propagation.collapsed.verbs import (
    arrive,
    depart,
    fill,
    has_logs,
    locate,
    weigh_apart,
    weigh_scaled,
    weigh_vector,
)
from subchain.propagation.compiled import family_part, ordered_part
from subchain.propagation.verbs import implements

Array = NDArray[np.float64]


class DrawnStates(NamedTuple):
    """Drawn states of all positions.

    Attributes
    ----------
    states, new_states : (N,) the states, and where proposals are written that the caller accepts or refuses
    legal : Legal
    key, sweep : (2,) and a number, which decide on the random numbers
    power : weights are raised to it; one over the temperature
    """

    states: NDArray[np.int32]
    new_states: NDArray[np.int32]
    legal: Legal
    key: NDArray[np.uint64]
    sweep: int
    power: float


class DrawnRoom(NamedTuple):
    """Tables of a sweep; P is K padded to whole vectors.

    Attributes
    ----------
    moves, prior_moves : (K + 1, P) from row to column; row K for first states
    back, prior_back : (K + 1, P) from column to row; row K is ones, its prior zeros
    totals, prior_totals : (P,) transitions that leave each state
    inverse : (2, P) one over totals with priors; row 1 is ones
    gains : (2,) how much a first state and a transition count: 1 if they are learned, 0 if they are fixed
    weights : (2, P) weights of states, and where those of each place in a vector end
    likelihood : (1, P) weights of an observation
    scale : (1, 2) logarithm of the largest weight, and the power
    begin : (1,) where the random numbers of the sweep begin
    """

    moves: Array
    back: Array
    prior_moves: Array
    prior_back: Array
    totals: Array
    prior_totals: Array
    inverse: Array
    gains: Array
    weights: Array
    likelihood: Array
    scale: Array
    begin: NDArray[np.uint64]


@implements(state_room, DrawnStates)
def _state_room(shares, rows):
    n_states = rows.counts.shape[1]
    width = -(-n_states // WIDTH) * WIDTH
    moves, back = np.zeros((n_states + 1, width)), np.zeros((n_states + 1, width))
    prior_moves, prior_back = np.zeros((n_states + 1, width)), np.zeros((n_states + 1, width))
    totals, prior_totals, inverse = np.zeros(width), np.ones(width), np.ones((2, width))
    gains = np.array([1.0 if rows.learns_first else 0.0, 0.0 if rows.has_fixed else 1.0])
    for j in range(n_states + 1):
        gain = gains[0] if j == n_states else gains[1]
        for k in range(n_states):
            moves[j, k] = gain * rows.counts[j, k]
            prior_moves[j, k] = rows.concentration[j, k] + rows.fixed[j, k]
            if j < n_states:
                back[k, j], prior_back[k, j] = moves[j, k], prior_moves[j, k]
        if j < n_states and not rows.has_fixed:
            totals[j], prior_totals[j] = rows.totals[j], rows.prior_totals[j]
    for k in range(width):
        back[n_states, k] = 1.0
        inverse[0, k] = 1.0 / (totals[k] + prior_totals[k])
    begin = np.array([stream(shares.key, shares.sweep)])
    return DrawnRoom(
        moves, back, prior_moves, prior_back, totals, prior_totals, inverse, gains, np.empty((2, width)),
        np.zeros((1, width)), np.empty((1, 2)), begin,
    )  # fmt: skip


@implements(finish_states, DrawnStates)
def _finish_states(shares, rows, room):
    if rows.is_uniform and not rows.has_fixed:
        n_states = rows.counts.shape[1]
        for j in range(n_states):
            rows.totals[j] = room.totals[j]
            for k in range(n_states):
                rows.counts[j, k] = room.moves[j, k]
    if rows.is_uniform and rows.learns_first:
        for k in range(rows.counts.shape[1]):
            rows.counts[rows.counts.shape[1], k] = room.moves[rows.counts.shape[1], k]


# ---- steps -----------------------------------------------------------------------------------------------------------


@implements(is_certain, DrawnStates)
def _is_certain(shares, position):
    offsets = shares.legal.offsets
    return offsets.shape[0] > 0 and offsets[position + 1] - offsets[position] == 1


@implements(look_around, DrawnStates)
def _look_around(shares, position, ends, room):
    n_states = np.int64(room.moves.shape[0] - 1)
    before = n_states if ends.is_first[position] else np.int64(shares.states[position - 1])
    after = n_states if ends.is_last[position] else np.int64(shares.states[position + 1])
    return before, np.int64(shares.states[position]), after


@implements(take_out_state, DrawnStates)
def _take_out_state(shares, position, place, rows, emissions, how, room):
    before, old, after = place
    depart(emissions, locate(emissions, position), old)
    if not rows.is_uniform:
        take_out_state_of(rows, before, old, after)


@implements(renew_state, DrawnStates)
def _renew_state(shares, position, place, rows, emissions, how, room, since):
    n_states, legal, (before, old, after) = room.moves.shape[0] - 1, shares.legal, place
    point = uniform(room.begin[0], position)
    is_free = legal.offsets.shape[0] == 0
    if not is_free and legal.factors.shape[0] == 0:
        is_free = legal.offsets[position + 1] - legal.offsets[position] == n_states
    # where the best state of an observation may be impossible here, weights relative to it would all vanish
    if is_free and rows.is_uniform and (rows.is_full or not has_logs(emissions)):
        new = _draw_any(shares, position, before, old, after, emissions, point, room)
    else:
        new = _draw_listed(shares, position, before, old, after, rows, emissions, point, room)
    return old if new < 0 else new  # rounding may leave nothing to draw


@implements(put_back_state, DrawnStates)
def _put_back_state(shares, position, place, new, rows, emissions, how, room, since):
    before, old, after = place
    arrive(emissions, locate(emissions, position), old, new)
    if not rows.is_uniform:
        put_state(rows, before, new, after)
    elif new != old:
        _count_state(room, before, old, after, -1.0)
        _count_state(room, before, new, after, 1.0)
    if new != old:
        shares.states[position] = new
        since[0] += 1.0


@ordered_part
def _count_state(room, before, state, after, sign):
    """Add or take away the transitions into and out of a position's state."""
    n_states = room.moves.shape[0] - 1
    if before == n_states:
        room.moves[before, state] += sign * room.gains[0]
    else:
        room.moves[before, state] += sign * room.gains[1]
        room.back[state, before] += sign * room.gains[1]
    if after < n_states:
        room.moves[state, after] += sign * room.gains[1]
        room.back[after, state] += sign * room.gains[1]
        room.totals[state] += sign * room.gains[1]
        room.inverse[0, state] = 1.0 / (room.totals[state] + room.prior_totals[state])


# ---- weights ---------------------------------------------------------------------------------------------------------


@ordered_part
def _other(before, old, after, n_states):
    """The state beside its own whose weight changes when a position is left out; −1 if there is none.

    Its own two transitions may lie among those that another state's weight is made of: the one out of `old` if the
    state before is `old` too and `after` is drawn, the one into `old` if `before` is drawn and the state after is
    `old`. And if `before` is drawn between itself and itself, the first of two equal transitions makes the second more
    probable.
    """
    if before == n_states or after == n_states:
        return -1
    if before == old:
        return after if after != old else -1
    return before if after in (old, before) else -1


@ordered_part
def _weigh_moves(room, before, k, after, old):
    """Weight of state k at a position that holds `old` by its transitions, those of the position left out."""
    n_states, gain = room.moves.shape[0] - 1, room.gains[1]
    own = gain if k == old else 0.0
    weight = room.moves[before, k] + room.prior_moves[before, k]
    if before == n_states:
        weight -= room.gains[0] if k == old else 0.0
    else:
        weight -= own
        if old == before and after == k:
            weight -= gain
    if after < n_states:
        out = room.back[after, k] + room.prior_back[after, k] - own
        if before == k:
            if after == old:
                out -= gain
            if after == k:
                out += gain
        # the position's own transition out of k is left out; one that led into it from k is drawn anew
        weight *= out / (room.totals[k] + room.prior_totals[k] - own)
    return weight


@family_part
def _weigh_all(room, seen, before, after, old, other, emissions):
    """Weights of all states but two into row 0 of `weights`, zeros for these; return their sums by place."""
    leaving = 1 if after == room.moves.shape[0] - 1 else 0
    added = zeros()
    for k in range(0, room.weights.shape[1], WIDTH):
        weights = load(room.moves, before, k, None) + load(room.prior_moves, before, k, None)
        weights *= load(room.back, after, k, None) + load(room.prior_back, after, k, None)
        weights *= load(room.inverse, leaving, k, None) * weigh_vector(emissions, seen, k, room.likelihood)
        weights = except_at(except_at(weights, old - k), other - k)
        store(room.weights, 0, k, None, weights)
        added += weights
    return added


@ordered_part
def _anneal_all(weights, scale):
    """Raise the weights in row 0 to a power; return their sums by place."""
    added = zeros()
    top, power = spread(scale, 0, 0), spread(scale, 0, 1)
    for k in range(0, weights.shape[1], WIDTH):
        annealed = exponential(minus(logarithm(load(weights, 0, k, None)), top) * power)
        store(weights, 0, k, None, annealed)
        added += annealed
    return added


@ordered_part
def _largest_of(weights):
    """The largest weight in row 0."""
    best = zeros()
    for k in range(0, weights.shape[1], WIDTH):
        best = largest(load(weights, 0, k, None), best)
    store(weights, 1, 0, None, best)
    found = 0.0
    for i in range(WIDTH):
        found = max(found, weights[1, i])
    return found


@ordered_part
def _annealed(weight, top, power):
    """A weight relative to the largest, whose logarithm is `top`, raised to a power."""
    return np.exp((np.log(weight) - top) * power) if weight > 0.0 else 0.0


# ---- draws -----------------------------------------------------------------------------------------------------------


@ordered_part
def _pick(weights, level):
    """The state whose share holds `level`, a number below the sum of the weights in row 0.

    Shares are laid out by place in a vector, all states at place 0 first; row 1 holds where those of each place end.
    """
    place = min(reached(load(weights, 1, 0, None), level), WIDTH - 1)
    reach = weights[1, place - 1] if place > 0 else 0.0
    last = -1
    for k in range(place, weights.shape[1], WIDTH):
        if weights[0, k] > 0.0:
            last = k
            reach += weights[0, k]
            if reach > level:
                break
    return last


@family_part
def _draw_any(shares, position, before, old, after, emissions, point, room):
    """Draw one of all states; −1 if rounding left none."""
    other, power = _other(before, old, after, room.moves.shape[0] - 1), shares.power
    seen = locate(emissions, position)
    fill(emissions, position, room.moves.shape[0] - 1, room.likelihood)
    added = _weigh_all(room, seen, before, after, old, other, emissions)
    own = _weigh_moves(room, before, old, after, old) * weigh_scaled(emissions, seen, old, old, room.likelihood)
    others = 0.0
    if other >= 0:
        others = _weigh_moves(room, before, other, after, old)
        others *= weigh_scaled(emissions, seen, other, old, room.likelihood)
    if power != 1.0:
        top = np.log(max(max(own, others), _largest_of(room.weights)))
        room.scale[0, 0], room.scale[0, 1] = top, power
        added = _anneal_all(room.weights, room.scale)
        own, others = _annealed(own, top, power), _annealed(others, top, power)
    store(room.weights, 1, 0, None, running(added))
    level = point * (own + others + room.weights[1, WIDTH - 1])
    if level < own:
        return old
    if level < own + others:
        return np.int64(other)
    return np.int64(_pick(room.weights, level - own - others))


@family_part
def _weigh_listed(shares, position, before, old, after, rows, emissions, room):
    """Weights of a position's legal states, or of all, into row 0 of `weights`; return how many there are."""
    legal, weights, low, n = shares.legal, room.weights, np.int64(0), np.int64(room.moves.shape[0] - 1)
    top_log, seen = -np.inf, locate(emissions, position)
    if legal.offsets.shape[0]:
        low, n = legal.offsets[position], legal.offsets[position + 1] - legal.offsets[position]
    for i in range(n):
        k = np.int64(legal.states[low + i]) if legal.offsets.shape[0] else i
        factor, log = weigh_apart(emissions, seen, k, old)
        if legal.factors.shape[0] and has_logs(emissions):
            log += legal.logs[low + i]
        elif legal.factors.shape[0]:
            factor *= legal.factors[low + i]
        if rows.is_uniform:
            factor *= _weigh_moves(room, before, k, after, old)
        else:
            factor *= weigh_state_of(rows, before, k, after)
        weights[0, i] = factor
        if has_logs(emissions):
            weights[1, i] = log
            if factor > 0.0:
                top_log = max(top_log, log)
    if has_logs(emissions):
        for i in range(n):
            weights[0, i] *= np.exp(weights[1, i] - top_log) if weights[0, i] > 0.0 else 0.0
    return n


@family_part
def _draw_listed(shares, position, before, old, after, rows, emissions, point, room):
    """Draw one of the legal states of a position, or of all; −1 if rounding left none."""
    legal, power, weights, top, total = shares.legal, shares.power, room.weights, 0.0, 0.0
    n = _weigh_listed(shares, position, before, old, after, rows, emissions, room)
    for i in range(n):
        top = max(top, weights[0, i])
    log_top = np.log(top) if power != 1.0 else 0.0
    for i in range(n):
        if power != 1.0:
            weights[0, i] = _annealed(weights[0, i], log_top, power)
        total += weights[0, i]
    level, reach, last = point * total, 0.0, np.int64(-1)
    for i in range(n):
        if weights[0, i] > 0.0:
            last = np.int64(i)
            reach += weights[0, i]
            if reach > level:
                break
    if last < 0 or legal.offsets.shape[0] == 0:
        return last
    return np.int64(legal.states[legal.offsets[position] + last])
