"""Inside-outside of one sentence with scaled probabilities: the log likelihood and all expected counts.

Inside weights of a span are divided by a power of two, so that the largest is between one and two; powers of two round
nothing. The outside pass is the derivative of log Z by the scaled inside weights, taken backwards: what is expected of
a symbol at a span is its inside weight times this derivative. Where symbols of one span differ by more than the range
of doubles, the sentence is computed again in log space (`log_space.py`).

Unary rules are closed: inside weights are multiplied by (I − U)⁻¹, component by component, children first.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math

import numpy as np

from subchain.propagation.compiled import kernel, small_kernel
from subchain.propagation.phrases.charts import EMPTY, close_cycles, row_of, six_of, three_of
from subchain.propagation.phrases.dense import combine_all, spread_all, weigh_counts
from subchain.propagation.phrases.log_space import fill_logs, spread_logs, take_logs

#: A start whose share of the weight of the whole sentence is below this is computed in log space.
LEAST = 1e-100
#: Powers of two below this make nothing of a weight.
NOTHING = -1000


@small_kernel
def power(exponent):
    """Return two to the power of a whole number, zero where that is too small to matter."""
    return math.ldexp(1.0, exponent) if exponent > NOTHING else 0.0


@kernel
def place_entries(grammar, text, sentence, room, n):
    """Empty the inside chart and put the weights of entries, numbers or logarithms, where single terminals stand."""
    room.inside[: n * (n + 1) * grammar.n_symbols] = 0.0
    room.exponents[: n * (n + 1)] = EMPTY
    count = 0
    for edge in range(text.edges[sentence], text.edges[sentence + 1]):
        i, j, terminal = three_of(text.edge, edge)
        cell = i * (n + 1) + j
        room.exponents[cell] = 0
        row = row_of(room.inside, cell, grammar.n_symbols)
        for at in range(grammar.lexical_first[terminal], grammar.lexical_first[terminal + 1]):
            row[grammar.lexical_symbol[at]] += room.lexical[count]
            count += 1


@kernel
def close_inside(grammar, room, row):
    """Add what unary rules derive to the inside weights of a span."""
    for c in range(grammar.components.shape[0]):
        first, within, last, first_member, last_member, place = six_of(grammar.components, c)
        for at in range(first, within):
            row[grammar.unary[at, 0]] += room.structural[grammar.unary[at, 2]] * row[grammar.unary[at, 1]]
        if within < last:
            size = last_member - first_member
            matrix = room.closure[place : place + size * size].reshape(size, size)
            for a in range(size):
                total = 0.0
                for b in range(size):
                    total += matrix[a, b] * row[grammar.members[first_member + b]]
                room.scratch[a] = total
            for a in range(size):
                row[grammar.members[first_member + a]] = room.scratch[a]


@kernel
def close_outside(grammar, room, inside, row):
    """Pass outside weights down unary rules; count the rules."""
    for c in range(grammar.components.shape[0] - 1, -1, -1):
        first, within, last, first_member, last_member, place = six_of(grammar.components, c)
        if within < last:
            size = last_member - first_member
            matrix = room.closure[place : place + size * size].reshape(size, size)
            for b in range(size):
                total = 0.0
                for a in range(size):
                    total += matrix[a, b] * row[grammar.members[first_member + a]]
                room.scratch[b] = total
            for b in range(size):
                row[grammar.members[first_member + b]] = room.scratch[b]
        for at in range(first, within):
            row[grammar.unary[at, 1]] += room.structural[grammar.unary[at, 2]] * row[grammar.unary[at, 0]]
        for at in range(first, last):
            weight = grammar.unary[at, 2]
            room.found[weight] += room.structural[weight] * row[grammar.unary[at, 0]] * inside[grammar.unary[at, 1]]


@kernel
def combine_lists(grammar, room, n, i, j, base, row):
    """Add the weights of binary rules over a span, divided by two to the power of `base`."""
    size, pairs = grammar.n_symbols, room.pairs
    pairs[:] = 0.0
    for k in range(i + 1, j):
        left_cell, right_cell = i * (n + 1) + k, k * (n + 1) + j
        if room.exponents[left_cell] == EMPTY or room.exponents[right_cell] == EMPTY:
            continue
        factor = power(room.exponents[left_cell] + room.exponents[right_cell] - base)
        left, right = row_of(room.inside, left_cell, size), row_of(room.inside, right_cell, size)
        for b in range(size):
            weight = left[b] * factor
            if weight > 0.0:
                for p in range(grammar.pair_first[b], grammar.pair_first[b + 1]):
                    pairs[p] += weight * right[grammar.pair_right[p]]
    for a in range(size):
        total = 0.0
        for r in range(grammar.binary_first[a], grammar.binary_first[a + 1]):
            total += room.structural[grammar.binary_weight[r]] * pairs[grammar.binary_pair[r]]
        row[a] += total


@kernel
def weigh_listed(grammar, room, row):
    """Write what outside weights of a span and the weights of rules give to every pair of children."""
    room.above[:] = 0.0
    for a in range(grammar.n_symbols):
        if row[a] > 0.0:
            for r in range(grammar.binary_first[a], grammar.binary_first[a + 1]):
                room.above[grammar.binary_pair[r]] += room.structural[grammar.binary_weight[r]] * row[a]


@kernel
def count_listed(grammar, room, row):
    """Add the expected uses of binary rules at a span to their counts."""
    for a in range(grammar.n_symbols):
        if row[a] > 0.0:
            for r in range(grammar.binary_first[a], grammar.binary_first[a + 1]):
                weight = grammar.binary_weight[r]
                room.found[weight] += room.structural[weight] * row[a] * room.pairs[grammar.binary_pair[r]]


@kernel
def spread_lists(grammar, room, n, i, j, row):
    """Pass outside weights of a span down binary rules; count the rules."""
    size, pairs, above = grammar.n_symbols, room.pairs, room.above
    weigh_listed(grammar, room, row)
    pairs[:] = 0.0
    own = room.exponents[i * (n + 1) + j]
    for k in range(i + 1, j):
        left_cell, right_cell = i * (n + 1) + k, k * (n + 1) + j
        if room.exponents[left_cell] == EMPTY or room.exponents[right_cell] == EMPTY:
            continue
        factor = power(room.exponents[left_cell] + room.exponents[right_cell] - own)
        left, right = row_of(room.inside, left_cell, size), row_of(room.inside, right_cell, size)
        to_left, to_right = row_of(room.outside, left_cell, size), row_of(room.outside, right_cell, size)
        for b in range(size):
            weight = left[b] * factor
            if weight > 0.0:
                total = 0.0
                for p in range(grammar.pair_first[b], grammar.pair_first[b + 1]):
                    c = grammar.pair_right[p]
                    pairs[p] += weight * right[c]
                    total += above[p] * right[c]
                    to_right[c] += weight * above[p]
                to_left[b] += total * factor
    count_listed(grammar, room, row)


@kernel
def normalize_row(row, base):
    """Divide the weights of a span by a power of two; return the exponent, `EMPTY` if all are zero."""
    largest = 0.0
    for a in range(row.shape[0]):
        largest = max(largest, row[a])
    if not largest > 0.0:
        return EMPTY
    exponent = math.frexp(largest)[1] - 1
    scale = math.ldexp(1.0, -exponent) if exponent > NOTHING else math.ldexp(1.0, -NOTHING)
    for a in range(row.shape[0]):
        row[a] *= scale
    return base + (exponent if exponent > NOTHING else NOTHING)


@kernel
def fill_inside(grammar, text, sentence, room, n):
    """Fill the inside chart; return the weight of the start over the whole sentence, scaled."""
    place_entries(grammar, text, sentence, room, n)
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            j = i + length
            cell = i * (n + 1) + j
            base = room.exponents[cell]
            has_entries = base == 0
            for k in range(i + 1, j):
                base = max(base, room.exponents[i * (n + 1) + k] + room.exponents[k * (n + 1) + j])
            if base <= EMPTY // 2:
                room.exponents[cell] = EMPTY
                continue
            row = row_of(room.inside, cell, grammar.n_symbols)
            if has_entries and base > 0:
                row *= power(-base)
            if length > 1:
                if grammar.n_rows:
                    combine_all(grammar, room, n, i, j, base, row)
                else:
                    combine_lists(grammar, room, n, i, j, base, row)
            if not room.legal[cell]:
                row[: grammar.n_own] = 0.0
            close_inside(grammar, room, row)
            room.exponents[cell] = normalize_row(row, base)
    return room.inside[n * grammar.n_symbols + grammar.start]


@kernel
def expect_entries(grammar, text, sentence, room, n):
    """Write the expected uses of entries, once the outside chart is full."""
    size = grammar.n_symbols
    count, found = 0, room.found[grammar.n_structural + 1 :]
    for edge in range(text.edges[sentence], text.edges[sentence + 1]):
        i, j, terminal = three_of(text.edge, edge)
        cell = i * (n + 1) + j
        row = row_of(room.outside, cell, size)
        exponent = room.exponents[cell]
        for at in range(grammar.lexical_first[terminal], grammar.lexical_first[terminal + 1]):
            if exponent > EMPTY and room.lexical[count] > 0.0:
                found[count] = row[grammar.lexical_symbol[at]] * math.ldexp(room.lexical[count], -exponent)
            count += 1


@kernel
def spread_outside(grammar, text, sentence, room, n, total):
    """Fill the outside chart and write all expected counts."""
    size = grammar.n_symbols
    room.outside[: n * (n + 1) * size] = 0.0
    room.found[:] = 0.0
    room.outside[n * size + grammar.start] = 1.0 / total
    for length in range(n, 0, -1):
        for i in range(n - length + 1):
            j = i + length
            cell = i * (n + 1) + j
            if room.exponents[cell] == EMPTY:
                continue
            row = row_of(room.outside, cell, size)
            if not room.legal[cell]:
                row[: grammar.n_own] = 0.0
            close_outside(grammar, room, row_of(room.inside, cell, size), row)
            if length > 1:
                if grammar.n_rows:
                    spread_all(grammar, room, n, i, j, row)
                else:
                    spread_lists(grammar, room, n, i, j, row)
    if grammar.n_rows:
        weigh_counts(grammar, room)
    expect_entries(grammar, text, sentence, room, n)
    room.outside[: n * (n + 1) * size] *= room.inside[: n * (n + 1) * size]


@kernel
def fill_charts(grammar, text, sentence, room, n):
    """Fill the inside chart; return log Z, the total to divide by, and whether chart and weights are logarithms."""
    close_cycles(grammar, room)
    total = fill_inside(grammar, text, sentence, room, n)
    if total >= LEAST:
        return np.log(total) + room.exponents[n] * np.log(2.0), total, False
    take_logs(room, text.entries[sentence + 1] - text.entries[sentence])
    return fill_logs(grammar, text, sentence, room, n, False), 1.0, True


@kernel
def expect_phrases(grammar, text, sentence, room, n):
    """Write what is expected of one sentence: counts of rules, and of symbols at spans in the outside chart.

    Return its log likelihood, perhaps −inf, and whether inside chart and weights are logarithms.
    """
    found, total, is_log = fill_charts(grammar, text, sentence, room, n)
    if not is_log:
        spread_outside(grammar, text, sentence, room, n, total)
    elif found > -np.inf:
        spread_logs(grammar, text, sentence, room, n)
    else:
        room.found[:] = 0.0
        room.outside[: n * (n + 1) * grammar.n_symbols] = 0.0
    return found, is_log


@kernel
def entropy_of(grammar, room, n_entries, log_normalizer, is_log):
    """Return the entropy of the trees of one sentence: log Z minus the expected log weight."""
    entropy = log_normalizer
    for at in range(grammar.n_structural + 1 + n_entries):
        expected = room.found[at]
        if expected > 0.0:
            own = room.structural[at] if at <= grammar.n_structural else room.lexical[at - grammar.n_structural - 1]
            entropy -= expected * (own if is_log else np.log(own))
    return entropy
