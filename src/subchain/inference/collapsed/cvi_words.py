"""Visits of many clusters of words in one compiled call: categorical emissions, Dirichlet rows, all states legal.

A cluster is one sequence, or a stretch of one, or several of them. What it has put into the counts is taken out, the
rest makes its own moves and its own table of words, forward-backward makes new marginals, and these are put back.
Nothing is built that the cluster does not look at: of the table of words only the rows of its own.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from numpy.typing import NDArray

from subchain.inference.collapsed.ledger import Ledger
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
    total,
    zeros,
)
from subchain.propagation.collapsed.single_chain import add_pair_sums, forward_backward, padded, transpose
from subchain.propagation.compiled import kernel, part

if TYPE_CHECKING:
    from subchain.inference.cvi import CVI

Array = NDArray[np.float64]

#: Clusters between two checks for an interruption.
AT_ONCE = 2_000
#: Marginals below this add nothing to an entropy.
NEGLIGIBLE = 1e-13
#: Stands for weights of zero, which have no logarithm.
LEAST = 1e-300
#: Compiled without reordering, which logarithms do not survive.
exact = njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
fused = njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy", forceinline=True)


@part
def _tail(n_states):
    """First state of the last, incomplete vector."""
    return n_states - n_states % WIDTH


@part
def _add_row(table, row, n_states, others, other, gain):
    """Add a multiple of a row to another, K entries each."""
    tail = _tail(n_states)
    for k in range(0, tail, WIDTH):
        store(table, row, k, None, load(table, row, k, None) + gain * load(others, other, k, None))
    if tail < n_states:
        mask = first(n_states - tail)
        store(table, row, tail, mask, load(table, row, tail, mask) + gain * load(others, other, tail, mask))


@part
def _add_words(symbols, marginals, at, n_states, factors, counts, totals):
    """Add what n positions believe, from row `at` on, times factors[0, 0], to the counts of their words."""
    gain = spread(factors, 0, 0)
    for position in range(symbols.shape[0]):
        if symbols[position] >= 0:
            _add_row(counts, symbols[position], n_states, marginals, at + position, gain)
            _add_row(totals, 0, n_states, marginals, at + position, gain)


@part
def _remainder(table, row, own, at, column, mask, share, nothing):
    """A vector of counts without the share of them that is to be left out; never below zero."""
    return largest(minus(load(table, row, column, mask), share * load(own, at, column, mask)), nothing)


@part
def _weigh_words(symbols, counts, concentration, divisors, n_states, likelihood):
    """Predictive weights of words under the counts; missing ones weigh one."""
    same = concentration.shape[0] == 1
    tail = _tail(n_states)
    nothing = zeros()
    for position in range(symbols.shape[0]):
        symbol = symbols[position]
        if symbol < 0:
            for k in range(n_states):
                likelihood[position, k] = 1.0
            continue
        prior = 0 if same else symbol
        for k in range(0, tail, WIDTH):
            weight = largest(load(counts, symbol, k, None), nothing) + load(concentration, prior, k, None)
            store(likelihood, position, k, None, weight * load(divisors, 0, k, None))
        if tail < n_states:
            mask = first(n_states - tail)
            weight = largest(load(counts, symbol, tail, mask), nothing) + load(concentration, prior, tail, mask)
            store(likelihood, position, tail, None, weight * load(divisors, 0, tail, None))


@part
def _moves_without(pairs, own, excluded, prior, n_states, moves, row_totals):
    """Counts of moves without a cluster's inner share, plus the prior; the sum of each row into `row_totals` (1, P)."""
    tail = _tail(n_states)
    nothing, share = zeros(), spread(excluded, 0, 0)
    for j in range(n_states):
        summed = zeros()
        for k in range(0, tail, WIDTH):
            left = _remainder(pairs, j, own, j, k, None, share, nothing) + load(prior, j, k, None)
            store(moves, j, k, None, left)
            summed += left
        if tail < n_states:
            mask = first(n_states - tail)
            left = _remainder(pairs, j, own, j, tail, mask, share, nothing) + load(prior, j, tail, mask)
            store(moves, j, tail, None, left)
            summed += left
        row_totals[0, j] = total(summed)


@part
def _normalize(moves, row_totals, n_states, chances, factors):
    """Rows of moves divided by their sums."""
    for j in range(n_states):
        factors[0, j] = 1.0 / row_totals[0, j]
        factor = spread(factors, 0, j)
        for k in range(0, moves.shape[1], WIDTH):
            store(chances, j, k, None, load(moves, j, k, None) * factor)


@part
def _replace_moves(found, moves, own, new, n_states, pairs, put_back):
    """Turn pair sums into expected moves, which take the place of the old ones."""
    tail = _tail(n_states)
    gain = spread(put_back, 0, 0)
    for j in range(n_states):
        for k in range(0, tail, WIDTH):
            fresh = load(found, j, k, None) * load(moves, j, k, None)
            change = minus(fresh, load(own, j, k, None))
            store(pairs, j, k, None, load(pairs, j, k, None) + gain * change)
            store(new, j, k, None, fresh)
        if tail < n_states:
            mask = first(n_states - tail)
            fresh = load(found, j, tail, None) * load(moves, j, tail, None)
            change = minus(fresh, load(own, j, tail, mask))
            store(pairs, j, tail, mask, load(pairs, j, tail, mask) + gain * change)
            store(new, j, tail, mask, fresh)


# ---- between clusters of one sequence --------------------------------------------------------------------------------


@kernel
def _take_out(before, after, n_states, moves, row_totals):
    """Take the move between two clusters, whose end and beginning are believed so, out of the counts of moves."""
    for j in range(n_states):
        for k in range(n_states):
            moves[j, k] -= before[j] * after[k]
        row_totals[0, j] -= before[j]


@kernel
def _take_out_ends(marginals, at, end, is_first, is_last, learns, n_states, initial, moves, row_totals):
    """Take a piece's first state, and the moves from and to its neighbours, out of the counts."""
    if not is_first:
        _take_out(marginals[at - 1], marginals[at], n_states, moves, row_totals)
    elif learns:
        for k in range(n_states):
            initial[0, k] -= marginals[at, k]
    if not is_last:
        _take_out(marginals[end - 1], marginals[end], n_states, moves, row_totals)


@kernel
def _divide(n_states, prior_first, initial, prior_totals, totals, divisors):
    """Turn counts of first states into probabilities, and totals of words into what their counts are multiplied by."""
    whole = 0.0
    for k in range(n_states):
        divisors[0, k] = 1.0 / (max(totals[0, k], 0.0) + prior_totals[0, k])
        initial[0, k] = max(initial[0, k], 0.0) + prior_first[k]
        whole += initial[0, k]
    for k in range(n_states):
        initial[0, k] /= whole


@kernel
def _enter(before, moves, row_totals, neighbour, earlier, neighbours_first, prior, by_counts, out):
    """Weights of a cluster's first state, given what is believed of the last state of the cluster before.

    `moves` are the counts without the cluster, prior included. The neighbour's own inner moves, and the move from
    `earlier` to its first state that leads into it, are left out as well.
    """
    n_states = before.shape[0]
    out[:] = 0.0
    for j in range(n_states):
        least = prior[j].sum()
        weight = before[j]
        if not by_counts:
            weight /= max(row_totals[0, j] - neighbour[j].sum() - earlier[j], least)
        for k in range(n_states):
            left = moves[j, k] - neighbour[j, k] - earlier[j] * neighbours_first[k]
            out[0, k] += weight * max(left, prior[j, k])


@kernel
def _leave(after, moves, row_totals, neighbour, neighbours_last, later, prior, out):
    """Backward message of a cluster's last state, given what is believed of the first state of the cluster after."""
    n_states = after.shape[0]
    out[:] = 0.0
    goes_on = later.sum()
    for k in range(n_states):
        message = 0.0
        for following in range(n_states):
            left = moves[k, following] - neighbour[k, following] - neighbours_last[k] * later[following]
            message += after[following] * max(left, prior[k, following])
        row = row_totals[0, k] - neighbour[k].sum() - neighbours_last[k] * goes_on
        out[0, k] = message / max(row, prior[k].sum())


@kernel
def _surround(
    piece, excludes, starts, lengths, is_first, is_last, share_of, shares, marginals, prior_rows, moves, row_totals,
    initial, by_counts, nobody, nowhere, start, stop,
):  # fmt: skip
    """What a piece is told by its neighbours: weights of its first state, backward message of its last.

    With `excludes` the neighbours' own shares are left out of the moves, which are those without the piece. `nobody`
    and `nowhere` are zeros.
    """
    n_states = prior_rows.shape[0]
    at, end = starts[piece], starts[piece] + lengths[piece]
    if is_first[piece]:
        start[:] = initial
    elif excludes:
        previous = piece - 1
        earlier = nobody if is_first[previous] else marginals[starts[previous] - 1]
        _enter(
            marginals[at - 1], moves, row_totals, shares[share_of[previous]], earlier, marginals[starts[previous]],
            prior_rows, by_counts, start,
        )  # fmt: skip
    else:
        _enter(marginals[at - 1], moves, row_totals, nowhere, nobody, nobody, prior_rows, by_counts, start)
    if is_last[piece]:
        stop[0, :n_states] = 1.0
    elif excludes:
        following = piece + 1
        ends = starts[following] + lengths[following]
        later = nobody if is_last[following] else marginals[ends]
        _leave(
            marginals[end], moves, row_totals, shares[share_of[following]], marginals[ends - 1], later, prior_rows, stop
        )
    else:
        _leave(marginals[end], moves, row_totals, nowhere, nobody, nobody, prior_rows, stop)


@kernel
def _move_ends(smooth, n, n_states, marginals, at, is_first, is_last, first_states, pairs):
    """Let new marginals of a piece's ends enter the counts of first states, or of moves from and to its neighbours."""
    end = at + n
    if is_first:
        for k in range(n_states):
            first_states[k] += smooth[0, k] - marginals[at, k]
    else:
        for j in range(n_states):
            for k in range(n_states):
                pairs[j, k] += marginals[at - 1, j] * (smooth[0, k] - marginals[at, k])
    if not is_last:
        for j in range(n_states):
            for k in range(n_states):
                pairs[j, k] += (smooth[n - 1, j] - marginals[end - 1, j]) * marginals[end, k]


@fused
def _add_expected(summed, weights, row, others, column, mask, nothing):
    """Add weights · log(others), a vector of them, unless they weigh next to nothing."""
    these = load(weights, row, column, mask)
    if all_within(these, 0.0, NEGLIGIBLE):
        return summed
    return summed + these * logarithm(largest(load(others, row, column, None), nothing))


@exact
def _expected_logs(weights, others, n_rows, n_states):
    """Sum of weights · log(others) over the first rows of two tables, the second with padding."""
    tail = n_states - n_states % WIDTH
    least = np.full((1, 1), LEAST)
    summed, nothing = zeros(), spread(least, 0, 0)
    for row in range(n_rows):
        for k in range(0, tail, WIDTH):
            summed = _add_expected(summed, weights, row, others, k, None, nothing)
        if tail < n_states:
            summed = _add_expected(summed, weights, row, others, tail, first(n_states - tail), nothing)
    return total(summed)


@kernel
def _expected_log(marginals, weights, n_states):
    """Expected log weight of one state."""
    expected = 0.0
    for k in range(n_states):
        if marginals[k] > NEGLIGIBLE:
            expected += marginals[k] * np.log(weights[0, k])
    return expected


@kernel
def visit_words(
    order, size, starts, lengths, is_first, is_last, share_of, values, prior_rows, pairs, prior_first, first_states,
    learns, concentration, counts, prior_totals, totals, marginals, shares, new_marginals, new_shares, excludes,
    puts_back, by_counts, measures, since,
):  # fmt: skip
    """Visit clusters one after the other.

    Parameters
    ----------
    order : (n,) numbers of the clusters
    size : number of all clusters; cluster i has the pieces i, i + size, i + 2 size, …
    starts, lengths, is_first, is_last, share_of : (G,) where each piece lies; the row in `shares` of its cluster
    values : (N,) codes
    prior_rows, pairs : (K, K) prior and counts of moves, the latter in place
    prior_first, first_states : (K,) prior and counts of first states, the latter in place; without `learns` the first
        is the distribution itself
    concentration, counts : (W, K), the first (1, K) if all rows are the same; the latter in place
    prior_totals, totals : (1, K) column sums, the latter in place
    marginals, shares : (N, K), (S, K, K) what the clusters have put in
    new_marginals, new_shares : where what they put in now is written, possibly the same
    excludes, puts_back : whether own shares are taken out; whether new ones are put back at once. Clusters of several
        pieces are taken out if they are put back.
    by_counts : whether rows weigh as much as they have counts where a neighbour's last state is averaged over
    measures : whether entropies are wanted
    since : (2,) log normalisers and entropies, in place
    """
    n_states, n_pieces = pairs.shape[0], starts.shape[0]
    is_alone = size == n_pieces  # every cluster is one piece
    width = padded(n_states)
    longest = 1
    for cluster in order:
        for piece in range(cluster, n_pieces, size):
            longest = max(longest, lengths[piece])
    likelihood, alpha, weighted = aligned(longest, width), aligned(longest, width), aligned(longest, width)
    smooth, scale = aligned(longest, width), np.empty((1, longest))
    moves = aligned(n_states, width)
    chances = moves if is_first.all() else aligned(n_states, width)  # neighbours need to know how often moves happened
    transposed, moved = aligned(width, width), aligned(n_states, width)
    start, stop, initial = aligned(1, width), aligned(1, width), aligned(1, width)
    divisors, row_totals, factors = aligned(1, width), aligned(1, width), aligned(1, width)
    likelihood[:], moves[:], divisors[:], start[:], stop[:], initial[:] = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    excluded, put_back = np.full((1, 1), 1.0 if excludes else 0.0), np.full((1, 1), 1.0 if puts_back else 0.0)
    once, back = np.full((1, 1), 1.0), np.full((1, 1), -1.0)
    every = np.minimum(np.arange(width), n_states - 1)
    nobody, nowhere = np.zeros(n_states), np.zeros((n_states, n_states))
    for cluster in order:
        inner, new_inner = shares[share_of[cluster]], new_shares[share_of[cluster]]
        # the surrogate
        _moves_without(pairs, inner, excluded, prior_rows, n_states, moves, row_totals)
        for k in range(n_states):
            initial[0, k] = first_states[k] if learns else 0.0
        if excludes:
            for piece in range(cluster, n_pieces, size):
                at, end = starts[piece], starts[piece] + lengths[piece]
                _add_words(values[at:end], marginals, at, n_states, back, counts, totals)
                _take_out_ends(
                    marginals, at, end, is_first[piece], is_last[piece], learns, n_states, initial, moves, row_totals
                )
        _divide(n_states, prior_first, initial, prior_totals, totals, divisors)
        _normalize(moves, row_totals, n_states, chances, factors)
        transpose(chances, n_states, every, transposed)
        # its pieces
        moved[:] = 0.0
        expected = 0.0
        for piece in range(cluster, n_pieces, size):
            at, n = starts[piece], lengths[piece]
            end = at + n
            symbols = values[at:end]
            _surround(
                piece, excludes and is_alone, starts, lengths, is_first, is_last, share_of, shares, marginals,
                prior_rows, moves, row_totals, initial, by_counts, nobody, nowhere, start, stop,
            )  # fmt: skip
            _weigh_words(symbols, counts, concentration, divisors, n_states, likelihood)
            if is_alone and excludes != puts_back:  # what was taken out is put back, or the other way round
                _add_words(symbols, marginals, at, n_states, once if excludes else back, counts, totals)
            log_total = forward_backward(
                chances, transposed, start, stop, likelihood, n, n_states, alpha, weighted, smooth, scale
            )
            add_pair_sums(alpha, weighted, n, n_states, moved)
            if puts_back:
                _move_ends(smooth, n, n_states, marginals, at, is_first[piece], is_last[piece], first_states, pairs)
            for position in range(n):
                for k in range(n_states):
                    new_marginals[at + position, k] = smooth[position, k]
            since[0] += log_total
            if measures:
                since[1] += log_total
                expected += _expected_log(smooth[0], start, n_states) + _expected_log(smooth[n - 1], stop, n_states)
                expected += _expected_logs(smooth, likelihood, n, n_states)
        # what it puts back
        if share_of[cluster] > 0:
            _replace_moves(moved, chances, inner, new_inner, n_states, pairs, put_back)
            if measures:
                expected += _expected_logs(new_inner, chances, n_states, n_states)
        if puts_back:
            for piece in range(cluster, n_pieces, size):
                at, end = starts[piece], starts[piece] + lengths[piece]
                _add_words(values[at:end], new_marginals, at, n_states, once, counts, totals)
        since[1] -= expected


class WordVisitor:
    """Visits sequences or subchains of words; see `has_plain_words`."""

    at_once = AT_ONCE

    def __init__(self, algorithm: CVI, ledger: Ledger) -> None:
        self.algorithm = algorithm
        self.ledger = ledger

    @property
    def prior_first(self) -> Array:
        """Concentrations of first states, (K,), or their distribution where that is given."""
        chain = self.ledger.chain
        first: Array = chain.first[0] if chain.learns_first else chain.surrogate("predictive").initial
        return first

    def visit(self, clusters: NDArray[np.int64], *, excludes: bool, puts_back: bool) -> None:
        ledger, layout, shares = self.ledger, self.ledger.clusters, self.ledger.shares
        chain, table = ledger.chain, ledger.emission
        visit_words(
            clusters, layout.size, layout.starts, layout.lengths, layout.is_first, layout.is_last, layout.share_of,
            ledger.data.values, chain.rows[0], chain.pairs, self.prior_first, chain.initial, chain.learns_first,
            table.concentration, table.counts, table.prior_totals[None], table.totals[None], shares.rows, shares.pairs,
            shares.new.rows, shares.new.pairs, excludes, puts_back, self.algorithm.by_counts, ledger.measures,
            ledger.since,
        )  # fmt: skip
