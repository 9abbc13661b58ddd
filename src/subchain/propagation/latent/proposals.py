"""Sweeps of a Metropolis-Hastings sampler over the annotations of given trees (Johnson, Griffiths & Goldwater 2007).

The annotations of a tree are proposed from the posterior predictive rule weights of all other trees, and accepted with
the probability that corrects for rules which the tree uses more than once. Parameters are summed out.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from subchain.numerics.random import stream, uniform
from subchain.propagation.compiled import kernel, ordered_kernel
from subchain.propagation.latent.passes import draw_tree, entry_of
from subchain.propagation.latent.trees import fill_inside
from subchain.propagation.latent.visits import make_local, predict_rules


@ordered_kernel
def count_annotations(ids, backs, rules, rows, annotations, sign, counts, totals):
    """Add `sign` times the rules of one tree to counts, one rule after the other; return its log probability.

    Each rule has the probability under the counts as they are when it is added, so `sign` = 0 gives that under fixed
    weights, and `sign` = 1 that of the tree given all others.
    """
    found = 0.0
    for k in range(ids.shape[0]):
        at, row = entry_of(backs, rules, annotations, k, ids[k]), rows[ids[k]] + annotations[k]
        found += np.log(counts[at] / totals[row])
        counts[at] += sign
        totals[row] += sign
    return found


@ordered_kernel
def log_correction(ids, backs, rules, rows, annotations, counts, totals):
    """Return the log probability of a tree given all others minus its log probability under fixed predictive weights.

    Counts are those of all other trees and of the prior, and are so again afterwards.
    """
    fixed = count_annotations(ids, backs, rules, rows, annotations, 0.0, counts, totals)
    found = count_annotations(ids, backs, rules, rows, annotations, 1.0, counts, totals)
    count_annotations(ids, backs, rules, rows, annotations, -1.0, counts, totals)
    return found - fixed


@kernel
def propose_annotations(forest, rules, rows, groups, counts, totals, least, annotations, key):
    """Draw the annotations of every tree once given all others; return the share of proposals that were accepted.

    Parameters
    ----------
    groups : single trees, and the rules that occur in each; see `visits.Groups`
    counts, totals : of entries and rows, with those of all trees and of the prior, whose concentration is `least`
    annotations : (N,) of all nodes
    key : (2,) of random numbers; every tree has a stream of its own
    """
    n_trees, n_nodes = forest.starts.shape[0] - 1, 0
    for tree in range(n_trees):
        n_nodes = max(n_nodes, forest.starts[tree + 1] - forest.starts[tree])
    inside, uniforms = np.empty((n_nodes, rules.sizes.max() + 1)), np.empty(n_nodes)
    proposal = np.empty(n_nodes, np.int64)
    local, weights, _ = make_local(groups, np.arange(n_trees))
    accepted = 0
    for tree in range(n_trees):
        start, stop = forest.starts[tree], forest.starts[tree + 1]
        ids, backs, old, new = forest.rules[start:stop], forest.backs[start:stop], annotations[start:stop], proposal
        numbers = stream(key, tree)
        for at in range(stop - start):
            uniforms[at] = uniform(numbers, at)
        count_annotations(ids, backs, rules, rows, old, -1.0, counts, totals)
        predict_rules(rules, rows, groups, tree, counts, totals, least, local, weights)
        own = groups.local[start:stop]
        fill_inside(own, backs, local, weights, inside)
        draw_tree(own, backs, local, weights, inside, uniforms, new)
        ratio = log_correction(ids, backs, rules, rows, new, counts, totals)
        ratio -= log_correction(ids, backs, rules, rows, old, counts, totals)
        if np.log(uniform(numbers, stop - start)) < ratio:
            old[:] = new[: stop - start]
            accepted += 1
        count_annotations(ids, backs, rules, rows, old, 1.0, counts, totals)
    return accepted / max(n_trees, 1)
