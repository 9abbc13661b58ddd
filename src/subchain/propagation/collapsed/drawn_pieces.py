"""Steps of a visit of whole sequences whose paths are drawn: propose by filtering, accept by Metropolis and Hastings.

A sequence is taken out of the counts, and the rest makes a plain hidden Markov model, the predictive one. A path drawn
from it by forward filtering and backward sampling is nearly a draw from the sequence's distribution given the others
(Johnson, Griffiths and Goldwater 2007 do so for trees): nearly, since inside a path every transition makes the next one
of its kind more probable, which the plain model leaves out. So the new path takes the place of the old one with
probability

    min(1,  p(new) q(old) / (p(old) q(new)))

where p multiplies predictive probabilities that change along the path, and q those that do not. This makes it exact.
Sequences that underflow are proposed in log space.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.random import stream, uniform
from subchain.numerics.vectors import aligned
from subchain.propagation.collapsed.drawn_states import DrawnStates
from subchain.propagation.collapsed.log_space import log_table, with_evidence
from subchain.propagation.collapsed.pieces import most_positions, piece_room, put_back, run_piece, take_out
from subchain.propagation.collapsed.rows import predictive, put_in_path, scaled_log, take_out_path
from subchain.propagation.collapsed.single_chain import (
    LEAST_SCALE,
    loses_states,
    padded,
    product,
    scale_row,
    weigh_row,
)
from subchain.propagation.collapsed.verbs import add, has_logs, scaled_exponential, weigh, weigh_rows
from subchain.propagation.compiled import bare_part, family_part, ordered_part, rare
from subchain.propagation.serial import log_forward
from subchain.propagation.verbs import implements

Array = NDArray[np.float64]


class PathRoom(NamedTuple):
    """Tables of a visit.

    Attributes
    ----------
    moves : (K + 1, P) predictive probabilities, row K for first states
    likelihood, alpha : (longest, P) weights of observations, filtered marginals
    scale : (1, 1) scratch
    kept : (P,) scratch
    old, new : (longest,) the path there is, and the one that is proposed
    logs : (2,) log probability of the old path given all others; log ratio q(old) / q(new), nan if none was proposed
    begin : (1,) where the random numbers of the sweep begin
    """

    moves: Array
    likelihood: Array
    alpha: Array
    scale: Array
    kept: Array
    old: NDArray[np.int64]
    new: NDArray[np.int64]
    logs: Array
    begin: NDArray[np.uint64]


@implements(piece_room, DrawnStates)
def _piece_room(shares, order, pieces, rows):
    n_states = rows.counts.shape[1]
    width, longest = padded(n_states), most_positions(order, pieces)[0]
    moves, likelihood = aligned(n_states + 1, width), aligned(longest, width)
    moves[:], likelihood[:] = 0.0, 0.0
    begin = np.array([stream(shares.key, shares.sweep)])
    return PathRoom(
        moves, likelihood, aligned(longest, width), np.empty((1, 1)), np.empty(width), np.empty(longest, np.int64),
        np.empty(longest, np.int64), np.empty(2), begin,
    )  # fmt: skip


# ---- steps -----------------------------------------------------------------------------------------------------------


@implements(take_out, DrawnStates)
def _take_out(shares, cluster, pieces, rows, emissions, how, room):
    first, n = pieces.starts[cluster], pieces.stops[cluster] - pieces.starts[cluster]
    for i in range(n):
        room.old[i] = shares.states[first + i]
    room.logs[0] = take_out_path(rows, room.old[:n]) + _take_out_emissions(emissions, first, room.old, n)
    predictive(rows, room.moves)


@implements(run_piece, DrawnStates)
def _run_piece(shares, piece, pieces, rows, emissions, how, room, since):
    first, n, n_states = pieces.starts[piece], pieces.stops[piece] - pieces.starts[piece], rows.counts.shape[1]
    is_listed = shares.legal.offsets.shape[0] > 0
    if is_listed:
        _weigh_listed(shares.legal, first, n, emissions, room)
    else:
        weigh_rows(emissions, first, pieces.stops[piece], n_states, room.likelihood)
    room.logs[1] = _log_plain(room, room.old, n)
    if shares.power != 1.0:
        _raise_rows(room.moves, n_states + 1, shares.power)
        _raise_rows(room.likelihood, n, shares.power)
    found = _filter_listed(shares.legal, first, n, room) if is_listed else _filter(room, n, n_states)
    start, is_safe = room.moves[n_states : n_states + 1], rows.is_full and not rows.has_fixed
    if found and (is_safe or not loses_states(room.moves, start, room.likelihood, n, n_states, room.alpha)):
        _draw_backward(shares.legal, room, n, n_states, first)
        room.logs[1] -= _log_plain(room, room.new, n) / shares.power
    else:
        logs = log_table(emissions, first, pieces.stops[piece], n_states)
        if is_listed:
            logs = with_evidence(logs, shares.legal, first)
        room.logs[1] = _propose_in_log_space(logs, shares.power, first, room)
    return np.int64(-1)


@implements(put_back, DrawnStates)
def _put_back(shares, cluster, pieces, rows, emissions, how, room, since):
    first, n, differ = pieces.starts[cluster], pieces.stops[cluster] - pieces.starts[cluster], 0
    old, new, log_ratio = room.old[:n], room.new[:n], room.logs[1]
    is_proposed = not np.isnan(log_ratio)
    if is_proposed:
        for i in range(n):
            differ += old[i] != new[i]
    log_level = np.log(max(uniform(room.begin[0], shares.states.shape[0] + pieces.share_of[cluster]), 1e-300))
    accepts = is_proposed
    if differ > 0:
        log_ratio += put_in_path(rows, new) + _put_in_emissions(emissions, first, new, n) - room.logs[0]
        if shares.legal.factors.shape[0]:
            log_ratio += _log_known(shares.legal, first, new) - _log_known(shares.legal, first, old)
        accepts = how.puts_back and log_level < log_ratio * shares.power
        if not accepts:
            take_out_path(rows, new)
            _take_out_emissions(emissions, first, new, n)
    if differ == 0 or not accepts:
        put_in_path(rows, old)
        _put_in_emissions(emissions, first, old, n)
    if how.puts_back:
        since[0] += differ if accepts else 0
        since[1] += accepts
        _write(shares.states, first, new if accepts else old)
    else:  # a proposal that the caller accepts or refuses
        since[0], since[1] = log_ratio, log_level
        _write(shares.new_states, first, new if differ > 0 else old)


@bare_part
def _write(states, first, path):
    """Write a sequence's states."""
    for i in range(path.shape[0]):
        states[first + i] = path[i]


# ---- what was seen along a path --------------------------------------------------------------------------------------


@family_part
def _take_out_emissions(emissions, first, path, n):
    """Take a sequence's observations out of the counts; return their log probability given all others."""
    product, log_total = 1.0, 0.0
    for i in range(n - 1, -1, -1):
        add(emissions, first + i, path[i], -1.0)
        factor, log = weigh(emissions, first + i, path[i])
        product, log_total = scaled_log(product * factor, log_total + log)
    return log_total + np.log(product)


@family_part
def _put_in_emissions(emissions, first, path, n):
    """Count a sequence's observations; return their log probability given all others."""
    product, log_total = 1.0, 0.0
    for i in range(n):
        factor, log = weigh(emissions, first + i, path[i])
        product, log_total = scaled_log(product * factor, log_total + log)
        add(emissions, first + i, path[i], 1.0)
    return log_total + np.log(product)


@bare_part
def _weigh_listed(legal, first, n, emissions, room):
    """Weights of a sequence's observations in their legal states, evidence included, and zeros for other states."""
    for i in range(n):
        low, high, top = legal.offsets[first + i], legal.offsets[first + i + 1], -np.inf
        for k in range(room.moves.shape[0] - 1):
            room.likelihood[i, k] = 0.0
        for a in range(low, high):
            factor, log = weigh(emissions, first + i, legal.states[a])
            if legal.factors.shape[0] and has_logs(emissions):
                log += legal.logs[a]
            elif legal.factors.shape[0]:
                factor *= legal.factors[a]
            room.likelihood[i, legal.states[a]] = factor
            room.kept[a - low] = log
            top = max(top, log)
        if has_logs(emissions):
            for a in range(low, high):
                room.likelihood[i, legal.states[a]] *= scaled_exponential(room.kept[a - low], top)


@bare_part
def _log_known(legal, first, path):
    """Log weight of a path by what is known of its states."""
    log_total = 0.0
    for i in range(path.shape[0]):
        for a in range(legal.offsets[first + i], legal.offsets[first + i + 1]):
            if legal.states[a] == path[i]:
                log_total += legal.logs[a]
    return log_total


# ---- the plain model -------------------------------------------------------------------------------------------------


@ordered_part
def _log_plain(room, path, n):
    """Log probability of a path and what was observed along it under the plain model."""
    product, log_total, before = 1.0, 0.0, np.int64(room.moves.shape[0] - 1)
    for i in range(n):
        product *= room.moves[before, path[i]] * room.likelihood[i, path[i]]
        product, log_total = scaled_log(product, log_total)
        before = path[i]
    return log_total + np.log(product)


@ordered_part
def _raise_rows(table, n_rows, power):
    """Raise a table of probabilities to a power."""
    for i in range(n_rows):
        for k in range(table.shape[1]):
            if table[i, k] > 0.0:
                table[i, k] = np.exp(np.log(table[i, k]) * power)


@bare_part
def _filter(room, n, n_states):
    """Filtered marginals of n positions; False if a normaliser underflows."""
    for i in range(n):
        if i == 0:
            for k in range(room.alpha.shape[1]):
                room.alpha[0, k] = room.moves[n_states, k]
        else:
            product(room.alpha, i - 1, room.moves, n_states, room.alpha, i)
        norm = weigh_row(room.alpha, i, room.likelihood, i)
        if not LEAST_SCALE <= norm < np.inf:
            return False
        room.scale[0, 0] = 1.0 / norm
        scale_row(room.alpha, i, room.scale, 0)
    return True


@bare_part
def _filter_listed(legal, first, n, room):
    """The same over legal states alone."""
    for i in range(n):
        norm, low = 0.0, legal.offsets[first + i]
        for k in range(room.alpha.shape[1]):
            room.alpha[i, k] = 0.0
        for b in range(low, legal.offsets[first + i + 1]):
            k = legal.states[b]
            predicted = room.moves[room.moves.shape[0] - 1, k]
            if i > 0:
                predicted = 0.0
                for a in range(legal.offsets[first + i - 1], low):
                    predicted += room.alpha[i - 1, legal.states[a]] * room.moves[legal.states[a], k]
            room.alpha[i, k] = predicted * room.likelihood[i, k]
            norm += room.alpha[i, k]
        if not LEAST_SCALE <= norm < np.inf:
            return False
        for b in range(low, legal.offsets[first + i + 1]):
            room.alpha[i, legal.states[b]] /= norm
    return True


@bare_part
def _draw_backward(legal, room, n, n_states, first):
    """Draw a path given the filtered marginals; random numbers are those of the positions from `first` on."""
    following, is_listed = np.int64(-1), legal.offsets.shape[0] > 0
    low, count = np.int64(0), np.int64(n_states)
    for i in range(n - 1, -1, -1):
        if is_listed:
            low, count = legal.offsets[first + i], legal.offsets[first + i + 1] - legal.offsets[first + i]
        for a in range(count):
            j = np.int64(legal.states[low + a]) if is_listed else a
            room.kept[a] = room.alpha[i, j] * (1.0 if following < 0 else room.moves[j, following])
        chosen = _choose(room.kept, count, uniform(room.begin[0], first + i))
        room.new[i] = following = np.int64(legal.states[low + chosen]) if is_listed else chosen


@ordered_part
def _choose(weights, count, level):
    """Turn a uniform number into one of the first `count` items, in proportion to their weights."""
    total, reach, chosen = 0.0, 0.0, np.int64(0)
    for a in range(count):
        total += weights[a]
    for a in range(count):
        if weights[a] > 0.0:
            chosen = np.int64(a)
            reach += weights[a]
            if reach > level * total:
                break
    return chosen


@rare
def _propose_in_log_space(logs, power, first, room):
    """Draw a path of a sequence that underflows; return log q(old) / q(new), or nan if no path is possible.

    Parameters
    ----------
    logs : (n, K) log weights of its observations
    power : that probabilities are raised to; those in `room.moves` already are
    """
    n, n_states = logs.shape
    logs, log_moves = logs * power, np.log(room.moves[:, :n_states])
    alpha = np.empty((n, n_states))
    log_forward(logs, log_moves[:n_states].copy(), log_moves[n_states].copy(), alpha)
    log_ratio, after = 0.0, np.zeros(n_states)
    for i in range(n - 1, -1, -1):
        joint = alpha[i] + after
        top = joint.max()
        if not -np.inf < top < np.inf:
            return np.nan
        for k in range(n_states):
            room.kept[k] = np.exp(joint[k] - top)
        old, new = room.old[i], _choose(room.kept, n_states, uniform(room.begin[0], first + i))
        room.new[i] = new
        log_ratio += logs[i, old] - logs[i, new]
        if i < n - 1:
            log_ratio += log_moves[old, room.old[i + 1]] - log_moves[new, room.new[i + 1]]
        if i == 0:
            log_ratio += log_moves[n_states, old] - log_moves[n_states, new]
        for k in range(n_states):
            after[k] = log_moves[k, new]
    return log_ratio / power
