"""States drawn one at a time with the parameters summed out (Goldwater and Griffiths 2007).

What is left of the parameters are counts: how often each state followed each other, and each symbol came from each
state. The state of one position given all others has weights that are products of three ratios of counts, those of the
position itself left out (equation 3.25 of Wang's thesis on collapsed variational inference):

    (C[before, k] + α) · (C[k, after] + α + δ(before = k = after)) / (C[k, ·] + Σα + δ(before = k))
                       · (C[k, symbol] + β) / (C[k, ·] + Σβ)

Counts stay in place while a state is drawn. Leaving the position out changes the weight of its own state and of at most
one other (`_other`); these two are worked out by themselves and all the rest in vectors. Moves are counted both ways,
so that what leads to the state after a position lies as close together as what leads away from the state before it.

Rows have a number of entries that fills the vectors. A row beyond the states holds the counts of first states, and rows
of ones stand for what says nothing: the end of a sequence, a missing symbol. So there is one formula for all positions.
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
    fetch,
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
from subchain.propagation.compiled import ordered_kernel as kernel
from subchain.propagation.compiled import ordered_part as part

Array = NDArray[np.float64]

#: Positions ahead of the present one whose symbols' rows are asked for.
AHEAD = 6


class Counts(NamedTuple):
    """Counts of all that has been drawn, and their priors; P is K padded to whole vectors.

    Attributes
    ----------
    moves, prior_moves : (K + 1, P) from row to column; row K for first states
    back, prior_back : (K + 1, P) from column to row; row K is ones, its prior zeros
    symbols : (W + 1, P) by state; row W, for missing ones, is ones
    prior_symbols : (W + 1, P), or (2, P) if it is the same for all symbols; the last row is zeros
    totals, prior_totals : (2, P) moves that leave each state, and symbols that it emitted
    inverse_moves, inverse_symbols : (2, P) one over totals with priors; row 1 is ones
    gains : (3,) how much a first state, a move and a symbol count: 1 if they are learned, 0 if they are fixed
    """

    moves: Array
    back: Array
    symbols: Array
    prior_moves: Array
    prior_back: Array
    prior_symbols: Array
    totals: Array
    prior_totals: Array
    inverse_moves: Array
    inverse_symbols: Array
    gains: Array


class Choices(NamedTuple):
    """Which states are legal where, as in `data.legal.LegalStates`; empty arrays if all are.

    Attributes
    ----------
    offsets, states : where the legal states of each position begin, and which they are
    weights : (nnz,) what evidence says of them, the largest of a position being one; empty if it says nothing
    """

    offsets: NDArray[np.int64]
    states: NDArray[np.int32]
    weights: Array


# ---- counting --------------------------------------------------------------------------------------------------------


@part
def n_states_of(counts):
    """K."""
    return counts.moves.shape[0] - 1


@part
def n_symbols_of(counts):
    """W."""
    return counts.symbols.shape[0] - 1


@part
def _count_move(counts, before, state, sign):
    """Add or take away the move into a state, or the state itself if it is the first."""
    if before == n_states_of(counts):
        counts.moves[before, state] += sign * counts.gains[0]
    else:
        counts.moves[before, state] += sign * counts.gains[1]
        counts.back[state, before] += sign * counts.gains[1]


@part
def _count_departure(counts, state, sign):
    """Add or take away one of the moves that leave a state, wherever it leads."""
    counts.totals[0, state] += sign * counts.gains[1]
    counts.inverse_moves[0, state] = 1.0 / (counts.totals[0, state] + counts.prior_totals[0, state])


@part
def _count_symbol(counts, symbol, state, sign):
    """Add or take away a symbol, unless it is missing."""
    if symbol < n_symbols_of(counts):
        counts.symbols[symbol, state] += sign * counts.gains[2]
        counts.totals[1, state] += sign * counts.gains[2]
        counts.inverse_symbols[0, state] = 1.0 / (counts.totals[1, state] + counts.prior_totals[1, state])


@part
def _count_state(counts, before, state, after, symbol, sign):
    """Add or take away everything that one position's state takes part in."""
    _count_move(counts, before, state, sign)
    if after < n_states_of(counts):
        _count_move(counts, state, after, sign)
        _count_departure(counts, state, sign)
    _count_symbol(counts, symbol, state, sign)


@kernel
def count_paths(counts, states, values, offsets):
    """Count all states of all sequences; the counts have to be those of nothing."""
    n_states, n_symbols = n_states_of(counts), n_symbols_of(counts)
    for sequence in range(offsets.shape[0] - 1):
        before = n_states
        for position in range(offsets[sequence], offsets[sequence + 1]):
            state = np.int64(states[position])
            _count_move(counts, before, state, 1.0)
            if before < n_states:
                _count_departure(counts, before, 1.0)
            _count_symbol(counts, values[position] if values[position] >= 0 else n_symbols, state, 1.0)
            before = state


# ---- weights ---------------------------------------------------------------------------------------------------------


@part
def _other(before, old, after, n_states):
    """The state beside its own whose weight changes when a position is left out; −1 if there is none.

    Its own two moves may lie among those that another state's weight is made of: the one out of `old` if the state
    before is `old` too and `after` is drawn, the one into `old` if `before` is drawn and the state after is `old`. And
    if `before` is drawn between itself and itself, the first of two equal moves makes the second more probable.
    """
    if before == n_states or after == n_states:
        return -1
    if before == old:
        return after if after != old else -1
    return before if after in (old, before) else -1


@part
def _prior_row(counts, symbol):
    """Row of a symbol's prior."""
    last = counts.prior_symbols.shape[0] - 1
    if symbol == n_symbols_of(counts):
        return last
    return 0 if last == 1 else symbol


@part
def _weight(counts, before, k, after, symbol, old):
    """Weight of state k at a position that holds `old`, everything considered."""
    n_states, gain = n_states_of(counts), counts.gains[1]
    own = gain if k == old else 0.0
    weight = counts.moves[before, k] + counts.prior_moves[before, k]
    if before == n_states:
        weight -= counts.gains[0] if k == old else 0.0
    else:
        weight -= own
        if old == before and after == k:
            weight -= gain
    if after < n_states:
        out = counts.back[after, k] + counts.prior_back[after, k] - own
        if before == k:
            if after == old:
                out -= gain
            if after == k:
                out += gain
        # the position's own move out of k is left out; one that led into it from k is drawn anew
        weight *= out / (counts.totals[0, k] + counts.prior_totals[0, k] - own)
    if symbol < n_symbols_of(counts):
        own = counts.gains[2] if k == old else 0.0
        emitted = counts.symbols[symbol, k] + counts.prior_symbols[_prior_row(counts, symbol), k] - own
        weight *= emitted / (counts.totals[1, k] + counts.prior_totals[1, k] - own)
    return weight


@part
def _weigh_all(counts, before, after, symbol, old, other, room):
    """Weights of all states but two into row 0 of `room`, zeros for these; return their sums by place in a vector."""
    prior = _prior_row(counts, symbol)
    leaving = 1 if after == n_states_of(counts) else 0
    emitting = 1 if symbol == n_symbols_of(counts) else 0
    added = zeros()
    for k in range(0, room.shape[1], WIDTH):
        weights = load(counts.moves, before, k, None) + load(counts.prior_moves, before, k, None)
        weights *= load(counts.back, after, k, None) + load(counts.prior_back, after, k, None)
        weights *= load(counts.symbols, symbol, k, None) + load(counts.prior_symbols, prior, k, None)
        weights *= load(counts.inverse_moves, leaving, k, None) * load(counts.inverse_symbols, emitting, k, None)
        weights = except_at(except_at(weights, old - k), other - k)
        store(room, 0, k, None, weights)
        added += weights
    return added


@part
def _anneal_all(room, scale):
    """Raise the weights in row 0 of `room` to a power; return their sums by place.

    `scale` (1, 2) is the logarithm of the largest weight and the power.
    """
    added = zeros()
    top, power = spread(scale, 0, 0), spread(scale, 0, 1)
    for k in range(0, room.shape[1], WIDTH):
        weights = exponential(minus(logarithm(load(room, 0, k, None)), top) * power)
        store(room, 0, k, None, weights)
        added += weights
    return added


@part
def _largest_of(room):
    """The largest weight in row 0 of `room`."""
    best = zeros()
    for k in range(0, room.shape[1], WIDTH):
        best = largest(load(room, 0, k, None), best)
    store(room, 1, 0, None, best)
    found = 0.0
    for i in range(WIDTH):
        found = max(found, room[1, i])
    return found


# ---- draws -----------------------------------------------------------------------------------------------------------


@part
def _annealed(weight, top, power):
    """A weight relative to the largest, whose logarithm is `top`, raised to a power."""
    return np.exp((np.log(weight) - top) * power) if weight > 0.0 else 0.0


@part
def _pick(room, level):
    """The state whose share holds `level`, a number below the sum of the weights in row 0 of `room`.

    Shares are laid out by place in a vector, all states at place 0 first; row 1 holds where those of each place end.
    """
    place = min(reached(load(room, 1, 0, None), level), WIDTH - 1)
    reach = room[1, place - 1] if place > 0 else 0.0
    last = -1
    for k in range(place, room.shape[1], WIDTH):
        if room[0, k] > 0.0:
            last = k
            reach += room[0, k]
            if reach > level:
                break
    return last


@part
def _draw_any(counts, before, old, after, symbol, power, point, room, scale):
    """Draw one of all states; −1 if rounding left none."""
    other = _other(before, old, after, n_states_of(counts))
    added = _weigh_all(counts, before, after, symbol, old, other, room)
    own, others = _weight(counts, before, old, after, symbol, old), 0.0
    if other >= 0:
        others = _weight(counts, before, other, after, symbol, old)
    if power != 1.0:
        top = np.log(max(max(own, others), _largest_of(room)))
        scale[0, 0], scale[0, 1] = top, power
        added = _anneal_all(room, scale)
        own, others = _annealed(own, top, power), _annealed(others, top, power)
    store(room, 1, 0, None, running(added))
    level = point * (own + others + room[1, WIDTH - 1])
    if level < own:
        return old
    if level < own + others:
        return other
    return _pick(room, level - own - others)


@part
def _draw_listed(counts, choices, low, high, before, old, after, symbol, power, point, room):
    """Draw one of the legal states of a position; −1 if rounding left none."""
    top = 0.0
    for i in range(high - low):
        weight = _weight(counts, before, np.int64(choices.states[low + i]), after, symbol, old)
        if choices.weights.shape[0]:
            weight *= choices.weights[low + i]
        room[0, i] = weight
        top = max(top, weight)
    total, log_top = 0.0, np.log(top) if power != 1.0 else 0.0
    for i in range(high - low):
        if power != 1.0:
            room[0, i] = _annealed(room[0, i], log_top, power)
        total += room[0, i]
    level, reach, last = point * total, 0.0, np.int64(-1)
    for i in range(high - low):
        if room[0, i] > 0.0:
            last = np.int64(choices.states[low + i])
            reach += room[0, i]
            if reach > level:
                break
    return last


@part
def _fetch_symbol(counts, values, position):
    """Ask for the row of a symbol that will be needed soon."""
    if position < values.shape[0] and values[position] >= 0:
        for k in range(0, counts.symbols.shape[1], WIDTH):
            fetch(counts.symbols, values[position], k)


@part
def _sweep(counts, states, values, offsets, choices, power, begin, room, scale):
    """Draw every state anew, one after the other; return how many changed."""
    n_states, n_symbols = n_states_of(counts), n_symbols_of(counts)
    restricted, weighted = choices.offsets.shape[0] > 0, choices.weights.shape[0] > 0
    changed, low, high = 0, np.int64(0), np.int64(n_states)
    for sequence in range(offsets.shape[0] - 1):
        before = n_states
        for position in range(offsets[sequence], offsets[sequence + 1]):
            old = new = np.int64(states[position])
            if restricted:
                low, high = choices.offsets[position], choices.offsets[position + 1]
                if high - low == 1:
                    before = old
                    continue
            symbol, after = np.int64(values[position]), n_states
            if symbol < 0:
                symbol = n_symbols
            if position + 1 < offsets[sequence + 1]:
                after = np.int64(states[position + 1])
            point = uniform(begin, position)
            if high - low == n_states and not weighted:
                _fetch_symbol(counts, values, position + AHEAD)
                new = _draw_any(counts, before, old, after, symbol, power, point, room, scale)
            else:
                new = _draw_listed(counts, choices, low, high, before, old, after, symbol, power, point, room)
            if new >= 0 and new != old:
                _count_state(counts, before, old, after, symbol, -1.0)
                _count_state(counts, before, new, after, symbol, 1.0)
                states[position] = old = new
                changed += 1
            before = old
    return changed


@kernel
def sweep_states(counts, states, values, offsets, choices, powers, key, sweep):
    """Draw every state anew, once for each power; return how many changed in the last sweep.

    Parameters
    ----------
    counts : Counts, in place
    states : (N,) of integers, in place
    values : (N,) symbols, −1 where missing
    offsets : (n_sequences + 1,)
    choices : Choices
    powers : (n_sweeps,) that the weights are raised to; one over the temperature
    key, sweep : (2,) the chain's key, and the number of the first sweep, which decide on the random numbers
    """
    room, scale, changed = np.empty((2, counts.moves.shape[1])), np.empty((1, 2)), 0
    for number in range(powers.shape[0]):
        begin = stream(key, sweep + number)
        changed = _sweep(counts, states, values, offsets, choices, powers[number], begin, room, scale)
    return changed
