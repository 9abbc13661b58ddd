"""Steps of a visit with posterior marginals over all states: the states fill the vectors.

Tables are position-major with the K states padded to P (`single_chain`). A cluster's inner transitions are left out
while its own transition matrix is made; the counts themselves change once, when the new transitions take the place of
the old.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.vectors import (
    WIDTH,
    aligned,
    all_within,
    first,
    largest,
    load,
    logarithm,
    minus,
    spread,
    store,
    times,
    total,
    zeros,
)
from subchain.propagation.collapsed.dense_borders import add_border, free_total, surround, tail_of
from subchain.propagation.collapsed.log_space import log_table, rescue_piece
from subchain.propagation.collapsed.pieces import (
    most_positions,
    piece_room,
    put_back,
    run_piece,
    take_out,
    weight_of,
)
from subchain.propagation.collapsed.rows import stationary_first
from subchain.propagation.collapsed.single_chain import (
    add_pair_sums,
    forward_backward,
    loses_states,
    padded,
    transpose,
)
from subchain.propagation.collapsed.verbs import add_rows, weigh_rows
from subchain.propagation.compiled import bare_kernel, bare_part, ordered_kernel, ordered_part, rare
from subchain.propagation.verbs import implements

Array = NDArray[np.float64]

#: Marginals below this add nothing to an entropy.
NEGLIGIBLE = 1e-13
#: Stands for weights of zero, which have no logarithm.
_LEAST = np.full((1, 1), 1e-300)


class DenseMarginals(NamedTuple):
    """Posterior marginals (N, K) and inner transitions of clusters (S, K, K): what was put in, and what is now."""

    marginals: Array
    pairs: Array
    new_marginals: Array
    new_pairs: Array


class DenseRoom(NamedTuple):
    """Tables of a visit.

    Attributes
    ----------
    likelihood, alpha, weighted : (longest, P) of the present piece
    fresh : (positions of a cluster, P) new marginals
    scale : (1, longest) normalisers
    moves : (K, P) counts of transitions without the cluster, prior included; those of fixed entries without one
    row_totals : (1, P) what the free entries of each row sum to
    chances, transposed : (K, P), (P, P) predictive probabilities
    moved : (K, P) pair sums, to be multiplied by `chances`
    start, stop, initial : (1, P) messages from both sides, and probabilities of first states
    left : (1, P) scratch
    every : (P,) 0, 1, 2, …, K − 1, and then K − 1 again
    expected : (1,) expected log weights of the cluster
    done : (1,) positions of the cluster that have been run
    """

    likelihood: Array
    alpha: Array
    weighted: Array
    fresh: Array
    scale: Array
    moves: Array
    row_totals: Array
    chances: Array
    transposed: Array
    moved: Array
    start: Array
    stop: Array
    initial: Array
    left: Array
    every: NDArray[np.int64]
    expected: Array
    done: NDArray[np.int64]


@implements(piece_room, DenseMarginals)
def _piece_room(shares, order, pieces, rows):
    return _room(order, pieces, rows)


@rare
def _room(order, pieces, rows):
    """Tables for visits of the clusters in `order`."""
    n_states = rows.counts.shape[1]
    width = padded(n_states)
    longest, most = most_positions(order, pieces)
    likelihood, alpha, weighted = aligned(longest, width), aligned(longest, width), aligned(longest, width)
    moves, moved, transposed = aligned(n_states, width), aligned(n_states, width), aligned(width, width)
    # neighbours and fixed entries need to know how often transitions happened
    chances = moves if pieces.is_first.all() and not rows.has_fixed else aligned(n_states, width)
    start, stop, initial = aligned(1, width), aligned(1, width), aligned(1, width)
    likelihood[:], moves[:], start[:], stop[:], initial[:] = 0.0, 0.0, 0.0, 0.0, 0.0
    return DenseRoom(
        likelihood, alpha, weighted, aligned(most, width), np.empty((1, longest)), moves, aligned(1, width), chances,
        transposed, moved, start, stop, initial, aligned(1, width), np.minimum(np.arange(width), n_states - 1),
        np.empty(1), np.empty(1, np.int64),
    )  # fmt: skip


# ---- take out, predict -----------------------------------------------------------------------------------------------


@implements(take_out, DenseMarginals)
def _take_out(shares, cluster, pieces, rows, emissions, how, room):
    if how.excludes:
        for piece in range(cluster, pieces.starts.shape[0], pieces.size):
            at = pieces.starts[piece]
            add_rows(emissions, at, pieces.stops[piece], shares.marginals, at, -weight_of(pieces, piece))
    _predict_without(shares, cluster, pieces, rows, how, room)


@bare_kernel
def _predict_without(shares, cluster, pieces, rows, how, room):
    """Predict transitions and first states, without those of the cluster if it is to be excluded."""
    room.expected[0], room.done[0] = 0.0, 0
    _moves_without(
        rows, shares.pairs[pieces.share_of[cluster]], 1.0 if how.excludes else 0.0, room.moves, room.row_totals
    )
    for k in range(rows.counts.shape[1]):
        room.initial[0, k] = rows.counts[rows.counts.shape[1], k]
    if how.excludes:
        for piece in range(cluster, pieces.starts.shape[0], pieces.size):
            _take_out_ends(shares.marginals, piece, weight_of(pieces, piece), pieces, rows, room)
    _predict(rows, room)


@bare_part
def _remainder(table, own, row, column, mask, share, nothing):
    """A vector of counts without the share of them that is to be left out; never below zero."""
    return largest(minus(load(table, row, column, mask), times(load(own, row, column, mask), share)), nothing)


@bare_part
def _moves_without(rows, own, share, moves, row_totals):
    """Counts of transitions without a cluster's inner share, plus the prior; the sum of each row into `row_totals`."""
    n_states = rows.counts.shape[1]
    tail = tail_of(n_states)
    nothing = zeros()
    for j in range(n_states):
        summed = zeros()
        for k in range(0, tail, WIDTH):
            left = _remainder(rows.counts, own, j, k, None, share, nothing) + load(rows.concentration, j, k, None)
            store(moves, j, k, None, left)
            summed += left
        if tail < n_states:
            mask = first(n_states - tail)
            left = _remainder(rows.counts, own, j, tail, mask, share, nothing) + load(rows.concentration, j, tail, mask)
            store(moves, j, tail, None, left)
            summed += left
        row_totals[0, j] = total(summed)


@bare_part
def _take_out_ends(marginals, piece, gain, pieces, rows, room):
    """Take a piece's first state, and the transitions from and to its neighbours, out of what is predicted from."""
    at, end = pieces.starts[piece], pieces.stops[piece]
    if pieces.is_first[piece]:
        for k in range(marginals.shape[1]):
            room.initial[0, k] -= gain * marginals[at, k]
    else:
        add_border(marginals, at - 1, marginals, at, -gain, rows, room.moves)
    if not pieces.is_last[piece]:
        add_border(marginals, end - 1, marginals, end, -gain, rows, room.moves)
    if not (pieces.is_first[piece] and pieces.is_last[piece]):
        room.row_totals[0, 0] = -1.0  # to be summed anew


@bare_part
def _clamp_row(rows, j, moves):
    """Let no free entry of a row fall below its prior; return the sum of the free entries."""
    n_states, summed = rows.counts.shape[1], zeros()
    tail = tail_of(n_states)
    for k in range(0, tail, WIDTH):
        left = largest(load(moves, j, k, None), load(rows.concentration, j, k, None))
        store(moves, j, k, None, left)
        summed += left
    if tail < n_states:
        left = largest(load(moves, j, tail, None), load(rows.concentration, j, tail, first(n_states - tail)))
        store(moves, j, tail, None, left)
        summed += left
    return free_total(rows, j, moves, j, summed)


@bare_part
def _predict(rows, room):
    """Predictive probabilities of transitions and of first states."""
    n_states = rows.counts.shape[1]
    changed = rows.has_fixed or room.row_totals[0, 0] < 0.0
    for j in range(n_states):
        summed = _clamp_row(rows, j, room.moves) if changed else room.row_totals[0, j]
        factor = rows.shares[j] / summed if summed > 0.0 else 0.0
        for k in range(0, room.moves.shape[1], WIDTH):
            store(room.chances, j, k, None, times(load(room.moves, j, k, None), factor))
        if rows.has_fixed:
            for k in range(n_states):
                if not rows.concentration[j, k] > 0.0:
                    room.chances[j, k] = rows.fixed[j, k]
    transpose(room.chances, n_states, room.every, room.transposed)
    room.moved[:] = 0.0
    whole = 0.0
    for k in range(n_states):
        counted = max(room.initial[0, k], 0.0) if rows.learns_first else 0.0
        room.initial[0, k] = counted + rows.concentration[n_states, k] + rows.fixed[n_states, k]
        whole += room.initial[0, k]
    for k in range(n_states):
        room.initial[0, k] /= whole
    if rows.is_stationary:
        stationary_first(room.chances, n_states, room.initial)


# ---- run -------------------------------------------------------------------------------------------------------------


@implements(run_piece, DenseMarginals)
def _run_piece(shares, piece, pieces, rows, emissions, how, room, since):
    begin, end, n_states = pieces.starts[piece], pieces.stops[piece], rows.counts.shape[1]
    log_scale = weigh_rows(emissions, begin, end, n_states, room.likelihood)
    surround(shares, piece, pieces, rows, how, room)
    if _propagate(shares, piece, pieces, rows, how, room, since, log_scale):
        return np.int64(-1)
    lost = rescue_piece(log_table(emissions, begin, end, n_states), weight_of(pieces, piece), room, since)
    if lost >= 0:
        return begin + lost
    _found(shares, piece, pieces, rows, how, room)
    return np.int64(-1)


@bare_kernel
def _propagate(shares, piece, pieces, rows, how, room, since, log_scale):
    """Run a piece whose likelihoods are in the room; return False, having done nothing, if doubles do not suffice."""
    n, gain, n_states = pieces.stops[piece] - pieces.starts[piece], weight_of(pieces, piece), rows.counts.shape[1]
    smooth = room.fresh[room.done[0] : room.done[0] + n]
    log_total = forward_backward(
        room.chances, room.transposed, room.start, room.stop, room.likelihood, n, n_states, room.alpha, room.weighted,
        smooth, room.scale,
    )  # fmt: skip
    is_safe = rows.is_full and not rows.has_fixed
    if np.isnan(log_total) or (
        not is_safe and loses_states(room.chances, room.start, room.likelihood, n, n_states, room.alpha)
    ):
        return False
    if gain != 1.0:
        _scale_rows(room.weighted, n, gain)
    add_pair_sums(room.alpha, room.weighted, n, n_states, room.moved)
    since[0] += gain * (log_total + log_scale)
    if how.measures:
        since[1] += gain * log_total
        expected = _expected_log(smooth[0], room.start, n_states)
        expected += _expected_log(smooth[n - 1], room.stop, n_states)
        room.expected[0] += gain * (expected + _expected_logs(smooth, room.likelihood, n, n_states))
    _found(shares, piece, pieces, rows, how, room)
    return True


@bare_kernel
def _found(shares, piece, pieces, rows, how, room):
    """Write the new marginals of a piece, unless they have to wait."""
    n = pieces.stops[piece] - pieces.starts[piece]
    if _waits(how):
        room.done[0] += n
    else:
        smooth = room.fresh[room.done[0] : room.done[0] + n]
        _write(shares, smooth, piece, weight_of(pieces, piece), pieces, rows, how.puts_back, room)


@bare_part
def _waits(how):
    """Whether new marginals must wait until all of the cluster have been found: the old ones are still counted."""
    return how.puts_back and not how.excludes


@bare_part
def _scale_rows(table, n, factor):
    for position in range(n):
        for k in range(table.shape[1]):
            table[position, k] *= factor


@ordered_part
def _add_expected(summed, weights, row, others, column, mask, nothing):
    """Add weights · log(others), a vector of them, unless they weigh next to nothing."""
    these = load(weights, row, column, mask)
    if all_within(these, 0.0, NEGLIGIBLE):
        return summed
    return summed + these * logarithm(largest(load(others, row, column, None), nothing))


@ordered_kernel
def _expected_logs(weights, others, n_rows, n_states):
    """Sum of weights · log(others) over the first rows of two tables, the second with padding."""
    tail = n_states - n_states % WIDTH
    summed, nothing = zeros(), spread(_LEAST, 0, 0)
    for row in range(n_rows):
        for k in range(0, tail, WIDTH):
            summed = _add_expected(summed, weights, row, others, k, None, nothing)
        if tail < n_states:
            summed = _add_expected(summed, weights, row, others, tail, first(n_states - tail), nothing)
    return total(summed)


@bare_part
def _expected_log(marginals, weights, n_states):
    """Expected log weight of one state."""
    expected = 0.0
    for k in range(n_states):
        if marginals[k] > NEGLIGIBLE:
            expected += marginals[k] * np.log(weights[0, k])
    return expected


# ---- put back --------------------------------------------------------------------------------------------------------


@implements(put_back, DenseMarginals)
def _put_back(shares, cluster, pieces, rows, emissions, how, room, since):
    if how.excludes != how.puts_back:  # what was taken out comes back, or the other way round
        sign = 1.0 if how.excludes else -1.0
        for piece in range(cluster, pieces.starts.shape[0], pieces.size):
            at = pieces.starts[piece]
            add_rows(emissions, at, pieces.stops[piece], shares.marginals, at, sign * weight_of(pieces, piece))
    _put_back_chain(shares, cluster, pieces, rows, how, room, since)
    if how.puts_back:
        for piece in range(cluster, pieces.starts.shape[0], pieces.size):
            at = pieces.starts[piece]
            add_rows(emissions, at, pieces.stops[piece], shares.new_marginals, at, weight_of(pieces, piece))


@bare_kernel
def _put_back_chain(shares, cluster, pieces, rows, how, room, since):
    """Write new marginals that have waited, and new transitions; count them if the cluster is to be put back."""
    n_states, at, row = rows.counts.shape[1], 0, pieces.share_of[cluster]
    if _waits(how):
        for piece in range(cluster, pieces.starts.shape[0], pieces.size):
            n = pieces.stops[piece] - pieces.starts[piece]
            _write(shares, room.fresh[at : at + n], piece, weight_of(pieces, piece), pieces, rows, True, room)
            at += n
    if row > 0:
        gain = 1.0 if how.puts_back else 0.0
        _replace_moves(room, shares.pairs[row], gain, shares.new_pairs[row], rows.counts)
        if how.measures:
            room.expected[0] += _expected_logs(shares.new_pairs[row], room.chances, n_states, n_states)
    since[1] -= room.expected[0]


@bare_part
def _write(shares, smooth, piece, gain, pieces, rows, counts, room):
    """Write new marginals of a piece; count its first state, or transitions from and to its neighbours, if asked."""
    begin, end, marginals, n_states = pieces.starts[piece], pieces.stops[piece], shares.marginals, rows.counts.shape[1]
    if counts and pieces.is_first[piece]:
        for k in range(n_states):
            rows.counts[n_states, k] += gain * (smooth[0, k] - marginals[begin, k])
    elif counts:
        _subtract(smooth, 0, marginals, begin, room.left)
        add_border(marginals, begin - 1, room.left, 0, gain, rows, rows.counts)
    if counts and not pieces.is_last[piece]:
        _subtract(smooth, end - begin - 1, marginals, end - 1, room.left)
        add_border(room.left, 0, marginals, end, gain, rows, rows.counts)
    for position in range(end - begin):
        for k in range(n_states):
            shares.new_marginals[begin + position, k] = smooth[position, k]


@bare_part
def _subtract(table, row, others, other, out):
    """The difference of two rows."""
    for k in range(others.shape[1]):
        out[0, k] = table[row, k] - others[other, k]


@bare_part
def _replace_moves(room, own, gain, new, pairs):
    """Turn pair sums into expected transitions, which take the place of the old ones."""
    n_states = own.shape[0]
    tail = tail_of(n_states)
    for j in range(n_states):
        for k in range(0, tail, WIDTH):
            fresh = load(room.moved, j, k, None) * load(room.chances, j, k, None)
            change = minus(fresh, load(own, j, k, None))
            store(pairs, j, k, None, load(pairs, j, k, None) + times(change, gain))
            store(new, j, k, None, fresh)
        for k in range(tail, n_states):
            found = room.moved[j, k] * room.chances[j, k]
            pairs[j, k] += gain * (found - own[j, k])
            new[j, k] = found
