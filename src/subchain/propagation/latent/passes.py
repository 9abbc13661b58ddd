"""Passes over many trees, on threads that claim trees, and then rules whose counts are added up.

Nodes that use the same rule have the same table of weights, so a rule's expected counts are its weights times the sum
of slope ⊗ left ⊗ right over these nodes: no thread has counts of its own, and the sums have a fixed order.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from subchain.numerics.claiming import claim
from subchain.propagation.compiled import bare_kernel, kernel, ordered_kernel, ordered_part
from subchain.propagation.latent.trees import BINARY, UNARY, WORD, add_uses, fill_inside, fill_outside

#: Trees and rules that a thread claims at a time.
CLAIMED = 16


@kernel
def run_forest(forest, rules, weights, inside, slopes, logs, counter):
    """Write inside vectors, slopes and log likelihoods of trees; no slopes if there is no room, (0, H)."""
    n_trees = logs.shape[0]
    while True:
        first = claim(counter) * CLAIMED
        if first >= n_trees:
            return
        for tree in range(first, min(first + CLAIMED, n_trees)):
            start, stop = forest.starts[tree], forest.starts[tree + 1]
            ids, backs, own = forest.rules[start:stop], forest.backs[start:stop], inside[start:stop]
            logs[tree] = fill_inside(ids, backs, rules, weights, own)
            if not slopes.shape[0]:
                continue
            if logs[tree] == -np.inf:
                slopes[start:stop] = 0.0
                own[:] = 0.0
            else:
                fill_outside(ids, backs, rules, weights, own, slopes[start:stop])


@bare_kernel
def add_nodes(forest, order, first, last, rules, rule, inside, slopes, table):
    """Add slope ⊗ left ⊗ right of all nodes that use one rule to a table; threads count no references here."""
    width = rules.sizes[rule, 1] * rules.sizes[rule, 2]
    for at in range(first, last):
        k = order[at]
        add_uses(rules, rule, inside[k - 1], inside[k - forest.backs[k]], slopes[k], table, 0, width)


@kernel
def count_rules(forest, order, bounds, rules, weights, inside, slopes, counts, counter):
    """Add expected counts to a flat array like `weights`.

    Parameters
    ----------
    order : (N,) nodes sorted by their rules
    bounds : (number of different rules + 1,) where the nodes of each begin in `order`
    """
    table, n_rules = np.empty(max(int(rules.sizes.max()), 1) ** 3), bounds.shape[0] - 1
    while True:
        first = claim(counter) * CLAIMED
        if first >= n_rules:
            return
        for number in range(first, min(first + CLAIMED, n_rules)):
            rule = forest.rules[order[bounds[number]]]
            n, width = rules.sizes[rule, 0], rules.sizes[rule, 1] * rules.sizes[rule, 2]
            table[: n * width] = 0.0
            add_nodes(forest, order, bounds[number], bounds[number + 1], rules, rule, inside, slopes, table)
            for x in range(n):
                at = rules.places[rule] + x * rules.strides[rule]
                for y in range(width):
                    counts[at + y] += weights[at + y] * table[x * width + y]


@ordered_part
def entry_of(backs, rules, annotations, k, rule):
    """Return the place of the weight of a node's rule, given the annotations of the nodes of its tree."""
    arity, at = rules.arity[rule], rules.places[rule] + annotations[k] * rules.strides[rule]
    if arity == WORD:
        return at
    if arity == UNARY:
        return at + annotations[k - 1]
    return at + annotations[k - 1] * rules.sizes[rule, 2] + annotations[k - backs[k]]


@ordered_kernel
def draw_tree(ids, backs, rules, weights, inside, uniforms, annotations):
    """Draw the annotation of every node of one tree from the root down, given its inside vectors.

    `uniforms` (n,) are random numbers, one for the children of each node.
    """
    annotations[ids.shape[0] - 1] = 0
    for k in range(ids.shape[0] - 1, -1, -1):
        rule = ids[k]
        arity, at = rules.arity[rule], rules.places[rule] + annotations[k] * rules.strides[rule]
        if arity == WORD:
            continue
        n_left, n_right = rules.sizes[rule, 1], rules.sizes[rule, 2]
        left, right, total = inside[k - 1], inside[k - backs[k]], 0.0
        for e in range(n_left * n_right):
            value = weights[at + e] * left[e // n_right]
            total += value * right[e % n_right] if arity == BINARY else value
        left_over, chosen = uniforms[k] * total, 0
        for e in range(n_left * n_right):
            value = weights[at + e] * left[e // n_right]
            value *= right[e % n_right] if arity == BINARY else 1.0
            if value > 0.0:
                chosen = e
                left_over -= value
                if left_over < 0.0:
                    break
        if arity == UNARY:
            annotations[k - 1] = chosen
        else:
            annotations[k - 1] = chosen // n_right
            annotations[k - backs[k]] = chosen % n_right


@kernel
def draw_annotations(forest, rules, weights, inside, uniforms, annotations):
    """Draw the annotations of all trees, (N,), given the inside vectors of their nodes; see `draw_tree`."""
    for tree in range(forest.starts.shape[0] - 1):
        start, stop = forest.starts[tree], forest.starts[tree + 1]
        draw_tree(
            forest.rules[start:stop], forest.backs[start:stop], rules, weights, inside[start:stop],
            uniforms[start:stop], annotations[start:stop],
        )  # fmt: skip


@kernel
def count_drawn(forest, rules, annotations, counts):
    """Add the rules of trees with given annotations to counts."""
    for tree in range(forest.starts.shape[0] - 1):
        start, stop = forest.starts[tree], forest.starts[tree + 1]
        for k in range(stop - start):
            rule = forest.rules[start + k]
            counts[entry_of(forest.backs[start:stop], rules, annotations[start:stop], k, rule)] += 1.0
