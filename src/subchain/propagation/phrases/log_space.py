"""Charts of one sentence in log space: best trees, and sums for sentences whose weights leave the range of doubles.

What is expected is passed down as probabilities: every symbol at a span gives its own to the terms of its sum, in
proportion to them.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from subchain.propagation.compiled import ordered_kernel, ordered_part
from subchain.propagation.phrases.charts import row_of, six_of, three_of
from subchain.propagation.phrases.dense import symbols_of

#: What a step of a cycle of unary rules costs beyond the largest score.
MARGIN = 1e-6


@ordered_kernel
def take_logs(room, n_entries):
    """Replace the weights of a sentence, and the closures of unary rules, by their logarithms."""
    room.structural[:] = np.log(room.structural)
    room.lexical[:n_entries] = np.log(room.lexical[:n_entries])
    room.closure[:] = np.log(np.maximum(room.closure, 0.0))


@ordered_part
def joined(one, other, is_best):
    """Return the larger of two logarithms, or the logarithm of the sum."""
    largest, smallest = max(one, other), min(one, other)
    if is_best or smallest == -np.inf:
        return largest
    return largest + np.log1p(np.exp(smallest - largest))


@ordered_kernel
def combine_logs(grammar, room, n, i, j, row):
    """Join the log weights of binary rules over a span to those that are there."""
    size = grammar.n_symbols
    for a in range(size):
        found = row[a]
        for r in range(grammar.binary_first[a], grammar.binary_first[a + 1]):
            weight = room.structural[grammar.binary_weight[r]]
            if weight == -np.inf:
                continue
            b, c = grammar.binary_left[r], grammar.binary_right[r]
            for k in range(i + 1, j):
                left = room.inside[(i * (n + 1) + k) * size + b]
                if left > -np.inf:
                    term = weight + left + room.inside[(k * (n + 1) + j) * size + c]
                    if term > -np.inf:
                        found = joined(found, term, False)
        row[a] = found


@ordered_kernel
def raise_listed(grammar, room, n, i, j, row):
    """Raise log weights of a span to those of the best binary rules; the best split of each pair is found first."""
    size, pairs = grammar.n_symbols, room.pairs
    pairs[:] = -np.inf
    for k in range(i + 1, j):
        left, right = row_of(room.inside, i * (n + 1) + k, size), row_of(room.inside, k * (n + 1) + j, size)
        for b in range(size):
            weight = left[b]
            if weight > -np.inf:
                for p in range(grammar.pair_first[b], grammar.pair_first[b + 1]):
                    pairs[p] = max(pairs[p], weight + right[grammar.pair_right[p]])
    for a in range(size):
        for r in range(grammar.binary_first[a], grammar.binary_first[a + 1]):
            row[a] = max(row[a], room.structural[grammar.binary_weight[r]] + pairs[grammar.binary_pair[r]])


@ordered_kernel
def raise_all(grammar, room, n, i, j, row):
    """Do the same for a fully connected grammar; the inner loops have no sums, so they become vectors as they are."""
    size, width, pairs = grammar.n_symbols, grammar.n_all, room.pairs
    pairs[:] = -np.inf
    for k in range(i + 1, j):
        left, right = row_of(room.inside, i * (n + 1) + k, size), row_of(room.inside, k * (n + 1) + j, size)
        (first, last), (low, high) = symbols_of(grammar, k - i), symbols_of(grammar, j - k)
        for b in range(first, last):
            weight, mine = left[b], pairs[b * width : (b + 1) * width]
            for c in range(low, high):
                mine[c] = max(mine[c], weight + right[c])
    rules, best = room.structural[width:], room.scratch
    for a in range(grammar.n_rows):
        best[:width] = -np.inf
        for b in range(width):
            weights, mine = rules[(a * width + b) * width : (a * width + b + 1) * width], pairs[b * width :]
            for c in range(width):
                best[c] = max(best[c], weights[c] + mine[c])
        for c in range(width):
            row[a] = max(row[a], best[c])


@ordered_kernel
def raise_logs(grammar, room, n, i, j, row):
    """Raise log weights of a span to those of the best binary rules."""
    if grammar.n_rows:
        raise_all(grammar, room, n, i, j, row)
    else:
        raise_listed(grammar, room, n, i, j, row)


@ordered_kernel
def close_logs(grammar, room, row, is_best):
    """Join what unary rules derive to the log weights of a span; the best derivation has no cycle."""
    for c in range(grammar.components.shape[0]):
        first, within, last, first_member, last_member, place = six_of(grammar.components, c)
        for at in range(first, within):
            term = room.structural[grammar.unary[at, 2]] + row[grammar.unary[at, 1]]
            row[grammar.unary[at, 0]] = joined(row[grammar.unary[at, 0]], term, is_best)
        size = last_member - first_member
        if within < last and is_best:
            for _ in range(size):
                for at in range(within, last):
                    term = room.structural[grammar.unary[at, 2]] + row[grammar.unary[at, 1]]
                    row[grammar.unary[at, 0]] = max(row[grammar.unary[at, 0]], term)
        elif within < last:
            matrix = room.closure[place : place + size * size].reshape(size, size)
            for a in range(size):
                total = -np.inf
                for b in range(size):
                    term = matrix[a, b] + row[grammar.members[first_member + b]]
                    total = joined(total, term, False)
                room.scratch[a] = total
            for a in range(size):
                row[grammar.members[first_member + a]] = room.scratch[a]


@ordered_kernel
def place_logs(grammar, text, sentence, room, n, is_best):
    """Empty the inside chart and put the log weights of entries where terminals stand."""
    size, count = grammar.n_symbols, 0
    room.inside[: n * (n + 1) * size] = -np.inf
    for edge in range(text.edges[sentence], text.edges[sentence + 1]):
        i, j, terminal = three_of(text.edge, edge)
        row = row_of(room.inside, i * (n + 1) + j, size)
        for at in range(grammar.lexical_first[terminal], grammar.lexical_first[terminal + 1]):
            symbol = grammar.lexical_symbol[at]
            row[symbol] = joined(row[symbol], room.lexical[count], is_best)
            count += 1


@ordered_kernel
def fill_logs(grammar, text, sentence, room, n, is_best):
    """Fill the inside chart from logarithms of weights; return log Z, or the log weight of the best tree."""
    size = grammar.n_symbols
    place_logs(grammar, text, sentence, room, n, is_best)
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            cell = i * (n + 1) + i + length
            row = row_of(room.inside, cell, size)
            if is_best:
                raise_logs(grammar, room, n, i, i + length, row)
            else:
                combine_logs(grammar, room, n, i, i + length, row)
            if not room.legal[cell]:
                row[: grammar.n_own] = -np.inf
            close_logs(grammar, room, row, is_best)
    return room.inside[n * size + grammar.start]


@ordered_part
def share_of(part, whole):
    """Return the share of a term in a sum, both as logarithms."""
    return np.exp(part - whole) if part > -np.inf else 0.0


@ordered_kernel
def close_shares(grammar, room, inside, row):
    """Pass what is expected of symbols at a span down unary rules; count the rules."""
    for c in range(grammar.components.shape[0] - 1, -1, -1):
        first, within, last, first_member, last_member, place = six_of(grammar.components, c)
        if within < last:
            size = last_member - first_member
            matrix = room.closure[place : place + size * size].reshape(size, size)
            for b in range(size):
                child, total = grammar.members[first_member + b], 0.0
                for a in range(size):
                    symbol = grammar.members[first_member + a]
                    if row[symbol] > 0.0:
                        total += row[symbol] * share_of(matrix[a, b] + inside[child], inside[symbol])
                room.scratch[b] = total
            for b in range(size):
                row[grammar.members[first_member + b]] = room.scratch[b]
        for at in range(first, last):
            symbol, child, weight = three_of(grammar.unary, at)
            if row[symbol] > 0.0:
                share = row[symbol] * share_of(room.structural[weight] + inside[child], inside[symbol])
                room.found[weight] += share
                if at < within:
                    row[child] += share


@ordered_kernel
def share_binary(grammar, room, n, i, j, row, inside):
    """Pass what is expected of symbols at a span down binary rules; count the rules."""
    size = grammar.n_symbols
    for a in range(size):
        if row[a] <= 0.0:
            continue
        for r in range(grammar.binary_first[a], grammar.binary_first[a + 1]):
            weight = room.structural[grammar.binary_weight[r]]
            if weight == -np.inf:
                continue
            for k in range(i + 1, j):
                left = (i * (n + 1) + k) * size + grammar.binary_left[r]
                right = (k * (n + 1) + j) * size + grammar.binary_right[r]
                share = row[a] * share_of(weight + room.inside[left] + room.inside[right], inside[a])
                room.found[grammar.binary_weight[r]] += share
                room.outside[left] += share
                room.outside[right] += share


@ordered_kernel
def expect_log_entries(grammar, text, sentence, room, n):
    """Write the expected uses of entries, once what is expected of symbols at spans is known."""
    size = grammar.n_symbols
    count, found = 0, room.found[grammar.n_structural + 1 :]
    for edge in range(text.edges[sentence], text.edges[sentence + 1]):
        i, j, terminal = three_of(text.edge, edge)
        cell = i * (n + 1) + j
        for at in range(grammar.lexical_first[terminal], grammar.lexical_first[terminal + 1]):
            place = cell * size + grammar.lexical_symbol[at]
            if room.outside[place] > 0.0:
                found[count] = room.outside[place] * share_of(room.lexical[count], room.inside[place])
            count += 1


@ordered_kernel
def spread_logs(grammar, text, sentence, room, n):
    """Write what is expected of symbols at spans into the outside chart, and all expected counts."""
    size = grammar.n_symbols
    room.outside[: n * (n + 1) * size] = 0.0
    room.found[:] = 0.0
    room.outside[n * size + grammar.start] = 1.0
    for length in range(n, 0, -1):
        for i in range(n - length + 1):
            j = i + length
            cell = i * (n + 1) + j
            row, inside = row_of(room.outside, cell, size), row_of(room.inside, cell, size)
            close_shares(grammar, room, inside, row)
            share_binary(grammar, room, n, i, j, row, inside)
    expect_log_entries(grammar, text, sentence, room, n)


@ordered_kernel
def score_rules(grammar, room, n):
    """Write the logarithm of what is expected of each symbol at a span into the outside chart, for `fill_scored`.

    The sum of these over the nodes of a tree, and of the logarithms of its weights, is the logarithm of the product of
    the posterior probabilities of its rules, up to a constant (max-rule decoding, Petrov & Klein 2007).
    """
    places = n * (n + 1) * grammar.n_symbols
    room.outside[:places] = np.log(room.outside[:places])


@ordered_kernel
def score_spans(grammar, room, n, n_entries):
    """Leave what is expected of the user's symbols in the outside chart, and forget the size of weights.

    The sum over the nodes of a tree is the expected number of phrases that are right (minimum Bayes risk, Goodman
    1996).
    """
    size = grammar.n_symbols
    for cell in range(n * (n + 1)):
        room.outside[cell * size + grammar.n_own : (cell + 1) * size] = 0.0
    for weights in (room.structural, room.lexical[:n_entries]):
        for at in range(weights.shape[0]):
            if weights[at] > -np.inf:
                weights[at] = 0.0


@ordered_kernel
def charge_cycles(grammar, room, n):
    """Let a rule of a cycle of unary rules cost more than any score."""
    largest = 0.0
    for at in range(n * (n + 1) * grammar.n_symbols):
        largest = max(largest, room.outside[at])
    for c in range(grammar.components.shape[0]):
        for at in range(grammar.components[c, 1], grammar.components[c, 2]):
            room.structural[grammar.unary[at, 2]] -= largest + MARGIN


@ordered_kernel
def fill_scored(grammar, text, sentence, room, n):
    """Fill the inside chart with the best sum of weights and of the scores in the outside chart; return that of all.

    A rule of a cycle of unary rules costs more than any score, so that no cycle can raise a sum.
    """
    size = grammar.n_symbols
    charge_cycles(grammar, room, n)
    place_logs(grammar, text, sentence, room, n, True)
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            cell = i * (n + 1) + i + length
            row, scores = row_of(room.inside, cell, size), row_of(room.outside, cell, size)
            raise_logs(grammar, room, n, i, i + length, row)
            if not room.legal[cell]:
                row[: grammar.n_own] = -np.inf
            for a in range(size):
                row[a] += scores[a]
            for c in range(grammar.components.shape[0]):
                first, within, last, first_member, last_member, _ = six_of(grammar.components, c)
                raise_by_rules(grammar, room, first, within, row, scores)
                for _ in range(last_member - first_member if within < last else 0):
                    raise_by_rules(grammar, room, within, last, row, scores)
    return room.inside[n * size + grammar.start]


@ordered_kernel
def raise_by_rules(grammar, room, first, last, row, scores):
    """Let unary rules raise the sums of symbols at a span."""
    for at in range(first, last):
        symbol, child, weight = three_of(grammar.unary, at)
        row[symbol] = max(row[symbol], room.structural[weight] + row[child] + scores[symbol])
