"""The fine pass: inside-outside with annotations over the symbols that the coarse pass has left (Charniak 2006).

What is left are *items*, symbols over spans; those of one span stand together, short spans first. An item has the
vectors of its bare and its closed weights, and of their derivatives, see `coarse.py`. Products of left and right
children are summed over split points first, so that a rule's H³ weights are read once a span.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.compiled import bare_kernel, kernel
from subchain.propagation.latent.coarse import BARE, CLOSED, clear_ranges, note_span, range_of_splits

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

#: Posteriors of rules at a place below this are left out when trees are chosen.
LEAST_USE = 1e-12


class Items(NamedTuple):
    """What is left of a chart.

    Attributes
    ----------
    numbers : (S, n + 1, n + 1) number of the item by symbol, first word and end, −1 for none
    spans : (number of spans with items + 1, 3) first word, end, and first item of each; the last row ends the items
    symbols, flags : (n_items,) see `coarse.BARE` and `coarse.CLOSED`
    bare, closed, d_bare, d_closed : (n_items, H)
    """

    numbers: Ids
    spans: Ids
    symbols: Ids
    flags: NDArray[np.int8]
    bare: Array
    closed: Array
    d_bare: Array
    d_closed: Array


class Uses(NamedTuple):
    """Binary rules at places of the chart, item after item from the last to the first.

    Attributes
    ----------
    bounds : (n_items + 1, 2) first and last of each item's
    rules, splits : rule, and split point
    posteriors : of the rule at this place
    """

    bounds: NDArray[np.int64]
    rules: Ids
    splits: Ids
    posteriors: Array


@kernel
def list_items(tables, numbers, n, width):
    """Return the items of a chart whose flags are marked; no vectors are filled."""
    n_symbols = tables.kept.shape[0]
    count, n_spans = 0, 0
    for i in range(n):
        for j in range(i + 1, n + 1):
            before = count
            for a in range(n_symbols):
                if tables.kept[a, i, j]:
                    count += 1
            n_spans += count > before
    spans, symbols, flags = np.empty((n_spans + 1, 3), np.int32), np.empty(count, np.int32), np.empty(count, np.int8)
    numbers[:] = -1
    count, n_spans = 0, 0
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            j, before = i + length, count
            for a in range(n_symbols):
                if tables.kept[a, i, j]:
                    symbols[count], flags[count], numbers[a, i, j] = a, tables.kept[a, i, j], count
                    count += 1
            if count > before:
                spans[n_spans, 0], spans[n_spans, 1], spans[n_spans, 2] = i, j, before
                n_spans += 1
    spans[n_spans, 2] = count
    shape = (count, width)
    return Items(
        numbers, spans, symbols, flags, np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape)
    )  # fmt: skip


@bare_kernel
def add_words(grammar, rules, weights, words, factors, scale, items, item):
    """Add the weights of a word to the bare vector of an item."""
    for c in range(2):
        if factors[c] > 0.0:
            for at in range(grammar.of_word[words[c]], grammar.of_word[words[c] + 1]):
                rule = grammar.word_rules[at]
                if grammar.rules[rule, 0] == items.symbols[item]:
                    for x in range(rules.sizes[rule, 0]):
                        value = weights[rules.places[rule] + x * rules.strides[rule]]
                        items.bare[item, x] += scale * factors[c] * value


@bare_kernel
def sum_splits(b, c, i, first, last, j, n_left, n_right, items, products):
    """Write the sum over split points of left ⊗ right to `products`; return whether there is any."""
    found = False
    for k in range(first, last + 1):
        left, right = items.numbers[b, i, k], items.numbers[c, k, j]
        if left < 0 or right < 0 or not items.flags[left] & CLOSED or not items.flags[right] & CLOSED:
            continue
        if not found:
            products[: n_left * n_right] = 0.0
            found = True
        for y in range(n_left):
            value, row = items.closed[left, y], products[y * n_right : (y + 1) * n_right]
            for z in range(n_right):
                row[z] += value * items.closed[right, z]
    return found


@bare_kernel
def close_items(grammar, rules, weights, tables, items, s):
    """Apply unary rules to the items of one span."""
    i, j = items.spans[s, 0], items.spans[s, 1]
    for item in range(items.spans[s, 2], items.spans[s + 1, 2]):
        if items.flags[item] & CLOSED:
            note_span(tables, items.symbols[item], i, j)
            if items.flags[item] & BARE:
                for x in range(items.bare.shape[1]):
                    items.closed[item, x] = items.bare[item, x]
    for rule in grammar.unary:
        parent, child = items.numbers[grammar.rules[rule, 0], i, j], items.numbers[grammar.rules[rule, 1], i, j]
        if parent < 0 or child < 0 or not items.flags[parent] & CLOSED or not items.flags[child] & BARE:
            continue
        for x in range(rules.sizes[rule, 0]):
            at, total = rules.places[rule] + x * rules.strides[rule], 0.0
            for y in range(rules.sizes[rule, 1]):
                total += weights[at + y] * items.bare[child, y]
            items.closed[parent, x] += total


@bare_kernel
def combine_item(grammar, rules, weights, tables, items, item, i, j, products):
    """Add the weights of all binary rules to the bare vector of an item."""
    a = items.symbols[item]
    for rule in range(grammar.first_binary[a], grammar.last_binary[a]):
        b, c = grammar.rules[rule, 1], grammar.rules[rule, 2]
        first, last = range_of_splits(tables, b, c, i, j)
        n_left, n_right = rules.sizes[rule, 1], rules.sizes[rule, 2]
        if first > last or not sum_splits(b, c, i, first, last, j, n_left, n_right, items, products):
            continue
        width = n_left * n_right
        for x in range(rules.sizes[rule, 0]):
            at, total = rules.places[rule] + x * rules.strides[rule], 0.0
            row = weights[at : at + width]
            for e in range(width):
                total += row[e] * products[e]
            items.bare[item, x] += total


@kernel
def fine_inside(grammar, rules, weights, words, factors, tables, items):
    """Fill the inside vectors of all items; return the total weight."""
    n = words.shape[0]
    products = np.empty(items.bare.shape[1] ** 2)
    clear_ranges(tables, n)
    for s in range(items.spans.shape[0] - 1):
        i, j = items.spans[s, 0], items.spans[s, 1]
        for item in range(items.spans[s, 2], items.spans[s + 1, 2]):
            if not items.flags[item] & BARE:
                continue
            if j == i + 1:
                add_words(grammar, rules, weights, words[i], factors[i], tables.factors[i], items, item)
            else:
                combine_item(grammar, rules, weights, tables, items, item, i, j, products)
        close_items(grammar, rules, weights, tables, items, s)
    found = 0.0
    for rule in grammar.tops:
        item = items.numbers[grammar.rules[rule, 1], 0, n]
        if item >= 0:
            for y in range(rules.sizes[rule, 1]):
                found += weights[rules.places[rule] + y] * items.closed[item, y]
    return found


@bare_kernel
def open_items(grammar, rules, weights, items, s):
    """Work out the derivatives by bare vectors of the items of one span from those by closed ones."""
    i, j = items.spans[s, 0], items.spans[s, 1]
    for item in range(items.spans[s, 2], items.spans[s + 1, 2]):
        if items.flags[item] & BARE and items.flags[item] & CLOSED:
            for x in range(items.bare.shape[1]):
                items.d_bare[item, x] = items.d_closed[item, x]
    for rule in grammar.unary:
        parent, child = items.numbers[grammar.rules[rule, 0], i, j], items.numbers[grammar.rules[rule, 1], i, j]
        if parent < 0 or child < 0 or not items.flags[parent] & CLOSED or not items.flags[child] & BARE:
            continue
        for x in range(rules.sizes[rule, 0]):
            at, slope = rules.places[rule] + x * rules.strides[rule], items.d_closed[parent, x]
            for y in range(rules.sizes[rule, 1]):
                items.d_bare[child, y] += slope * weights[at + y]


@bare_kernel
def weigh_slopes(rules, weights, rule, slope, out):
    """Write Σ_x slope[x] · weight[x, y, z] of one rule, for all annotations of its children; return their number."""
    width = rules.sizes[rule, 1] * rules.sizes[rule, 2]
    out[:width] = 0.0
    for x in range(rules.sizes[rule, 0]):
        at, value = rules.places[rule] + x * rules.strides[rule], slope[x]
        row = weights[at : at + width]
        for e in range(width):
            out[e] += value * row[e]
    return width


@kernel
def room_for_uses(n_items):
    """Return an empty list of uses."""
    room = 16 * n_items + 64
    return Uses(
        np.zeros((n_items + 1, 2), np.int64), np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room)
    )  # fmt: skip


@kernel
def twice(uses):
    """Return a list of uses with room for twice as many."""
    room = uses.rules.shape[0]
    found = Uses(
        uses.bounds, np.empty(2 * room, np.int32), np.empty(2 * room, np.int32), np.empty(2 * room)
    )  # fmt: skip
    found.rules[:room], found.splits[:room], found.posteriors[:room] = uses.rules, uses.splits, uses.posteriors
    return found


@bare_kernel
def pass_to_children(items, left, right, n_left, n_right, slopes):
    """Add the derivatives by two children of a rule, given those by their products; return the rule's posterior."""
    found = 0.0
    for y in range(n_left):
        value, total = items.closed[left, y], 0.0
        row = slopes[y * n_right : (y + 1) * n_right]
        for z in range(n_right):
            total += row[z] * items.closed[right, z]
            items.d_closed[right, z] += row[z] * value
        items.d_closed[left, y] += total
        found += value * total
    return found


@kernel
def list_uses(grammar, rules, weights, tables, items, item, i, j, slopes, uses, used):
    """Pass the derivatives of one item down, and list its binary rules; return the list and its length."""
    a = items.symbols[item]
    for rule in range(grammar.first_binary[a], grammar.last_binary[a]):
        b, c = grammar.rules[rule, 1], grammar.rules[rule, 2]
        first, last = range_of_splits(tables, b, c, i, j)
        is_weighed = False
        for k in range(first, last + 1):
            left, right = items.numbers[b, i, k], items.numbers[c, k, j]
            if left < 0 or right < 0 or not items.flags[left] & CLOSED or not items.flags[right] & CLOSED:
                continue
            if not is_weighed:
                weigh_slopes(rules, weights, rule, items.d_bare[item], slopes)
                is_weighed = True
            posterior = pass_to_children(items, left, right, rules.sizes[rule, 1], rules.sizes[rule, 2], slopes)
            if posterior > LEAST_USE:
                if used == uses.rules.shape[0]:
                    uses = twice(uses)
                uses.rules[used], uses.splits[used], uses.posteriors[used] = rule, k, posterior
                used += 1
    return uses, used


@kernel
def fine_outside(grammar, rules, weights, n, total, tables, items):
    """Fill the derivatives of log Z by all vectors; return the posteriors of binary rules at their places."""
    uses, used, slopes = room_for_uses(items.symbols.shape[0]), 0, np.empty(items.bare.shape[1] ** 2)
    for rule in grammar.tops:
        item = items.numbers[grammar.rules[rule, 1], 0, n]
        if item >= 0:
            for y in range(rules.sizes[rule, 1]):
                items.d_closed[item, y] += weights[rules.places[rule] + y] / total
    for s in range(items.spans.shape[0] - 2, -1, -1):
        open_items(grammar, rules, weights, items, s)
        i, j = items.spans[s, 0], items.spans[s, 1]
        for item in range(items.spans[s, 2], items.spans[s + 1, 2]):
            uses.bounds[item, 0] = used
            if items.flags[item] & BARE and j > i + 1:
                uses, used = list_uses(grammar, rules, weights, tables, items, item, i, j, slopes, uses, used)
            uses.bounds[item, 1] = used
    return uses
