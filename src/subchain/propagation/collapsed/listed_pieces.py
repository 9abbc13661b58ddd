"""Steps of a visit with posterior marginals over legal states alone, kept as lists.

Counts are changed in place, entry by entry. Expected transitions into a position are a block of one number for every
pair of a legal state of the position before and one of its own, blocks one after the other; the first position of a
piece has none. Where states are few at most positions, these lists are kept too; where they are not, one table of all
transitions is kept for each cluster.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.collapsed.listed_counts import add_cluster, add_entries, add_neighbour, sum_moves
from subchain.propagation.collapsed.log_space import log_messages, log_table, with_evidence
from subchain.propagation.collapsed.pieces import (
    Legal,
    piece_room,
    put_back,
    run_piece,
    take_out,
    weight_of,
)
from subchain.propagation.collapsed.rows import entry, predictive, stationary_first
from subchain.propagation.collapsed.single_chain import LEAST_MARGINAL, LEAST_SCALE
from subchain.propagation.collapsed.verbs import has_logs, scaled_exponential, weigh
from subchain.propagation.compiled import bare_kernel, bare_part, family_part, ordered_part, rare
from subchain.propagation.verbs import implements

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Marginals below this add nothing to an entropy.
NEGLIGIBLE = 1e-13


class Lists(NamedTuple):
    """What clusters have put in.

    Attributes
    ----------
    marginals : (nnz,) one number for each legal state of each position
    pairs : (S, K, K) inner transitions of each cluster; a single, empty row if `moves` are kept
    moves : (entries,) the same as lists, or empty
    """

    marginals: Array
    pairs: Array
    moves: Array


class ListedMarginals(NamedTuple):
    """Posterior marginals of legal states and inner transitions: what was put in, and what is now.

    `blocks` (N + 1,) is where the transitions into each position begin.
    """

    legal: Legal
    blocks: Index
    old: Lists
    new: Lists


class ListedRoom(NamedTuple):
    """Lists of a visit: likelihoods, filtered marginals and backward messages of the present piece, the weights of its
    transitions; new marginals and transitions of the cluster; messages from both sides; expected log weights; how many
    entries and transitions of the cluster there are so far."""

    likelihood: Array
    alpha: Array
    beta: Array
    weights: Array
    fresh: Array
    fresh_moves: Array
    start: Array
    stop: Array
    expected: Array
    done: Index


@implements(piece_room, ListedMarginals)
def _piece_room(shares, order, pieces, rows):
    return _room(shares.legal.offsets, shares.blocks, order, pieces, rows.counts.shape[1])


@rare
def _room(offsets, blocks, order, pieces, n_states):
    """Tables for visits of the clusters in `order`."""
    most, most_moves, all_entries, all_moves = 1, 1, 1, 1
    for cluster in order:
        entries, moves = 0, 0
        for piece in range(cluster, pieces.starts.shape[0], pieces.size):
            own = offsets[pieces.stops[piece]] - offsets[pieces.starts[piece]]
            own_moves = blocks[pieces.stops[piece]] - blocks[pieces.starts[piece]]
            most, most_moves = max(most, own), max(most_moves, own_moves)
            entries, moves = entries + own, moves + own_moves
        all_entries, all_moves = max(all_entries, entries), max(all_moves, moves)
    return ListedRoom(
        np.empty(most), np.empty(most), np.empty(most), np.empty(most_moves), np.empty(all_entries),
        np.empty(all_moves), np.zeros(n_states), np.ones(n_states), np.empty(1), np.empty(2, np.int64),
    )  # fmt: skip


@implements(take_out, ListedMarginals)
def _take_out(shares, cluster, pieces, rows, emissions, how, room):
    room.expected[0], room.done[:] = 0.0, 0
    if how.excludes:
        add_entries(-1.0, cluster, pieces, shares.legal, shares.old.marginals, emissions)
        add_cluster(-1.0, cluster, pieces, shares, shares.old, rows)


@implements(put_back, ListedMarginals)
def _put_back(shares, cluster, pieces, rows, emissions, how, room, since):
    if how.excludes != how.puts_back:  # what was taken out comes back, or the other way round
        sign = 1.0 if how.excludes else -1.0
        add_entries(sign, cluster, pieces, shares.legal, shares.old.marginals, emissions)
        add_cluster(sign, cluster, pieces, shares, shares.old, rows)
    _write(shares, cluster, pieces, _waits(how), room)
    if how.puts_back:
        add_entries(1.0, cluster, pieces, shares.legal, shares.new.marginals, emissions)
        add_cluster(1.0, cluster, pieces, shares, shares.new, rows)
    since[1] -= room.expected[0]


@bare_part
def _waits(how):
    """Whether new marginals must wait until all of the cluster have been found: the old ones are still counted."""
    return how.puts_back and not how.excludes


@bare_kernel
def _write(shares, cluster, pieces, waited, room):
    """Write new marginals and transitions that have waited in the room, and sum the latter if tables are kept."""
    legal, blocks, new, row, at, at_move = shares.legal, shares.blocks, shares.new, pieces.share_of[cluster], 0, 0
    as_table = row > 0 and not new.moves.shape[0]
    if as_table:
        new.pairs[row] = 0.0
    for piece in range(cluster, pieces.starts.shape[0], pieces.size):
        first, last = pieces.starts[piece], pieces.stops[piece]
        entries, moves = legal.offsets[last] - legal.offsets[first], blocks[last] - blocks[first]
        if waited:
            for a in range(entries):
                new.marginals[legal.offsets[first] + a] = room.fresh[at + a]
            for a in range(moves if new.moves.shape[0] else 0):
                new.moves[blocks[first] + a] = room.fresh_moves[at_move + a]
        if as_table:
            sum_moves(first, last, legal, blocks, room.fresh_moves, at_move, new.pairs[row])
        at, at_move = at + entries, at_move + moves


# ---- run -------------------------------------------------------------------------------------------------------------


@implements(run_piece, ListedMarginals)
def _run_piece(shares, piece, pieces, rows, emissions, how, room, since):
    first, last = pieces.starts[piece], pieces.stops[piece]
    log_scale = _weigh_entries(first, last, shares.legal, emissions, room)
    if _propagate(shares, piece, pieces, rows, how, room, since, log_scale):
        return np.int64(-1)
    logs = log_table(emissions, first, last, rows.counts.shape[1])
    lost = _rescue_piece(shares, piece, pieces, rows, how, room, since, logs)
    return np.int64(-1) if lost < 0 else first + lost


@bare_part
def _outputs(shares, piece, pieces, how, room):
    """Where the new marginals and transitions of a piece are written."""
    fresh, fresh_moves, first = room.fresh[room.done[0] :], room.fresh_moves[room.done[1] :], pieces.starts[piece]
    if not _waits(how):  # the old ones are not counted any more, or kept elsewhere
        fresh = shares.new.marginals[shares.legal.offsets[first] :]
        if shares.new.moves.shape[0]:
            fresh_moves = shares.new.moves[shares.blocks[first] :]
    return fresh, fresh_moves


@bare_part
def _report(shares, piece, pieces, room, since, totals, moves):
    """Add log normalisers and expected log weights; let transitions count as often as the piece does."""
    first, last, gain = pieces.starts[piece], pieces.stops[piece], weight_of(pieces, piece)
    n_moves = shares.blocks[last] - shares.blocks[first]
    since[0] += gain * totals[0]
    since[1] += gain * totals[1]
    room.expected[0] += gain * totals[2]
    room.done[0] += shares.legal.offsets[last] - shares.legal.offsets[first]
    room.done[1] += n_moves
    if gain != 1.0:
        for a in range(n_moves):
            moves[a] *= gain


@bare_kernel
def _propagate(shares, piece, pieces, rows, how, room, since, log_scale):
    """Run a piece whose likelihoods are in the room; return False, having done nothing, if doubles do not suffice."""
    first, last, legal = pieces.starts[piece], pieces.stops[piece], shares.legal
    _weigh_moves(first, last, legal, rows, room.weights)
    _surround(shares, piece, pieces, rows, how, room)
    log_total = _forward(first, last, legal, rows, room)
    if np.isnan(log_total):
        return False
    meeting = _meeting(first, last, legal, room)
    if not meeting >= LEAST_SCALE:
        return False
    marginals, moves = _outputs(shares, piece, pieces, how, room)
    log_meeting, expected = _backward(first, last, legal, shares.blocks, room, meeting, marginals, moves)
    # the likelihoods were divided by what makes up `log_total`
    totals = (log_total + log_scale + log_meeting, log_meeting, expected)
    _report(shares, piece, pieces, room, since, totals, moves)
    return True


@family_part
def _weigh_entries(first, last, legal, emissions, room):
    """Predictive weights of observations in their legal states, evidence included; return the log of their scale.

    Factors go to `likelihood`, logarithms to `alpha` until they have been scaled.
    """
    low, log_scale = legal.offsets[first], 0.0
    for position in range(first, last):
        here, there, top = legal.offsets[position] - low, legal.offsets[position + 1] - low, -np.inf
        for a in range(here, there):
            factor, log = weigh(emissions, position, legal.states[low + a])
            if legal.factors.shape[0] and has_logs(emissions):
                log += legal.logs[low + a]
            elif legal.factors.shape[0]:
                factor *= legal.factors[low + a]
            room.likelihood[a] = factor
            if has_logs(emissions):
                room.alpha[a] = log
                top = max(top, log)
        if has_logs(emissions):
            for a in range(here, there):
                room.likelihood[a] *= scaled_exponential(room.alpha[a], top)
            log_scale += top if top > -np.inf else 0.0
    return log_scale


@bare_part
def _weigh_moves(first, last, legal, rows, weights):
    """Predictive weights of the transitions between legal states, position by position."""
    at, offsets, states = 0, legal.offsets, legal.states
    for position in range(first + 1, last):
        for a in range(offsets[position - 1], offsets[position]):
            j = states[a]
            factor = rows.shares[j] / (max(rows.totals[j], 0.0) + rows.prior_totals[j])
            for b in range(offsets[position], offsets[position + 1]):
                k = states[b]
                weights[at] = (max(rows.counts[j, k], 0.0) + rows.concentration[j, k]) * factor
                if rows.has_fixed and not rows.concentration[j, k] > 0.0:
                    weights[at] = rows.fixed[j, k]
                at += 1


@rare
def _stationary_start(rows, start):
    """Weights of a sequence's first state where chains begin in their stationary distribution."""
    n_states = start.shape[0]
    chances = np.empty((n_states + 1, n_states))
    predictive(rows, chances)
    stationary_first(chances, n_states, start.reshape(1, n_states))


@bare_part
def _first_states(rows, start):
    """Weights of a sequence's first state."""
    n_states = start.shape[0]
    factor = rows.shares[n_states] / (max(rows.totals[n_states], 0.0) + rows.prior_totals[n_states])
    for k in range(n_states):
        counted = (rows.concentration[n_states, k] + max(rows.counts[n_states, k], 0.0)) * factor
        start[k] = counted if rows.learns_first else rows.fixed[n_states, k]
    if rows.is_stationary:
        _stationary_start(rows, start)


@bare_part
def _surround(shares, piece, pieces, rows, how, room):
    """What a piece is told by its neighbours: weights of its first state, backward message of its last.

    Where every cluster is one piece, the neighbours' own shares are taken out meanwhile.
    """
    without = how.excludes and pieces.size == pieces.starts.shape[0]
    if pieces.is_first[piece]:
        _first_states(rows, room.start)
    else:
        border = -1 if pieces.is_first[piece - 1] else pieces.starts[piece - 1]
        if without:
            add_neighbour(-1.0, piece - 1, border, pieces, shares, rows)
        _enter(pieces.starts[piece], shares.legal, shares.old.marginals, rows, how.by_counts, room.start)
        if without:
            add_neighbour(1.0, piece - 1, border, pieces, shares, rows)
    if pieces.is_last[piece]:
        room.stop[:] = 1.0
    else:
        border = -1 if pieces.is_last[piece + 1] else pieces.stops[piece + 1]
        if without:
            add_neighbour(-1.0, piece + 1, border, pieces, shares, rows)
        _leave(pieces.stops[piece], shares.legal, shares.old.marginals, rows, room.stop)
        if without:
            add_neighbour(1.0, piece + 1, border, pieces, shares, rows)


@bare_part
def _enter(first, legal, marginals, rows, by_counts, start):
    """Weights of a piece's first state, given the marginals of the position before (3.68)."""
    offsets, states = legal.offsets, legal.states
    for b in range(offsets[first], offsets[first + 1]):
        start[states[b]] = 0.0
    for a in range(offsets[first - 1], offsets[first]):
        j, weight = states[a], marginals[a]
        if by_counts:
            summed = rows.counts[j].sum() if rows.has_fixed else max(rows.totals[j], 0.0)
            weight *= summed + rows.prior_totals[j]
        for b in range(offsets[first], offsets[first + 1]):
            start[states[b]] += weight * entry(rows, j, states[b])


@bare_part
def _leave(last, legal, marginals, rows, stop):
    """Backward message of a piece's last state, given the marginals of the position after it (3.69)."""
    offsets, states = legal.offsets, legal.states
    for a in range(offsets[last - 1], offsets[last]):
        message = 0.0
        for b in range(offsets[last], offsets[last + 1]):
            message += marginals[b] * entry(rows, states[a], states[b])
        stop[states[a]] = message


@bare_part
def _forward(first, last, legal, rows, room):
    """Filtered marginals; divides the likelihoods by the normalisers and returns the sum of their logarithms.

    It is nan where doubles do not suffice: a normaliser nearly vanishes, or a state is lost where not all transitions
    are possible, so that others may not lead to where it does.
    """
    offsets, likelihood, alpha, weights = legal.offsets, room.likelihood, room.alpha, room.weights
    log_total, low, at, is_safe = 0.0, offsets[first], 0, rows.is_full and not rows.has_fixed
    for position in range(first, last):
        before = offsets[position - 1] if position > first else low
        now, after = offsets[position], offsets[position + 1]
        norm, is_lost = 0.0, False
        for b in range(now, after):
            if position == first:
                predicted = room.start[legal.states[b]]
            else:
                predicted = 0.0
                for a in range(before, now):
                    predicted += alpha[a - low] * weights[at + (a - before) * (after - now) + b - now]
            alpha[b - low] = predicted * likelihood[b - low]
            norm += alpha[b - low]
            if not is_safe and predicted > 0.0 and likelihood[b - low] > 0.0 and alpha[b - low] < LEAST_MARGINAL:
                is_lost = True
        if is_lost or not norm >= LEAST_SCALE:
            return np.nan
        if position > first:
            at += (now - before) * (after - now)
        log_total += np.log(norm)
        for b in range(now, after):
            alpha[b - low] /= norm
            likelihood[b - low] /= norm
    return log_total


@ordered_part
def _expected(weight, factor):
    """An expected logarithm; what weighs next to nothing adds nothing."""
    return weight * np.log(factor) if weight > NEGLIGIBLE else 0.0


@bare_part
def _meeting(first, last, legal, room):
    """Return the sum of products of the filtered marginals and the message from behind, at the last position."""
    low, summed = legal.offsets[first], 0.0
    for a in range(legal.offsets[last - 1], legal.offsets[last]):
        summed += room.alpha[a - low] * room.stop[legal.states[a]]
    return summed


@bare_part
def _backward(first, last, legal, blocks, room, meeting, marginals, moves):
    """Write new marginals and transitions; return the log of where both messages meet, and the expected log weight.

    `beta` is the backward message of a position, and then that times its likelihood.
    """
    offsets, states, likelihood, alpha, beta = legal.offsets, legal.states, room.likelihood, room.alpha, room.beta
    low, block, expected = offsets[first], blocks[first], 0.0
    for a in range(offsets[last - 1], offsets[last]):
        beta[a - low] = room.stop[states[a]] / meeting
        expected += _expected(alpha[a - low] * beta[a - low], room.stop[states[a]])
    for position in range(last - 1, first - 1, -1):
        for b in range(offsets[position], offsets[position + 1]):
            marginals[b - low] = alpha[b - low] * beta[b - low]
            beta[b - low] *= likelihood[b - low]
            expected += _expected(marginals[b - low], likelihood[b - low])
        if position == first:
            break
        at = blocks[position] - block
        for a in range(offsets[position - 1], offsets[position]):
            message = 0.0
            for b in range(offsets[position], offsets[position + 1]):
                onward = room.weights[at] * beta[b - low]
                message += onward
                moves[at] = alpha[a - low] * onward
                expected += _expected(moves[at], room.weights[at])
                at += 1
            beta[a - low] = message
    for b in range(low, offsets[first + 1]):
        expected += _expected(marginals[b - low], room.start[states[b]])
    return np.log(meeting), expected


@rare
def _rescue_piece(shares, piece, pieces, rows, how, room, since, logs):
    """The same in log space, over tables of all states; `logs` (n, K) are weights of observations.

    Returns the number of the first position that no state explains, −1 if there is none.
    """
    first, last, legal = pieces.starts[piece], pieces.stops[piece], shares.legal
    offsets, states, n_states = legal.offsets, legal.states, rows.counts.shape[1]
    marginals, moves = _outputs(shares, piece, pieces, how, room)
    low, at, expected = offsets[first], 0, 0.0
    known = with_evidence(logs, legal, first)
    chances = np.empty((n_states + 1, n_states))
    predictive(rows, chances)
    alpha, beta, log_moves, log_total, lost = log_messages(known, chances[:n_states], room.start, room.stop)
    if lost >= 0:
        return np.int64(lost)
    for position in range(first, last):
        i = position - first
        norm = np.exp(alpha[i] + beta[i] - log_total).sum()  # one but for rounding, which large logarithms have more of
        for b in range(offsets[position], offsets[position + 1]):
            k = states[b]
            marginals[b - low] = np.exp(alpha[i, k] + beta[i, k] - log_total) / norm
            if marginals[b - low] > NEGLIGIBLE:
                expected += marginals[b - low] * known[i, k]
                expected += marginals[b - low] * np.log(room.start[k]) if position == first else 0.0
                expected += marginals[b - low] * np.log(room.stop[k]) if position == last - 1 else 0.0
        if position == first:
            continue
        for a in range(offsets[position - 1], offsets[position]):
            for b in range(offsets[position], offsets[position + 1]):
                step = log_moves[states[a], states[b]]
                onward = step + known[i, states[b]] + beta[i, states[b]] - log_total
                moves[at] = np.exp(alpha[i - 1, states[a]] + onward) / norm
                expected += moves[at] * step if moves[at] > NEGLIGIBLE else 0.0
                at += 1
    _report(shares, piece, pieces, room, since, (log_total, log_total, expected), moves)
    return np.int64(-1)
