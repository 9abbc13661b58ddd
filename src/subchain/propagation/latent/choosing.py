"""One tree out of a fine chart: the max-rule-product tree (Petrov & Klein 2007), or the one with the best annotations.

The max-rule-product tree has the largest product of the posteriors of its rules at their places, annotations summed
out. The best annotated tree (Viterbi) is searched again from the top down, so that nothing is kept but its weights.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from subchain.propagation.compiled import bare_kernel, kernel, ordered_kernel
from subchain.propagation.latent.coarse import BARE, CLOSED, range_of_splits
from subchain.propagation.latent.fine import LEAST_USE, add_words

#: Kinds of a node: a word, or the number of its children; the numbers of `trees.py`.
LEAF, ONE, TWO = 0, 1, 2


@bare_kernel
def posterior_of(grammar, rules, weights, rule, items, parent, child):
    """Return the posterior of a unary rule between two items of one span."""
    found = 0.0
    for x in range(rules.sizes[rule, 0]):
        at = rules.places[rule] + x * rules.strides[rule]
        for y in range(rules.sizes[rule, 1]):
            found += items.d_closed[parent, x] * weights[at + y] * items.bare[child, y]
    return found


@ordered_kernel
def log_or_none(value):
    """Return log value, −inf for what is left out."""
    return np.log(value) if value > LEAST_USE else -np.inf


@ordered_kernel
def max_rule_scores(grammar, rules, weights, items, uses, bare, closed, choices, below):
    """Write the score of the best tree of every item, bare and closed.

    Parameters
    ----------
    bare, closed : (n_items,) scores, logarithms
    choices : (n_items, 2) rule and split point of the best tree of a bare item
    below : (n_items,) item below the best unary rule of a closed one, −1 if it has none
    """
    bare[:], closed[:], below[:] = -np.inf, -np.inf, -1
    for s in range(items.spans.shape[0] - 1):
        i, j = items.spans[s, 0], items.spans[s, 1]
        for item in range(items.spans[s, 2], items.spans[s + 1, 2]):
            if items.flags[item] & BARE and j == i + 1:
                bare[item] = log_or_none((items.d_bare[item] * items.bare[item]).sum())
            for use in range(uses.bounds[item, 0], uses.bounds[item, 1]):
                rule, k = uses.rules[use], uses.splits[use]
                left, right = items.numbers[grammar.rules[rule, 1], i, k], items.numbers[grammar.rules[rule, 2], k, j]
                score = np.log(uses.posteriors[use]) + closed[left] + closed[right]
                if score > bare[item]:
                    bare[item] = score
                    choices[item, 0], choices[item, 1] = rule, k
            if items.flags[item] & CLOSED and items.flags[item] & BARE:
                closed[item] = bare[item]
        for rule in grammar.unary:
            parent, child = items.numbers[grammar.rules[rule, 0], i, j], items.numbers[grammar.rules[rule, 1], i, j]
            if parent < 0 or child < 0 or not items.flags[parent] & CLOSED or bare[child] == -np.inf:
                continue
            posterior = posterior_of(grammar, rules, weights, rule, items, parent, child)
            score = log_or_none(posterior) + bare[child]
            if score > closed[parent]:
                closed[parent] = score
                below[parent] = child


@ordered_kernel
def max_rule_tree(grammar, rules, weights, n, items, uses, nodes):
    """Write the max-rule-product tree from the top down, (symbol, kind) of each node; return their number, or 0."""
    n_items = items.symbols.shape[0]
    bare, closed = np.empty(n_items), np.empty(n_items)
    choices, below = np.empty((n_items, 2), np.int32), np.empty(n_items, np.int32)
    max_rule_scores(grammar, rules, weights, items, uses, bare, closed, choices, below)
    top, best = -1, -np.inf
    for rule in grammar.tops:
        item = items.numbers[grammar.rules[rule, 1], 0, n]
        if item >= 0:
            posterior = 0.0
            for y in range(rules.sizes[rule, 1]):
                posterior += items.closed[item, y] * items.d_closed[item, y]
            score = log_or_none(posterior) + closed[item]
            if score > best:
                top, best = item, score
    if top < 0:
        return 0
    waiting, count, written = np.empty((2 * n + 2, 3), np.int32), 1, 0
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = top, 0, n
    while count:
        count -= 1
        item, i, j = waiting[count, 0], waiting[count, 1], waiting[count, 2]
        if below[item] >= 0:
            nodes[written, 0], nodes[written, 1] = items.symbols[item], ONE
            written += 1
            item = below[item]
        is_word = j == i + 1
        nodes[written, 0], nodes[written, 1] = items.symbols[item], LEAF if is_word else TWO
        written += 1
        if is_word:
            continue
        rule, k = choices[item, 0], choices[item, 1]
        waiting[count, 0] = items.numbers[grammar.rules[rule, 2], k, j]
        waiting[count, 1], waiting[count, 2] = k, j
        waiting[count + 1, 0] = items.numbers[grammar.rules[rule, 1], i, k]
        waiting[count + 1, 1], waiting[count + 1, 2] = i, k
        count += 2
    return written


@bare_kernel
def best_split(grammar, rules, weights, tables, items, item, x, i, j):
    """Return the best weight of a bare item with annotation x, and how: rule, split point, annotations."""
    best, best_rule, best_k, best_y, best_z = 0.0, -1, -1, -1, -1
    a = items.symbols[item]
    for rule in range(grammar.first_binary[a], grammar.last_binary[a]):
        if x >= rules.sizes[rule, 0]:
            break
        b, c = grammar.rules[rule, 1], grammar.rules[rule, 2]
        first, last = range_of_splits(tables, b, c, i, j)
        n_left, n_right = rules.sizes[rule, 1], rules.sizes[rule, 2]
        for k in range(first, last + 1):
            left, right = items.numbers[b, i, k], items.numbers[c, k, j]
            if left < 0 or right < 0 or not items.flags[left] & CLOSED or not items.flags[right] & CLOSED:
                continue
            at = rules.places[rule] + x * rules.strides[rule]
            for y in range(n_left):
                for z in range(n_right):
                    value = items.closed[left, y] * items.closed[right, z] * weights[at + y * n_right + z]
                    if value > best:
                        best, best_rule, best_k, best_y, best_z = value, rule, k, y, z
    return best, best_rule, best_k, best_y, best_z


@bare_kernel
def best_unary(grammar, rules, weights, items, item, x, i, j):
    """Return the best weight of a closed item with annotation x, the item below its unary rule or −1, and y."""
    best = items.bare[item, x] if items.flags[item] & BARE else 0.0
    below, best_y = -1, x
    for rule in grammar.unary:
        if grammar.rules[rule, 0] != items.symbols[item] or x >= rules.sizes[rule, 0]:
            continue
        child = items.numbers[grammar.rules[rule, 1], i, j]
        if child < 0 or not items.flags[child] & BARE:
            continue
        at = rules.places[rule] + x * rules.strides[rule]
        for y in range(rules.sizes[rule, 1]):
            value = weights[at + y] * items.bare[child, y]
            if value > best:
                best, below, best_y = value, child, y
    return best, below, best_y


@kernel
def fill_best(grammar, rules, weights, words, factors, tables, items):
    """Overwrite the vectors of all items by the weights of their best annotated trees."""
    items.bare[:], items.closed[:] = 0.0, 0.0
    for s in range(items.spans.shape[0] - 1):
        i, j = items.spans[s, 0], items.spans[s, 1]
        for item in range(items.spans[s, 2], items.spans[s + 1, 2]):
            if items.flags[item] & BARE and j == i + 1:
                add_words(grammar, rules, weights, words[i], factors[i], tables.factors[i], items, item)
            elif items.flags[item] & BARE:
                for x in range(items.bare.shape[1]):
                    items.bare[item, x] = best_split(grammar, rules, weights, tables, items, item, x, i, j)[0]
        for item in range(items.spans[s, 2], items.spans[s + 1, 2]):
            if items.flags[item] & CLOSED:
                for x in range(items.bare.shape[1]):
                    items.closed[item, x] = best_unary(grammar, rules, weights, items, item, x, i, j)[0]


@kernel
def best_top(grammar, rules, weights, n, items):
    """Return the item over the sentence with the best annotated tree, −1 for none, and its annotation."""
    top, best, x = -1, 0.0, 0
    for rule in grammar.tops:
        item = items.numbers[grammar.rules[rule, 1], 0, n]
        if item >= 0:
            for y in range(rules.sizes[rule, 1]):
                value = weights[rules.places[rule] + y] * items.closed[item, y]
                if value > best:
                    top, best, x = item, value, y
    return top, x


@kernel
def best_annotated_tree(grammar, rules, weights, words, factors, tables, items, nodes):
    """Write the best annotated tree like `max_rule_tree`, without annotations; return the number of nodes, or 0.

    The items' vectors are overwritten.
    """
    n = words.shape[0]
    fill_best(grammar, rules, weights, words, factors, tables, items)
    top, x = best_top(grammar, rules, weights, n, items)
    if top < 0:
        return 0
    waiting, count, written = np.empty((2 * n + 2, 4), np.int32), 1, 0
    waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = top, 0, n, x
    while count:
        count -= 1
        item, i, j, x = waiting[count, 0], waiting[count, 1], waiting[count, 2], waiting[count, 3]
        _, below, y = best_unary(grammar, rules, weights, items, item, x, i, j)
        if below >= 0:
            nodes[written, 0], nodes[written, 1] = items.symbols[item], ONE
            written += 1
            item, x = below, y
        is_word = j == i + 1
        nodes[written, 0], nodes[written, 1] = items.symbols[item], LEAF if is_word else TWO
        written += 1
        if is_word:
            continue
        _, rule, k, y, z = best_split(grammar, rules, weights, tables, items, item, x, i, j)
        waiting[count, 0], waiting[count, 3] = items.numbers[grammar.rules[rule, 2], k, j], z
        waiting[count, 1], waiting[count, 2] = k, j
        waiting[count + 1, 0], waiting[count + 1, 3] = items.numbers[grammar.rules[rule, 1], i, k], y
        waiting[count + 1, 1], waiting[count + 1, 2] = i, k
        count += 2
    return written
