"""Binary rules of a fully connected grammar: all pairs of symbols under every left-hand side, as matrices.

Sums over split points are an outer product of the two rows of each; the weights of one left-hand side are a row of the
rule matrix, as long as there are pairs. Single tokens and longer spans have different symbols where a grammar has
symbols that only emit tokens.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math

import numpy as np

from subchain.propagation.compiled import kernel, small_kernel
from subchain.propagation.phrases.charts import EMPTY, row_of

NOTHING = -1000


@small_kernel
def symbols_of(grammar, length):
    """Return the first symbol that a span of this length can be, and the one after the last."""
    return (grammar.first_single, grammar.n_all) if length == 1 else (0, grammar.n_rows)


@kernel
def combine_all(grammar, room, n, i, j, base, row):
    """Add the weights of binary rules over a span, as `combine_lists` does."""
    size, width = grammar.n_symbols, grammar.n_all
    n_pairs = width * width
    pairs = room.pairs
    pairs[:] = 0.0
    for k in range(i + 1, j):
        left_cell, right_cell = i * (n + 1) + k, k * (n + 1) + j
        if room.exponents[left_cell] == EMPTY or room.exponents[right_cell] == EMPTY:
            continue
        exponent = room.exponents[left_cell] + room.exponents[right_cell] - base
        if exponent <= NOTHING:
            continue
        factor = math.ldexp(1.0, exponent)
        left, right = row_of(room.inside, left_cell, size), row_of(room.inside, right_cell, size)
        (first, last), (low, high) = symbols_of(grammar, k - i), symbols_of(grammar, j - k)
        for b in range(first, last):
            weight = left[b] * factor
            mine = pairs[b * width : (b + 1) * width]
            for c in range(low, high):
                mine[c] += weight * right[c]
    rules = room.structural[grammar.n_all :]
    for a in range(grammar.n_rows):
        weights, total = rules[a * n_pairs : (a + 1) * n_pairs], 0.0
        for p in range(n_pairs):
            total += weights[p] * pairs[p]
        row[a] += total


@kernel
def weigh_pairs(grammar, room, row):
    """Write what outside weights of a span and the weights of rules give to every pair of children."""
    n_pairs = grammar.n_all * grammar.n_all
    rules, above = room.structural[grammar.n_all :], room.above
    above[:] = 0.0
    for a in range(grammar.n_rows):
        weights, own = rules[a * n_pairs : (a + 1) * n_pairs], row[a]
        if own > 0.0:
            for p in range(n_pairs):
                above[p] += weights[p] * own


@kernel
def count_pairs(grammar, room, row):
    """Add the pairs of a span, weighed by what is above them, to the counts of rules; see `weigh_counts`."""
    n_pairs, pairs = grammar.n_all * grammar.n_all, room.pairs
    found = room.found[grammar.n_all :]
    for a in range(grammar.n_rows):
        counts, own = found[a * n_pairs : (a + 1) * n_pairs], row[a]
        if own > 0.0:
            for p in range(n_pairs):
                counts[p] += own * pairs[p]


@kernel
def spread_all(grammar, room, n, i, j, row):
    """Pass outside weights of a span down binary rules and count the rules, as `spread_lists` does."""
    size, width = grammar.n_symbols, grammar.n_all
    pairs, above = room.pairs, room.above
    weigh_pairs(grammar, room, row)
    pairs[:] = 0.0
    mine = room.exponents[i * (n + 1) + j]
    for k in range(i + 1, j):
        left_cell, right_cell = i * (n + 1) + k, k * (n + 1) + j
        if room.exponents[left_cell] == EMPTY or room.exponents[right_cell] == EMPTY:
            continue
        exponent = room.exponents[left_cell] + room.exponents[right_cell] - mine
        if exponent <= NOTHING:
            continue
        factor = math.ldexp(1.0, exponent)
        left, right = row_of(room.inside, left_cell, size), row_of(room.inside, right_cell, size)
        to_left, to_right = row_of(room.outside, left_cell, size), row_of(room.outside, right_cell, size)
        (first, last), (low, high) = symbols_of(grammar, k - i), symbols_of(grammar, j - k)
        for b in range(first, last):
            weight, total = left[b] * factor, 0.0
            sums, slopes = pairs[b * width : (b + 1) * width], above[b * width : (b + 1) * width]
            for c in range(low, high):
                sums[c] += weight * right[c]
                total += slopes[c] * right[c]
                to_right[c] += weight * slopes[c]
            to_left[b] += total * factor
    count_pairs(grammar, room, row)


@kernel
def weigh_counts(grammar, room):
    """Multiply the sums that `spread_all` has left in the counts of rules by the weights of the rules."""
    last = grammar.n_all + grammar.n_rows * grammar.n_all * grammar.n_all
    counts, weights = room.found[grammar.n_all : last], room.structural[grammar.n_all : last]
    for at in range(np.int64(counts.shape[0])):
        counts[at] *= weights[at]
