"""Visits of clusters of words whose positions have few legal states: only these are looked at.

The same as `cvi_words`, along lists of legal states. A cluster's own share is taken out of the counts in place, entry
by entry; the moves it needs are made from the counts one by one.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subchain.inference.ledger import Ledger
from subchain.inference.listed_counts import add_border, add_moves, add_words
from subchain.propagation.compiled import kernel, part

if TYPE_CHECKING:
    from subchain.inference.cvi import CVI

#: Clusters after which somebody may interrupt.
AT_ONCE = 5_000
#: Beliefs below this add nothing to an entropy.
NEGLIGIBLE = 1e-13


@kernel
def _add_cluster(
    sign, first, last, goes_before, goes_after, values, offsets, states, blocks, beliefs, moves, pairs, rows, firsts,
    counts, totals,
):  # fmt: skip
    """Add all that a cluster has put in, or take it out."""
    add_words(sign, first, last, values, offsets, states, beliefs, counts, totals)
    add_moves(sign, first, last, offsets, states, blocks, moves, pairs, rows)
    if goes_before:
        add_border(sign, first, offsets, states, beliefs, pairs, rows)
    else:
        for a in range(offsets[first], offsets[first + 1]):
            firsts[states[a]] += sign * beliefs[a]
    if goes_after:
        add_border(sign, last, offsets, states, beliefs, pairs, rows)


@part
def _chance(j, k, pairs, prior_rows):
    """Count of a move, prior included."""
    return max(pairs[j, k], 0.0) + prior_rows[j, k]


@kernel
def visit_legal_words(
    order, size, starts, lengths, is_first, is_last, values, prior_rows, pairs, rows, prior_first, firsts, learns,
    concentration, counts, prior_totals, totals, offsets, states, factors, blocks, beliefs, moves, new_beliefs,
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
    same = concentration.shape[0] == 1
    most, most_moves = 1, 1
    for cluster in order:
        for piece in range(cluster, n_pieces, size):
            last = starts[piece] + lengths[piece]
            most = max(most, offsets[last] - offsets[starts[piece]])
            most_moves = max(most_moves, blocks[last] - blocks[starts[piece]])
    likelihood, alpha, beta = np.empty(most), np.empty(most), np.empty(most)
    weights = np.empty(most_moves)
    start, stop, prior_sums = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    for j in range(n_states):
        prior_sums[j] = prior_rows[j].sum()
    for cluster in order:
        if excludes:
            for piece in range(cluster, n_pieces, size):
                _add_cluster(
                    -1.0, starts[piece], starts[piece] + lengths[piece], not is_first[piece], not is_last[piece],
                    values, offsets, states, blocks, beliefs, moves, pairs, rows, firsts, counts, totals,
                )  # fmt: skip
        for piece in range(cluster, n_pieces, size):
            first = starts[piece]
            last = first + lengths[piece]
            goes_before, goes_after = not is_first[piece], not is_last[piece]
            low, block = offsets[first], blocks[first]
            without = excludes and is_alone  # whether neighbours' shares are left out too
            # the surrogate
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
            for position in range(first + 1, last):
                at = blocks[position] - block
                for a in range(offsets[position - 1], offsets[position]):
                    j = states[a]
                    factor = 1.0 / (max(rows[j], 0.0) + prior_sums[j])
                    for b in range(offsets[position], offsets[position + 1]):
                        weights[at] = _chance(j, states[b], pairs, prior_rows) * factor
                        at += 1
            # what lies around the cluster
            if goes_before:
                before = starts[piece - 1]
                if without:
                    add_moves(-1.0, before, first, offsets, states, blocks, moves, pairs, rows)
                    if not is_first[piece - 1]:
                        add_border(-1.0, before, offsets, states, beliefs, pairs, rows)
                for b in range(offsets[first], offsets[first + 1]):
                    start[states[b]] = 0.0
                for a in range(offsets[first - 1], offsets[first]):
                    j = states[a]
                    factor = beliefs[a] if by_counts else beliefs[a] / (max(rows[j], 0.0) + prior_sums[j])
                    for b in range(offsets[first], offsets[first + 1]):
                        start[states[b]] += factor * _chance(j, states[b], pairs, prior_rows)
                if without:
                    add_moves(1.0, before, first, offsets, states, blocks, moves, pairs, rows)
                    if not is_first[piece - 1]:
                        add_border(1.0, before, offsets, states, beliefs, pairs, rows)
            else:
                whole = 0.0
                for k in range(n_states):
                    start[k] = prior_first[k] + (max(firsts[k], 0.0) if learns else 0.0)
                    whole += start[k]
                for k in range(n_states):
                    start[k] /= whole
            if goes_after:
                after = last + lengths[piece + 1]
                if without:
                    add_moves(-1.0, last, after, offsets, states, blocks, moves, pairs, rows)
                    if not is_last[piece + 1]:
                        add_border(-1.0, after, offsets, states, beliefs, pairs, rows)
                for a in range(offsets[last - 1], offsets[last]):
                    k, message = states[a], 0.0
                    for b in range(offsets[last], offsets[last + 1]):
                        message += beliefs[b] * _chance(k, states[b], pairs, prior_rows)
                    stop[k] = message / (max(rows[k], 0.0) + prior_sums[k])
                if without:
                    add_moves(1.0, last, after, offsets, states, blocks, moves, pairs, rows)
                    if not is_last[piece + 1]:
                        add_border(1.0, after, offsets, states, beliefs, pairs, rows)
            else:
                for a in range(offsets[last - 1], offsets[last]):
                    stop[states[a]] = 1.0
            if is_alone and excludes != puts_back:  # what was taken out is put back, or the other way round
                _add_cluster(
                    1.0 if excludes else -1.0, first, last, goes_before, goes_after, values, offsets, states, blocks,
                    beliefs, moves, pairs, rows, firsts, counts, totals,
                )  # fmt: skip
            # forward
            log_total = 0.0
            for position in range(first, last):
                norm = 0.0
                for b in range(offsets[position], offsets[position + 1]):
                    if position == first:
                        predicted = start[states[b]]
                    else:
                        predicted, width = 0.0, offsets[position + 1] - offsets[position]
                        at = blocks[position] - block + b - offsets[position]
                        for a in range(offsets[position - 1], offsets[position]):
                            predicted += alpha[a - low] * weights[at]
                            at += width
                    alpha[b - low] = predicted * likelihood[b - low]
                    norm += alpha[b - low]
                log_total += np.log(norm)
                for b in range(offsets[position], offsets[position + 1]):
                    alpha[b - low] /= norm
                    likelihood[b - low] /= norm
            # backward; `beta` is the backward message, then that times the likelihood
            meeting = 0.0
            for a in range(offsets[last - 1], offsets[last]):
                meeting += alpha[a - low] * stop[states[a]]
            log_total += np.log(meeting)
            for a in range(offsets[last - 1], offsets[last]):
                beta[a - low] = stop[states[a]] / meeting
            expected = 0.0
            for position in range(last - 1, first - 1, -1):
                for b in range(offsets[position], offsets[position + 1]):
                    belief = alpha[b - low] * beta[b - low]
                    beta[b - low] *= likelihood[b - low]
                    new_beliefs[b] = belief
                    if belief > NEGLIGIBLE:
                        expected += belief * np.log(likelihood[b - low])
                        if position == first:
                            expected += belief * np.log(start[states[b]])
                        if position == last - 1:
                            expected += belief * np.log(stop[states[b]])
                if position > first:
                    at = blocks[position]
                    for a in range(offsets[position - 1], offsets[position]):
                        message = 0.0
                        for b in range(offsets[position], offsets[position + 1]):
                            onward = weights[at - block] * beta[b - low]
                            message += onward
                            move = alpha[a - low] * onward
                            new_moves[at] = move
                            if move > NEGLIGIBLE:
                                expected += move * np.log(weights[at - block])
                            at += 1
                        beta[a - low] = message
            # the likelihoods were divided by their normalisers, whose logarithms make up the log normaliser
            since[0] += log_total
            since[1] += np.log(meeting) - expected
        if puts_back:
            for piece in range(cluster, n_pieces, size):
                _add_cluster(
                    1.0, starts[piece], starts[piece] + lengths[piece], not is_first[piece], not is_last[piece], values,
                    offsets, states, blocks, new_beliefs, new_moves, pairs, rows, firsts, counts, totals,
                )  # fmt: skip


class LegalVisitor:
    """Visits sequences or subchains of words along their legal states; see `has_plain_words`."""

    at_once = AT_ONCE

    def __init__(self, algorithm: CVI, ledger: Ledger) -> None:
        self.algorithm = algorithm
        self.ledger = ledger

    def visit(self, clusters: NDArray[np.int64], *, excludes: bool, puts_back: bool) -> None:
        ledger, layout, shares = self.ledger, self.ledger.clusters, self.ledger.shares
        chain, table = ledger.chain, ledger.emission
        first_states = chain.first[0] if chain.learns_first else chain.surrogate("predictive").initial
        visit_legal_words(
            clusters, layout.size, layout.starts, layout.lengths, layout.is_first, layout.is_last, ledger.data.values,
            chain.rows[0], chain.pairs, chain.pairs.sum(axis=1), first_states, chain.initial, chain.learns_first,
            table.concentration, table.counts, table.prior_totals, table.totals, shares.offsets, shares.states,
            shares.factors,
            shares.blocks, shares.beliefs, shares.moves, shares.new.beliefs, shares.new.moves, excludes, puts_back,
            self.algorithm.by_counts, ledger.since,
        )  # fmt: skip
