"""Visits of clusters of words whose positions have few legal states: only these are looked at.

The same as `cvi_words`, along lists of legal states. A cluster's own share is taken out of the counts in place, entry
by entry; the moves it needs are made from the counts one by one.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.inference.collapsed.cvi_words import WordVisitor
from subchain.inference.collapsed.listed_counts import add_border, add_moves, add_words
from subchain.propagation.compiled import kernel, part

#: Clusters between two checks for an interruption.
AT_ONCE = 5_000
#: Marginals below this add nothing to an entropy.
NEGLIGIBLE = 1e-13


@kernel
def _add_cluster(
    sign, first, last, goes_before, goes_after, values, offsets, states, blocks, marginals, moves, pairs, rows, firsts,
    counts, totals,
):  # fmt: skip
    """Add all that a cluster has put in, or take it out."""
    add_words(sign, first, last, values, offsets, states, marginals, counts, totals)
    add_moves(sign, first, last, offsets, states, blocks, moves, pairs, rows)
    if goes_before:
        add_border(sign, first, offsets, states, marginals, pairs, rows)
    else:
        for a in range(offsets[first], offsets[first + 1]):
            firsts[states[a]] += sign * marginals[a]
    if goes_after:
        add_border(sign, last, offsets, states, marginals, pairs, rows)


@part
def _chance(j, k, pairs, prior_rows):
    """Count of a move, prior included."""
    return max(pairs[j, k], 0.0) + prior_rows[j, k]


@kernel
def _weigh_words(
    first, last, values, concentration, counts, prior_totals, totals, offsets, states, factors, likelihood
):  # fmt: skip
    """Predictive weights of words in their legal states, from the first entry of the first position on."""
    same, low = concentration.shape[0] == 1, offsets[first]
    for position in range(first, last):
        symbol = values[position]
        for a in range(offsets[position], offsets[position + 1]):
            k, weight = states[a], 1.0
            if symbol >= 0:
                prior = concentration[0 if same else symbol, k]
                weight = (max(counts[symbol, k], 0.0) + prior) / (max(totals[k], 0.0) + prior_totals[k])
            if factors.shape[0]:
                weight *= factors[a]
            likelihood[a - low] = weight


@kernel
def _weigh_moves(first, last, prior_rows, prior_sums, pairs, rows, offsets, states, weights):
    """Predictive weights of the moves between legal states, position by position."""
    at = 0
    for position in range(first + 1, last):
        for a in range(offsets[position - 1], offsets[position]):
            j = states[a]
            factor = 1.0 / (max(rows[j], 0.0) + prior_sums[j])
            for b in range(offsets[position], offsets[position + 1]):
                weights[at] = _chance(j, states[b], pairs, prior_rows) * factor
                at += 1


@kernel
def _enter(first, prior_rows, prior_sums, pairs, rows, offsets, states, marginals, by_counts, start):
    """Weights of a piece's first state, given what is believed of the position before."""
    for b in range(offsets[first], offsets[first + 1]):
        start[states[b]] = 0.0
    for a in range(offsets[first - 1], offsets[first]):
        j = states[a]
        factor = marginals[a] if by_counts else marginals[a] / (max(rows[j], 0.0) + prior_sums[j])
        for b in range(offsets[first], offsets[first + 1]):
            start[states[b]] += factor * _chance(j, states[b], pairs, prior_rows)


@kernel
def _begin(prior_first, firsts, learns, start):
    """Weights of a sequence's first state."""
    whole = 0.0
    for k in range(start.shape[0]):
        start[k] = prior_first[k] + (max(firsts[k], 0.0) if learns else 0.0)
        whole += start[k]
    for k in range(start.shape[0]):
        start[k] /= whole


@kernel
def _leave(last, prior_rows, prior_sums, pairs, rows, offsets, states, marginals, stop):
    """Backward message of a piece's last state, given what is believed of the position after it."""
    for a in range(offsets[last - 1], offsets[last]):
        k, message = states[a], 0.0
        for b in range(offsets[last], offsets[last + 1]):
            message += marginals[b] * _chance(k, states[b], pairs, prior_rows)
        stop[k] = message / (max(rows[k], 0.0) + prior_sums[k])


@kernel
def _add_neighbour(sign, first, last, border, offsets, states, blocks, moves, marginals, pairs, rows):
    """Add the moves of a neighbour from `first` to `last`, and that over its border unless it is −1."""
    add_moves(sign, first, last, offsets, states, blocks, moves, pairs, rows)
    if border >= 0:
        add_border(sign, border, offsets, states, marginals, pairs, rows)


@kernel
def _forward(first, last, start, offsets, states, weights, likelihood, alpha):
    """Filtered marginals; divides the likelihoods by the normalisers and returns the sum of their logarithms."""
    log_total, low, at = 0.0, offsets[first], 0
    for position in range(first, last):
        before = offsets[position - 1] if position > first else low
        now, after = offsets[position], offsets[position + 1]
        norm = 0.0
        for b in range(now, after):
            if position == first:
                predicted = start[states[b]]
            else:
                predicted = 0.0
                for a in range(before, now):
                    predicted += alpha[a - low] * weights[at + (a - before) * (after - now) + b - now]
            alpha[b - low] = predicted * likelihood[b - low]
            norm += alpha[b - low]
        if position > first:
            at += (now - before) * (after - now)
        log_total += np.log(norm)
        for b in range(now, after):
            alpha[b - low] /= norm
            likelihood[b - low] /= norm
    return log_total


@kernel
def _backward(first, last, start, stop, offsets, states, blocks, weights, likelihood, alpha, beta, marginals, moves):
    """Write new marginals and moves; return the log of where both messages meet, and the expected log weight.

    `beta` is the backward message of a position, and then that times its likelihood.
    """
    low, block = offsets[first], blocks[first]
    meeting, expected = 0.0, 0.0
    for a in range(offsets[last - 1], offsets[last]):
        meeting += alpha[a - low] * stop[states[a]]
    for a in range(offsets[last - 1], offsets[last]):
        beta[a - low] = stop[states[a]] / meeting
    for position in range(last - 1, first - 1, -1):
        for b in range(offsets[position], offsets[position + 1]):
            marginal = alpha[b - low] * beta[b - low]
            beta[b - low] *= likelihood[b - low]
            marginals[b] = marginal
            if marginal > NEGLIGIBLE:
                expected += marginal * np.log(likelihood[b - low])
                if position == first:
                    expected += marginal * np.log(start[states[b]])
                if position == last - 1:
                    expected += marginal * np.log(stop[states[b]])
        if position == first:
            break
        at = blocks[position]
        for a in range(offsets[position - 1], offsets[position]):
            message = 0.0
            for b in range(offsets[position], offsets[position + 1]):
                onward = weights[at - block] * beta[b - low]
                message += onward
                moves[at] = alpha[a - low] * onward
                if moves[at] > NEGLIGIBLE:
                    expected += moves[at] * np.log(weights[at - block])
                at += 1
            beta[a - low] = message
    return np.log(meeting), expected


@kernel
def visit_legal_words(
    order, size, starts, lengths, is_first, is_last, values, prior_rows, pairs, rows, prior_first, firsts, learns,
    concentration, counts, prior_totals, totals, offsets, states, factors, blocks, marginals, moves, new_marginals,
    new_moves, excludes, puts_back, by_counts, since,
):  # fmt: skip
    """Visit clusters one after the other; see `cvi_words.visit_words`.

    Parameters
    ----------
    rows : (K,) sums of the rows of `pairs`, in place
    offsets, states, factors : legal states and what evidence multiplies them by, as in `Shares`; the last may be empty
    blocks, moves : (N + 1,), (entries,) where the expected moves into each position begin, and what they are
    """
    n_states, n_pieces = pairs.shape[0], starts.shape[0]
    is_alone = size == n_pieces  # every cluster is one piece
    stops = starts + lengths
    most, most_moves = 1, 1
    for piece in range(n_pieces):
        most = max(most, offsets[stops[piece]] - offsets[starts[piece]])
        most_moves = max(most_moves, blocks[stops[piece]] - blocks[starts[piece]])
    likelihood, alpha, beta, weights = np.empty(most), np.empty(most), np.empty(most), np.empty(most_moves)
    start, stop, prior_sums = np.empty(n_states), np.empty(n_states), prior_rows.sum(axis=1)
    for cluster in order:
        if excludes:
            for piece in range(cluster, n_pieces, size):
                _add_cluster(
                    -1.0, starts[piece], stops[piece], not is_first[piece], not is_last[piece], values, offsets, states,
                    blocks, marginals, moves, pairs, rows, firsts, counts, totals,
                )  # fmt: skip
        for piece in range(cluster, n_pieces, size):
            first, last = starts[piece], stops[piece]
            without = excludes and is_alone  # whether neighbours' shares are left out too
            _weigh_words(
                first, last, values, concentration, counts, prior_totals, totals, offsets, states, factors, likelihood
            )
            _weigh_moves(first, last, prior_rows, prior_sums, pairs, rows, offsets, states, weights)
            if is_first[piece]:
                _begin(prior_first, firsts, learns, start)
            else:
                before = starts[piece - 1]
                border = -1 if is_first[piece - 1] else before
                if without:
                    _add_neighbour(-1.0, before, first, border, offsets, states, blocks, moves, marginals, pairs, rows)
                _enter(first, prior_rows, prior_sums, pairs, rows, offsets, states, marginals, by_counts, start)
                if without:
                    _add_neighbour(1.0, before, first, border, offsets, states, blocks, moves, marginals, pairs, rows)
            if is_last[piece]:
                stop[:] = 1.0
            else:
                after = stops[piece + 1]
                border = -1 if is_last[piece + 1] else after
                if without:
                    _add_neighbour(-1.0, last, after, border, offsets, states, blocks, moves, marginals, pairs, rows)
                _leave(last, prior_rows, prior_sums, pairs, rows, offsets, states, marginals, stop)
                if without:
                    _add_neighbour(1.0, last, after, border, offsets, states, blocks, moves, marginals, pairs, rows)
            if is_alone and excludes != puts_back:  # what was taken out is put back, or the other way round
                _add_cluster(
                    1.0 if excludes else -1.0, first, last, not is_first[piece], not is_last[piece], values, offsets,
                    states, blocks, marginals, moves, pairs, rows, firsts, counts, totals,
                )  # fmt: skip
            log_scale = _forward(first, last, start, offsets, states, weights, likelihood, alpha)
            log_meeting, expected = _backward(
                first, last, start, stop, offsets, states, blocks, weights, likelihood, alpha, beta, new_marginals,
                new_moves,
            )  # fmt: skip
            since[0] += log_scale + log_meeting
            since[1] += log_meeting - expected  # the likelihoods were divided by what makes up `log_scale`
        if puts_back:
            for piece in range(cluster, n_pieces, size):
                _add_cluster(
                    1.0, starts[piece], stops[piece], not is_first[piece], not is_last[piece], values, offsets, states,
                    blocks, new_marginals, new_moves, pairs, rows, firsts, counts, totals,
                )  # fmt: skip


class LegalVisitor(WordVisitor):
    """Visits sequences or subchains of words along their legal states."""

    at_once = AT_ONCE

    def visit(self, clusters: NDArray[np.int64], *, excludes: bool, puts_back: bool) -> None:
        ledger, layout, shares = self.ledger, self.ledger.clusters, self.ledger.shares
        chain, table = ledger.chain, ledger.emission
        visit_legal_words(
            clusters, layout.size, layout.starts, layout.lengths, layout.is_first, layout.is_last, ledger.data.values,
            chain.rows[0], chain.pairs, chain.pairs.sum(axis=1), self.prior_first, chain.initial, chain.learns_first,
            table.concentration, table.counts, table.prior_totals, table.totals, shares.offsets, shares.states,
            shares.factors, shares.blocks, shares.marginals, shares.moves, shares.new.marginals, shares.new.moves,
            excludes, puts_back, self.algorithm.by_counts, ledger.since,
        )  # fmt: skip
