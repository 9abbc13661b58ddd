"""The coarse pass: inside-outside over the treebank grammar without annotations, and the symbols that it leaves.

Weights of spans are kept twice, by their first and by their last word, so that sums over split points run along rows.
Every word has a factor that keeps products near one; if the total leaves the range of doubles, the pass is repeated
with other factors. A span has two weights for each symbol: *bare*, by a binary rule or a word, and *closed*, which adds
one unary rule; children of binary rules are closed.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.compiled import bare_kernel, kernel, part

Array = NDArray[np.float64]

#: Flags of what is kept of a symbol over a span.
BARE, CLOSED = 1, 2
#: Total weights beyond these are computed again with other factors of words, so many times.
MOST, LEAST, TRIALS = 1e200, 1e-200, 12
#: Change of the logarithm of the total from one trial to the next; so few words do not underflow.
STEP, FEW = 400.0, 8
#: Factor of a word beside the inverse of its largest weight, to begin with.
FACTOR = 5.0
#: Posteriors below this share of the threshold are not passed on to smaller spans.
NEGLIGIBLE = 1e-4


class CoarseRoom(NamedTuple):
    """Room of one thread for the longest sentence, flat arrays that kernels cut into tables (S, n + 1, n + 1).

    Attributes
    ----------
    by_first : closed weights by symbol, first word and end
    by_last : the same by symbol, end and first word
    d_first, d_last : their derivatives, as left and as right children
    bare : bare weights by symbol, first word and end
    ranges : (4, S, n + 1) least and largest end of spans from each word; least and largest first word of spans to it
    factors : (n,) of words
    kept : flags by symbol, first word and end
    """

    by_first: Array
    by_last: Array
    d_first: Array
    d_last: Array
    bare: Array
    ranges: NDArray[np.int32]
    factors: Array
    kept: NDArray[np.int8]


@kernel
def make_coarse_room(n_symbols, longest):
    """Return room for sentences of at most so many words."""
    n = n_symbols * (longest + 1) * (longest + 1)
    return CoarseRoom(
        np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n),
        np.empty(4 * n_symbols * (longest + 1), dtype=np.int32), np.empty(longest), np.empty(n, dtype=np.int8),
    )  # fmt: skip


@kernel
def coarse_tables(room, n_symbols, n):
    """Return the room of one sentence as tables."""
    m = n + 1
    size, shape = n_symbols * m * m, (n_symbols, m, m)
    return CoarseRoom(
        room.by_first[:size].reshape(shape), room.by_last[:size].reshape(shape), room.d_first[:size].reshape(shape),
        room.d_last[:size].reshape(shape), room.bare[:size].reshape(shape),
        room.ranges[: 4 * n_symbols * m].reshape((4, n_symbols, m)), room.factors[:n],
        room.kept[:size].reshape(shape),
    )  # fmt: skip


@part
def range_of_splits(tables, left, right, i, j):
    """Return the first and last split point at which both children may be."""
    ranges = tables.ranges
    first = max(max(ranges[0, left, i], ranges[2, right, j]), i + 1)
    return first, min(min(ranges[1, left, i], ranges[3, right, j]), j - 1)


@part
def note_span(tables, symbol, i, j):
    """Widen the ranges of split points by a span."""
    ranges = tables.ranges
    ranges[0, symbol, i] = min(ranges[0, symbol, i], j)
    ranges[1, symbol, i] = max(ranges[1, symbol, i], j)
    ranges[2, symbol, j] = min(ranges[2, symbol, j], i)
    ranges[3, symbol, j] = max(ranges[3, symbol, j], i)


@kernel
def clear_ranges(tables, n):
    """Begin without any spans."""
    tables.ranges[0], tables.ranges[1], tables.ranges[2], tables.ranges[3] = n + 1, -1, n + 1, -1


@kernel
def close_span(grammar, weights, here, tables, i, j):
    """Apply unary rules to the bare weights `here`, (S,), and write both."""
    n_symbols = here.shape[0]
    closed = here.copy()
    for rule in grammar.unary:
        closed[grammar.rules[rule, 0]] += weights[rule] * here[grammar.rules[rule, 1]]
    for a in range(n_symbols):
        if closed[a] > 0.0:
            tables.bare[a, i, j] = here[a]
            tables.by_first[a, i, j] = closed[a]
            tables.by_last[a, j, i] = closed[a]
            note_span(tables, a, i, j)


@kernel
def coarse_words(grammar, weights, words, factors, scale, tables):
    """Write the weights of words, scaled so that the largest is `scale`; return whether every word has any."""
    here = np.empty(tables.bare.shape[0])
    for i in range(words.shape[0]):
        here[:] = 0.0
        for c in range(2):
            if factors[i, c] > 0.0:
                for at in range(grammar.of_word[words[i, c]], grammar.of_word[words[i, c] + 1]):
                    rule = grammar.word_rules[at]
                    here[grammar.rules[rule, 0]] += factors[i, c] * weights[rule]
        largest = here.max()
        if not largest > 0.0:
            return False
        tables.factors[i] = scale / largest
        for a in range(here.shape[0]):
            here[a] *= tables.factors[i]
        close_span(grammar, weights, here, tables, i, i + 1)
    return True


@bare_kernel
def combine_span(grammar, weights, i, j, tables, here):
    """Write the weights of binary rules over one span, (S,); return whether there are any."""
    here[:] = 0.0
    found = False
    for b in range(here.shape[0]):
        if tables.ranges[0, b, i] >= j:
            continue
        row = tables.by_first[b, i]
        for p in range(grammar.first_pair[b], grammar.first_pair[b + 1]):
            c = grammar.pairs[p, 1]
            column, total = tables.by_last[c, j], 0.0
            first, last = range_of_splits(tables, b, c, i, j)
            for k in range(first, last + 1):
                total += row[k] * column[k]
            if total > 0.0:
                found = True
                for at in range(grammar.of_pair[p], grammar.of_pair[p + 1]):
                    rule = grammar.pair_rules[at]
                    here[grammar.rules[rule, 0]] += weights[rule] * total
    return found


@kernel
def coarse_inside(grammar, weights, n, tables):
    """Fill all longer spans; return the total weight."""
    here = np.empty(tables.bare.shape[0])
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            if combine_span(grammar, weights, i, i + length, tables, here):
                close_span(grammar, weights, here, tables, i, i + length)
    found = 0.0
    for rule in grammar.tops:
        found += weights[rule] * tables.by_first[grammar.rules[rule, 1], 0, n]
    return found


@kernel
def fill_coarse(grammar, weights, words, factors, tables):
    """Do the inside pass with factors of words under which the total is in range; return it, 0 if there is no tree."""
    n, scale, total = words.shape[0], FACTOR, 0.0
    for _ in range(TRIALS):
        tables.by_first[:], tables.by_last[:], tables.bare[:] = 0.0, 0.0, 0.0
        clear_ranges(tables, n)
        if not coarse_words(grammar, weights, words, factors, scale, tables):
            return 0.0
        total = coarse_inside(grammar, weights, n, tables)
        if LEAST < total < MOST:
            return total
        if total == 0.0 and n < FEW:
            return 0.0
        scale *= np.exp((STEP if total <= LEAST else -STEP) / n)
    return 0.0


@bare_kernel
def mark_span(grammar, weights, i, j, least, tables, closed, bare):
    """Mark what is kept over one span, and write the derivatives, (S,), closed and bare; return the best posterior.

    Derivatives of bare weights are zero where the posterior is negligible.
    """
    best = 0.0
    for a in range(closed.shape[0]):
        closed[a] = tables.d_first[a, i, j] + tables.d_last[a, j, i]
        bare[a] = closed[a]
        posterior = closed[a] * tables.by_first[a, i, j]
        best = max(best, posterior)
        if posterior > least:
            tables.kept[a, i, j] |= CLOSED
    if best <= least * NEGLIGIBLE:
        return 0.0
    for rule in grammar.unary:
        bare[grammar.rules[rule, 1]] += weights[rule] * closed[grammar.rules[rule, 0]]
    best = 0.0
    for a in range(closed.shape[0]):
        posterior = bare[a] * tables.bare[a, i, j]
        best = max(best, posterior)
        if posterior > least:
            tables.kept[a, i, j] |= BARE
        if posterior <= least * NEGLIGIBLE:
            bare[a] = 0.0
    return best


@bare_kernel
def pass_down(grammar, weights, i, j, tables, bare):
    """Add the derivatives by the children of all binary rules over one span, given those by bare weights."""
    for b in range(bare.shape[0]):
        if tables.ranges[0, b, i] >= j:
            continue
        row, to_row = tables.by_first[b, i], tables.d_first[b, i]
        for p in range(grammar.first_pair[b], grammar.first_pair[b + 1]):
            c = grammar.pairs[p, 1]
            first, last = range_of_splits(tables, b, c, i, j)
            if first > last:
                continue
            slope = 0.0
            for at in range(grammar.of_pair[p], grammar.of_pair[p + 1]):
                rule = grammar.pair_rules[at]
                slope += weights[rule] * bare[grammar.rules[rule, 0]]
            if slope > 0.0:
                column, to_column = tables.by_last[c, j], tables.d_last[c, j]
                for k in range(first, last + 1):
                    to_row[k] += slope * column[k]
                    to_column[k] += slope * row[k]


@kernel
def coarse_outside(grammar, weights, n, total, least, tables):
    """Mark what has a posterior above `least`: symbols over spans, bare and closed; see `BARE` and `CLOSED`."""
    n_symbols = tables.bare.shape[0]
    tables.d_first[:], tables.d_last[:], tables.kept[:] = 0.0, 0.0, 0
    closed, bare = np.empty(n_symbols), np.empty(n_symbols)
    for rule in grammar.tops:
        tables.d_first[grammar.rules[rule, 1], 0, n] += weights[rule] / total
    for length in range(n, 0, -1):
        for i in range(n - length + 1):
            best = mark_span(grammar, weights, i, i + length, least, tables, closed, bare)
            if length > 1 and best > least * NEGLIGIBLE:
                pass_down(grammar, weights, i, i + length, tables, bare)
