"""Passes over many sentences, on threads that claim them, and collapsed visits of one after the other.

The share of a sentence of n words in the counts is what is expected of its tree: n × n posteriors of arcs, that of
being the root on the diagonal, and for each word and side the posterior of having no dependent there.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.claiming import claim
from subchain.propagation.compiled import kernel
from subchain.propagation.trees.charts import GO_ON, LEFT, STOP, arcs_of, make_room, predict, weigh
from subchain.propagation.trees.expanding import expand_tree, mark_tree
from subchain.propagation.trees.inside_outside import entropy_of, expect_tree, fill_charts
from subchain.propagation.trees.log_space import fill_logs

#: Sentences that a thread claims at a time.
CLAIMED = 16
#: What a pass does: expectations, the best tree of each sentence (rules are logarithms), a draw, the log likelihood.
EXPECT, BEST, DRAW, SCORE = 0, 1, 2, 3


class Tags(NamedTuple):
    """Sentences of tags: codes, and where each sentence begins, (S + 1,)."""

    codes: NDArray[np.int32]
    starts: NDArray[np.int64]


class Shares(NamedTuple):
    """Shares of sentences one after the other: (Σ n²,) posteriors of arcs, and (Σ n, 2) of having no dependent."""

    arcs: NDArray[np.float64]
    childless: NDArray[np.float64]


@kernel
def share_of(shares, place, row, n):
    """Return the share of one sentence as tables, (n, n) and (n, 2)."""
    return shares.arcs[place : place + n * n].reshape(n, n), shares.childless[row : row + n]


@kernel
def run_sentence(task, room, n, uniforms, heads, arcs, childless):
    """Do one task for a sentence whose weights are in the room; return its log likelihood."""
    if task == EXPECT:
        return expect_tree(room, n, arcs, childless)[0]
    if task == SCORE:
        return fill_charts(room, n)[0]
    if task == BEST:
        found, is_log = fill_logs(room, n, True), True
    else:
        found, _, is_log = fill_charts(room, n)
    if found == -np.inf:
        heads[:] = -2
        arcs[:] = 0.0
        childless[:] = 0.0
        return found
    expand_tree(room, n, is_log, uniforms, heads)
    mark_tree(heads, arcs, childless)
    return found


@kernel
def run_trees(task, tags, sentences, places, rows, rules, shares, uniforms, heads, logs, longest, counter):
    """Do one task for sentences; several threads may run this at once.

    Parameters
    ----------
    sentences : (n,) their numbers
    places, rows : (n,) first entries of each in the two arrays of `shares`, which `SCORE` does not use
    rules : weights; their logarithms for `BEST`
    uniforms : (2 N,) random numbers for the N tokens of these sentences for `DRAW`, −1 for `BEST`, else empty
    heads : (N,) heads of trees, counted within the sentence, −1 for the root and −2 where there is no tree; empty
        where the task finds none
    logs : (n,) log likelihoods, or log weights of the best trees
    counter : (1,) from which threads claim sentences
    """
    room = make_room(longest)
    n_claims = (sentences.shape[0] + CLAIMED - 1) // CLAIMED
    nothing = np.zeros((0, 0)), np.zeros((0, 2))
    while True:
        block = claim(counter)
        if block >= n_claims:
            return
        for k in range(block * CLAIMED, min((block + 1) * CLAIMED, sentences.shape[0])):
            first, last = tags.starts[sentences[k]], tags.starts[sentences[k] + 1]
            n = last - first
            logs[k] = 0.0
            if n == 0:
                continue
            weigh(tags.codes[first:last], rules, room)
            row = rows[k]
            arcs, childless = nothing if task == SCORE else share_of(shares, places[k], row, n)
            logs[k] = run_sentence(
                task, room, n, uniforms[2 * row : 2 * (row + n)], heads[row : row + n], arcs, childless
            )  # fmt: skip


@kernel
def safest_trees(tags, sentences, places, rows, shares, heads, longest):
    """Write the trees of sentences whose arcs have the largest sum of posteriors, minimum Bayes risk."""
    room = make_room(longest)
    uniforms = np.full(2 * longest, -1.0)
    for k in range(sentences.shape[0]):
        first, last = tags.starts[sentences[k]], tags.starts[sentences[k] + 1]
        n = last - first
        if n == 0:
            continue
        arcs, _ = share_of(shares, places[k], rows[k], n)
        arcs_of(room, n)[:] = arcs
        room.decisions[: 8 * n] = 0.0
        for r in range(n):
            room.root[r] = arcs[r, r]
        fill_logs(room, n, True)
        expand_tree(room, n, True, uniforms, heads[rows[k] : rows[k] + n])


@kernel
def add_share(tags, arcs, childless, sign, counts, totals):
    """Add `sign` times the share of one sentence to counts, and to the totals (2 T,) of `attach`."""
    n = tags.shape[0]
    for h in range(n):
        tag = np.int64(tags[h])
        counts.root[0, tag] += sign * arcs[h, h]
        for side in range(2):
            row = counts.attach[2 * tag + side]
            expected = 0.0
            for d in range(0 if side == LEFT else h + 1, h if side == LEFT else n):
                row[tags[d]] += sign * arcs[h, d]
                expected += arcs[h, d]
            totals[2 * tag + side] += sign * expected
            none = min(childless[h, side], 1.0)
            at = 4 * tag + 2 * side
            counts.stop[at, STOP] += sign * none
            counts.stop[at, GO_ON] += sign * (1.0 - none)
            counts.stop[at + 1, STOP] += sign * (1.0 - none)
            counts.stop[at + 1, GO_ON] += sign * max(expected - (1.0 - none), 0.0)


@kernel
def add_shares(tags, sentences, places, rows, shares, counts, totals):
    """Add the shares of sentences to counts, one after the other."""
    for k in range(sentences.shape[0]):
        first, last = tags.starts[sentences[k]], tags.starts[sentences[k] + 1]
        arcs, childless = share_of(shares, places[k], rows[k], last - first)
        add_share(tags.codes[first:last], arcs, childless, 1.0, counts, totals)


@kernel
def visit_trees(tags, sentences, places, counts, totals, floors, shares, excludes, puts_back, measures, longest):
    """Update sentences one after the other under the counts, without their own shares if `excludes`.

    Counts hold those of the prior; its smallest are `floors`, see `predict`. New shares take the place of the old ones
    in the counts if `puts_back`. `places` are those of all sentences. Return the sums of log normalisers and, if it
    `measures`, of the entropies of trees.
    """
    room, found, entropy = make_room(longest), 0.0, 0.0
    for sentence in sentences:
        first, last = tags.starts[sentence], tags.starts[sentence + 1]
        n, codes = last - first, tags.codes[first:last]
        if n == 0:
            continue
        arcs, childless = share_of(shares, places[sentence], first, n)
        if excludes:
            add_share(codes, arcs, childless, -1.0, counts, totals)
        predict(codes, counts, totals, floors, room)
        if excludes != puts_back:
            add_share(codes, arcs, childless, 1.0 if excludes else -1.0, counts, totals)
        log_normalizer, is_log = expect_tree(room, n, arcs, childless)
        found += log_normalizer
        if measures:
            entropy += entropy_of(room, n, log_normalizer, is_log, arcs, childless)
        if puts_back:
            add_share(codes, arcs, childless, 1.0, counts, totals)
    return found, entropy
