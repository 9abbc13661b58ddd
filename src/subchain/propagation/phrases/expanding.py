"""One tree out of the chart of a sentence, from the top down: the best one, or a draw.

A tree is written as its rules, from the top down and from left to right: binary rules have the numbers 0 … B − 1,
unary ones B … B + U − 1, lexical ones B + U … B + U + L − 1.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math

import numpy as np

from subchain.numerics.random import uniform
from subchain.propagation.compiled import ordered_kernel, ordered_part
from subchain.propagation.phrases.charts import EMPTY, three_of


@ordered_part
def share_of_pair(room, is_log, weight, left, right, own, left_cell, right_cell, cell):
    """Return the share of a binary rule and a split point in the weight of a symbol at a span."""
    if is_log:
        term = weight + room.inside[left] + room.inside[right]
        return np.exp(term - own) if term > -np.inf else 0.0
    if room.exponents[left_cell] == EMPTY or room.exponents[right_cell] == EMPTY:
        return 0.0
    exponent = room.exponents[left_cell] + room.exponents[right_cell] - room.exponents[cell]
    return weight * math.ldexp(room.inside[left] * room.inside[right], exponent) / own


@ordered_part
def share_of_one(room, is_log, weight, child, own):
    """Return the share of a unary rule in the weight of a symbol at a span."""
    if is_log:
        term = weight + room.inside[child]
        return np.exp(term - own) if term > -np.inf else 0.0
    return weight * room.inside[child] / own


@ordered_kernel
def choose_binary(grammar, room, n, i, j, a, is_log, threshold, chosen):
    """Go through the binary rules of a symbol at a span until their shares exceed a threshold; return what is left.

    `chosen` (2,) becomes the rule and the split point that was reached last.
    """
    size, cell = grammar.n_symbols, i * (n + 1) + j
    own = room.inside[cell * size + a]
    for r in range(grammar.binary_first[a], grammar.binary_first[a + 1]):
        weight = room.structural[grammar.binary_weight[r]]
        if weight == -np.inf or (not is_log and weight == 0.0):
            continue
        for k in range(i + 1, j):
            left_cell, right_cell = i * (n + 1) + k, k * (n + 1) + j
            left = left_cell * size + grammar.binary_left[r]
            right = right_cell * size + grammar.binary_right[r]
            share = share_of_pair(room, is_log, weight, left, right, own, left_cell, right_cell, cell)
            if share > 0.0:
                chosen[0], chosen[1] = r, k
                threshold -= share
                if threshold < 0.0:
                    return threshold
    return threshold


@ordered_kernel
def choose_unary(grammar, room, row, a, is_log, threshold, chosen):
    """Do the same for the unary rules of a symbol; `row` is where the symbols of the span begin."""
    own, n_binary = room.inside[row + a], grammar.binary_pair.shape[0]
    for at in range(grammar.unary.shape[0]):
        if grammar.unary[at, 0] == a:
            weight = room.structural[grammar.unary[at, 2]]
            share = share_of_one(room, is_log, weight, row + grammar.unary[at, 1], own)
            if share > 0.0:
                chosen[0], chosen[1] = n_binary + at, -1
                threshold -= share
                if threshold < 0.0:
                    return threshold
    return threshold


@ordered_kernel
def choose_entry(grammar, text, sentence, room, cell, i, j, a, is_log, threshold, chosen):
    """Do the same for the entries of a symbol at a span."""
    own, count = room.inside[cell * grammar.n_symbols + a], 0
    n_others = grammar.binary_pair.shape[0] + grammar.unary.shape[0]
    for edge in range(text.edges[sentence], text.edges[sentence + 1]):
        terminal = text.edge[edge, 2]
        here = text.edge[edge, 0] == i and text.edge[edge, 1] == j
        for at in range(grammar.lexical_first[terminal], grammar.lexical_first[terminal + 1]):
            if here and grammar.lexical_symbol[at] == a:
                weight = room.lexical[count]
                if is_log:
                    share = np.exp(weight - own) if weight > -np.inf else 0.0
                else:
                    share = math.ldexp(weight, -room.exponents[cell]) / own
                if share > 0.0:
                    chosen[0], chosen[1] = n_others + at, -1
                    threshold -= share
                    if threshold < 0.0:
                        return threshold
            count += 1
    return threshold


@ordered_kernel
def choose_best(grammar, text, sentence, room, n, i, j, a, chosen):
    """Write the rule of the best tree of a symbol at a span, and its split point, −1 if it has none; rule −1: no tree.

    The chart has the logarithms of the weights of best trees.
    """
    size, best, cell, count = grammar.n_symbols, -np.inf, i * (n + 1) + j, 0
    n_binary, n_unary = grammar.binary_pair.shape[0], grammar.unary.shape[0]
    chosen[0], chosen[1] = -1, -1
    for edge in range(text.edges[sentence], text.edges[sentence + 1]):
        terminal = text.edge[edge, 2]
        here = text.edge[edge, 0] == i and text.edge[edge, 1] == j
        for at in range(grammar.lexical_first[terminal], grammar.lexical_first[terminal + 1]):
            if here and grammar.lexical_symbol[at] == a and room.lexical[count] > best:
                best, chosen[0] = room.lexical[count], n_binary + n_unary + at
            count += 1
    for r in range(grammar.binary_first[a], grammar.binary_first[a + 1]):
        weight = room.structural[grammar.binary_weight[r]]
        left, right = i * (n + 1) * size + grammar.binary_left[r], j * size + grammar.binary_right[r]
        for k in range(i + 1, j):
            value = weight + room.inside[left + k * size] + room.inside[right + k * (n + 1) * size]
            if value > best:
                best, chosen[0], chosen[1] = value, r, k
    for at in range(n_unary):
        if grammar.unary[at, 0] == a:
            value = room.structural[grammar.unary[at, 2]] + room.inside[cell * size + grammar.unary[at, 1]]
            if value > best:
                best, chosen[0], chosen[1] = value, n_binary + at, -1


@ordered_kernel
def expand_best(grammar, text, sentence, room, n, rules):
    """Write the rules of the best tree of a chart of logarithms; return their number, zero if there is no tree."""
    items, count, used = room.items, 1, 0
    items[0, 0], items[0, 1], items[0, 2] = grammar.start, 0, n
    chosen = np.empty(2, dtype=np.int64)
    while count:
        count -= 1
        a, i, j = three_of(items, count)
        choose_best(grammar, text, sentence, room, n, i, j, a, chosen)
        if chosen[0] < 0:
            return 0
        count = follow(grammar, items, count, chosen, i, j)
        rules[used] = chosen[0]
        used += 1
    return used


@ordered_kernel
def follow(grammar, items, count, chosen, i, j):
    """Put the children of a chosen rule on the stack, the right one first; return how many items there are."""
    r, n_binary = chosen[0], grammar.binary_pair.shape[0]
    if r < n_binary:
        items[count, 0], items[count, 1], items[count, 2] = grammar.binary_right[r], chosen[1], j
        items[count + 1, 0], items[count + 1, 1], items[count + 1, 2] = grammar.binary_left[r], i, chosen[1]
        return count + 2
    if r < n_binary + grammar.unary.shape[0]:
        items[count, 0], items[count, 1], items[count, 2] = grammar.unary[r - n_binary, 1], i, j
        return count + 1
    return count


@ordered_kernel
def expand_drawn(grammar, text, sentence, room, n, is_log, numbers, rules):
    """Draw a tree by the random numbers of a stream; return the number of its rules, −1 if they do not fit."""
    items, count, used = room.items, 1, 0
    items[0, 0], items[0, 1], items[0, 2] = grammar.start, 0, n
    chosen = np.empty(2, dtype=np.int64)
    while count:
        count -= 1
        a, i, j = three_of(items, count)
        cell = i * (n + 1) + j
        if used == rules.shape[0]:
            return -1
        threshold = uniform(numbers, used)
        threshold = choose_entry(grammar, text, sentence, room, cell, i, j, a, is_log, threshold, chosen)
        if threshold >= 0.0:
            threshold = choose_unary(grammar, room, cell * grammar.n_symbols, a, is_log, threshold, chosen)
        if threshold >= 0.0:
            choose_binary(grammar, room, n, i, j, a, is_log, threshold, chosen)
        count = follow(grammar, items, count, chosen, i, j)
        rules[used] = chosen[0]
        used += 1
    return used
