"""Collapsed visits of trees: out of the counts, posterior predictive weights, inside-outside, back into the counts.

A *group* of trees is visited at once. Its share of the counts is kept as one table for every rule that occurs in it, in
single precision; the counts get exactly what is kept. Only the weights of these rules are worked out for a visit.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.compiled import bare_kernel, kernel
from subchain.propagation.latent.trees import AnnotatedRules, add_uses, fill_inside, fill_outside


class Groups(NamedTuple):
    """Groups of trees, and the rules that occur in each.

    Attributes
    ----------
    trees : (G + 1,) first tree of each group
    rules : (G + 1,) first of each group's rules among `used`
    used : (U,) the rules of all groups, each once in a group
    places : (U + 1,) where the table of each begins among the shares
    local : (N,) rule of each node, counted among those of its group
    """

    trees: NDArray[np.int64]
    rules: NDArray[np.int64]
    used: NDArray[np.int32]
    places: NDArray[np.int64]
    local: NDArray[np.int32]


@bare_kernel
def add_table(rules, rows, rule, share, sign, counts, totals):
    """Add `sign` times the table of one rule to the counts, and to the totals of its rows."""
    width = rules.sizes[rule, 1] * rules.sizes[rule, 2]
    for x in range(rules.sizes[rule, 0]):
        at, total = rules.places[rule] + x * rules.strides[rule], 0.0
        for y in range(width):
            value = np.float64(share[x * width + y])
            counts[at + y] += sign * value
            total += value
        totals[rows[rule] + x] += sign * total


@kernel
def add_groups(rules, rows, groups, chosen, shares, sign, counts, totals):
    """Add `sign` times the shares of some groups to counts."""
    for g in chosen:
        for u in range(groups.rules[g], groups.rules[g + 1]):
            share = shares[groups.places[u] : groups.places[u + 1]]
            add_table(rules, rows, groups.used[u], share, sign, counts, totals)


@bare_kernel
def predict_table(rules, rows, rule, counts, totals, least, out):
    """Write the predictive weights of one rule from counts that hold those of the prior.

    `least` is the concentration of an entry of the rule's rows: taking shares out of counts must leave that much.
    """
    width = rules.sizes[rule, 1] * rules.sizes[rule, 2]
    for x in range(rules.sizes[rule, 0]):
        at = rules.places[rule] + x * rules.strides[rule]
        scale = 1.0 / max(totals[rows[rule] + x], least * rules.strides[rule])
        for y in range(width):
            out[x * width + y] = max(counts[at + y], least) * scale


@kernel
def make_local(groups, chosen):
    """Return room for the rules, weights and expected uses of the largest of some groups."""
    n_used, n_entries = 0, 0
    for g in chosen:
        n_used = max(n_used, groups.rules[g + 1] - groups.rules[g])
        n_entries = max(n_entries, groups.places[groups.rules[g + 1]] - groups.places[groups.rules[g]])
    local = AnnotatedRules(
        np.empty(n_used, np.int8), np.empty((n_used, 3), np.int32), np.empty(n_used, np.int64),
        np.empty(n_used, np.int64),
    )  # fmt: skip
    return local, np.empty(n_entries), np.empty(n_entries)


@kernel
def predict_rules(rules, rows, groups, g, counts, totals, least, local, weights):
    """Write the rules that occur in a group, and their predictive weights; see `predict_table`."""
    first, last = groups.rules[g], groups.rules[g + 1]
    for u in range(first, last):
        rule, at = groups.used[u], groups.places[u] - groups.places[first]
        local.arity[u - first] = rules.arity[rule]
        local.sizes[u - first] = rules.sizes[rule]
        local.places[u - first] = at
        local.strides[u - first] = rules.sizes[rule, 1] * rules.sizes[rule, 2]
        predict_table(rules, rows, rule, counts, totals, least, weights[at:])


@bare_kernel
def run_group(forest, groups, g, local, weights, inside, slopes, table):
    """Do inside-outside for the trees of a group; return the log likelihood, with uses added to `table`."""
    found = 0.0
    for tree in range(groups.trees[g], groups.trees[g + 1]):
        start, stop = forest.starts[tree], forest.starts[tree + 1]
        ids, backs = groups.local[start:stop], forest.backs[start:stop]
        found += fill_inside(ids, backs, local, weights, inside)
        fill_outside(ids, backs, local, weights, inside, slopes)
        for k in range(stop - start):
            rule = ids[k]
            left, right = inside[k - 1], inside[k - backs[k]]
            add_uses(local, rule, left, right, slopes[k], table, local.places[rule], local.strides[rule])
    return found


@kernel
def visit_groups(forest, rules, rows, groups, chosen, counts, totals, least, shares, excludes, puts_back, measures):
    """Update groups of trees one after the other under the counts, without their own shares if `excludes`.

    Counts and totals hold those of the prior, whose concentration is `least`. New shares take the place of the old ones
    in the counts if `puts_back`. Return the sums of log normalisers and, if it `measures`, of entropies.
    """
    h, n_nodes = rules.sizes.max() + 1, 0
    for g in chosen:
        for tree in range(groups.trees[g], groups.trees[g + 1]):
            n_nodes = max(n_nodes, forest.starts[tree + 1] - forest.starts[tree])
    inside, slopes = np.empty((n_nodes, h)), np.empty((n_nodes, h))
    local, weights, table = make_local(groups, chosen)
    found, entropy = 0.0, 0.0
    one = np.empty(1, np.int64)
    for g in chosen:
        one[0] = g
        place, stop = groups.places[groups.rules[g]], groups.places[groups.rules[g + 1]]
        if excludes:
            add_groups(rules, rows, groups, one, shares, -1.0, counts, totals)
        predict_rules(rules, rows, groups, g, counts, totals, least, local, weights)
        if excludes != puts_back:
            add_groups(rules, rows, groups, one, shares, 1.0 if excludes else -1.0, counts, totals)
        table[: stop - place] = 0.0
        log_normalizer = run_group(forest, groups, g, local, weights, inside, slopes, table)
        found += log_normalizer
        entropy += log_normalizer
        for e in range(stop - place):
            value = weights[e] * table[e]
            shares[place + e] = value
            if measures and value > 0.0:
                entropy -= value * np.log(weights[e])
        if puts_back:
            add_groups(rules, rows, groups, one, shares, 1.0, counts, totals)
    return found, entropy
