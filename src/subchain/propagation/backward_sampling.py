# mypy: disable-error-code="no-untyped-def"
"""Paths drawn from the posterior: forward filtering, backward sampling (Carter and Kohn, Frühwirth-Schnatter 1994).

The last state follows the last filtered marginal; every earlier state j has weight α_t(j) · A(j, k), where k is the
state drawn after it. Each draw turns one uniform number into a state, and that number is a function of the seed, the
path and the position alone (`numerics.random`). Therefore a path is the same for any number of workers, in any cut of
the chain, and whatever other paths are drawn beside it.

A chain that is cut into pieces is drawn in two steps. `enter` finds for each piece and each state that may follow it
the state with which the path would begin the piece; walks that meet stay together, so soon there is one. These maps,
followed from the end of the chain to its beginning (`follow`), tell every piece the state that really comes after it,
and `draw` writes the path.
"""

from __future__ import annotations

import numpy as np

from subchain.numerics.linking import linked
from subchain.numerics.random import stream, uniform
from subchain.propagation.band import wrapped
from subchain.propagation.compiled import by_kind

# Rounding must not be reordered: two kernels that look at the same weights have to draw the same state.
kernel = linked(error_model="numpy")


# ---- one state -------------------------------------------------------------------------------------------------------


@kernel
def _pick(alpha, column, point):
    """The state whose share of [0, 1) holds the point; shares are α, and a share of zero is never chosen."""
    n_states = alpha.shape[0]
    total = 0.0
    for j in range(n_states):
        total += alpha[j, column]
    level, running, chosen = point * total, 0.0, 0
    for j in range(n_states):
        weight = alpha[j, column]
        if weight > 0.0:
            chosen = j
            running += weight
            if running > level:
                break
    return chosen


def _dense_pick_before(transposed, state, alpha, column, point):
    """The same where `state` follows: shares are α[j] · transposed[state, j]."""
    n_states, onward = alpha.shape[0], transposed[state]
    total = 0.0
    for j in range(n_states):
        total += alpha[j, column] * onward[j]
    level, running, chosen = point * total, 0.0, 0
    for j in range(n_states):
        weight = alpha[j, column] * onward[j]
        if weight > 0.0:
            chosen = j
            running += weight
            if running > level:
                break
    return chosen


def _band_pick_before(transposed, state, alpha, column, point):
    """The same for the band of the transposed matrix, in the same order of states."""
    n_states, width, first = alpha.shape[0], transposed.weights.shape[1], transposed.first[state]
    beyond = max(first + width - n_states, 0)  # entries that continue at state zero, and so come first
    total = 0.0
    for i in range(width):
        c = (i + width - beyond) % width
        total += alpha[wrapped(first + c, n_states), column] * transposed.weights[state, c]
    level, running, chosen = point * total, 0.0, 0
    for i in range(width):
        c = (i + width - beyond) % width
        j = wrapped(first + c, n_states)
        weight = alpha[j, column] * transposed.weights[state, c]
        if weight > 0.0:
            chosen = j
            running += weight
            if running > level:
                break
    return chosen


_pick_before = by_kind(_dense_pick_before, _band_pick_before, reorders=False)


def _dense_log_onward(log_transposed, state, out):
    """Log weights (K,) of the states before `state`."""
    out[:] = log_transposed[state]


def _band_log_onward(log_transposed, state, out):
    """The same for the band of the transposed matrix."""
    out[:] = -np.inf
    for c in range(log_transposed.weights.shape[1]):
        out[wrapped(log_transposed.first[state] + c, out.shape[0])] = log_transposed.weights[state, c]


log_onward_of = by_kind(_dense_log_onward, _band_log_onward, reorders=False)


@kernel
def _log_pick(log_alpha, position, log_onward, point, weights):
    """The state whose share holds the point, with weights in log space, (n, K)."""
    n_states = log_alpha.shape[1]
    largest = -np.inf
    for j in range(n_states):
        weights[j, 0] = log_alpha[position, j] + log_onward[j]
        largest = max(largest, weights[j, 0])
    for j in range(n_states):
        weights[j, 0] = np.exp(weights[j, 0] - largest)
    return _pick(weights, 0, point)


# ---- paths -----------------------------------------------------------------------------------------------------------


@kernel
def draw(alpha, transposed, walks, following, key, path, states):
    """Draw one path through each of many chains.

    Parameters
    ----------
    alpha : (K, n) filtered marginals
    transposed : (K, K) the transition matrix transposed, or the band of that
    walks : layout.Walks
    following : (lanes,) state that comes after each chain's last position, −1 where nothing does
    key, path : which uniform numbers to use
    states : (N,) output
    """
    begin = stream(key, path)
    for lane in range(walks.lengths.shape[0]):
        state = following[lane]
        last = walks.lengths[lane] - 1
        for step in range(last, -1, -1):
            position = walks.origins[lane] + step
            column, point = walks.columns[lane] + walks.offsets[step], uniform(begin, position)
            state = _pick(alpha, column, point) if state < 0 else _pick_before(transposed, state, alpha, column, point)
            states[position] = state


@kernel
def enter(alpha, transposed, walks, is_last, key, path, entries):
    """First state of each piece's path for every state that may follow the piece.

    Parameters
    ----------
    alpha, transposed, walks, key, path : as for `draw`
    is_last : (lanes,) whether the piece ends its sequence
    entries : (lanes, K) output; all the same where the piece ends its sequence
    """
    n_states = alpha.shape[0]
    begin = stream(key, path)
    now = np.empty(n_states, dtype=np.int64)
    drawn = np.empty(n_states, dtype=np.int64)
    for lane in range(walks.lengths.shape[0]):
        now[:] = np.arange(n_states)
        have_met = False
        last = walks.lengths[lane] - 1
        for step in range(last, -1, -1):
            position, column = walks.origins[lane] + step, walks.columns[lane] + walks.offsets[step]
            point = uniform(begin, position)
            if step == last and is_last[lane]:
                now[0] = _pick(alpha, column, point)
                have_met = True
            elif have_met:
                now[0] = _pick_before(transposed, now[0], alpha, column, point)
            else:
                drawn[:] = -1
                for k in range(n_states):
                    state = now[k]
                    if drawn[state] < 0:
                        drawn[state] = _pick_before(transposed, state, alpha, column, point)
                    now[k] = drawn[state]
                have_met = (now == now[0]).all()
        for k in range(n_states):
            entries[lane, k] = now[0] if have_met else now[k]


@kernel
def follow(entries, is_last, following):
    """State after each piece, from the maps of all pieces in the order of the data.

    Parameters
    ----------
    entries : (P, K) first state of the piece given the state after it
    is_last : (P,) whether the piece ends its sequence
    following : (P,) output, −1 where nothing follows
    """
    for piece in range(entries.shape[0] - 1, -1, -1):
        if is_last[piece]:
            following[piece] = -1
        else:
            following[piece] = entries[piece + 1, max(following[piece + 1], 0)]


@kernel
def draw_log(log_alpha, log_transposed, log_onward, origin, key, path, states):
    """Draw a path through one chain whose filtered marginals are known in log space.

    Parameters
    ----------
    log_alpha : (n, K) in any scale
    log_transposed : (K, K) the logarithm of the transition matrix, transposed, or the band of that
    log_onward : (K,) log weights of what comes after the last position, zeros where nothing does
    origin : position in `states` of the first of the n
    key, path : which uniform numbers to use
    states : (N,) output
    """
    n_states = log_alpha.shape[1]
    weights, begin = np.empty((n_states, 1)), stream(key, path)
    onward = log_onward.copy()
    for step in range(log_alpha.shape[0] - 1, -1, -1):
        position = origin + step
        state = _log_pick(log_alpha, step, onward, uniform(begin, position), weights)
        states[position] = state
        log_onward_of(log_transposed, state, onward)
