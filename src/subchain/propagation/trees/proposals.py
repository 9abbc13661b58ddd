"""Sweeps of a Metropolis-Hastings sampler over dependency trees (Johnson, Griffiths & Goldwater 2007).

The tree of a sentence is proposed from the posterior predictive rule weights of all other trees, and accepted with the
probability that corrects for what these weights do not see: a rule that is used twice in a tree is likelier the second
time. Parameters are summed out, so draws are from the posterior of trees itself.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from subchain.numerics.random import stream, uniform
from subchain.propagation.compiled import kernel, ordered_kernel
from subchain.propagation.trees.charts import GO_ON, LEFT, STOP, make_room, predict
from subchain.propagation.trees.expanding import expand_tree
from subchain.propagation.trees.inside_outside import fill_charts


@ordered_kernel
def decide(table, row, outcome, sign):
    """Add `sign` to the count of stopping or going on; return the log probability that it had before."""
    found = np.log(table[row, outcome] / (table[row, STOP] + table[row, GO_ON]))
    table[row, outcome] += sign
    return found


@ordered_kernel
def count_heads(tags, heads, sign, counts, totals):
    """Add `sign` times the rules of a tree to counts, one rule after the other; return its log probability.

    Each rule has the probability under the counts as they are when it is added, so `sign` = 0 gives that under fixed
    weights, and `sign` = 1 that of the tree given all others. The root, which is used once, is left out.
    """
    found = 0.0
    for h in range(tags.shape[0]):
        if heads[h] < 0:
            counts.root[0, tags[h]] += sign
        for side in range(2):
            row, has_dependent = 2 * np.int64(tags[h]) + side, 0
            for d in range(0 if side == LEFT else h + 1, h if side == LEFT else tags.shape[0]):
                if heads[d] == h:
                    found += decide(counts.stop, 2 * row + has_dependent, GO_ON, sign)
                    found += np.log(counts.attach[row, tags[d]] / totals[row])
                    counts.attach[row, tags[d]] += sign
                    totals[row] += sign
                    has_dependent = 1
            found += decide(counts.stop, 2 * row + has_dependent, STOP, sign)
    return found


@ordered_kernel
def log_correction(tags, heads, counts, totals):
    """Return the log probability of a tree given all others minus its log probability under fixed predictive weights.

    Counts are those of all other trees and of the prior, and are so again afterwards.
    """
    fixed = count_heads(tags, heads, 0.0, counts, totals)
    found = count_heads(tags, heads, 1.0, counts, totals)
    count_heads(tags, heads, -1.0, counts, totals)
    return found - fixed


@kernel
def count_rules(tags, heads, counts):
    """Add the rules of the trees of all sentences to counts."""
    totals = np.ones(counts.attach.shape[0])
    for sentence in range(tags.starts.shape[0] - 1):
        first, last = tags.starts[sentence], tags.starts[sentence + 1]
        count_heads(tags.codes[first:last], heads[first:last], 1.0, counts, totals)


@kernel
def propose_trees(tags, counts, totals, floors, heads, key, longest):
    """Draw the tree of every sentence once given all others; return the share of proposals that were accepted.

    Parameters
    ----------
    counts, totals, floors : see `charts.predict`; counts hold the trees of all sentences, and those of the prior
    heads : (N,) of all words, within their sentence, −1 for roots
    key : (2,) of random numbers; every sentence has a stream of its own
    longest : words of the longest sentence
    """
    room, uniforms, proposal = make_room(longest), np.empty(2 * longest), np.empty(longest, np.int64)
    accepted, proposed = 0, 0
    for sentence in range(tags.starts.shape[0] - 1):
        first, last = tags.starts[sentence], tags.starts[sentence + 1]
        n = last - first
        if n == 0:
            continue
        codes, old, new, numbers = tags.codes[first:last], heads[first:last], proposal[:n], stream(key, sentence)
        for at in range(2 * n):
            uniforms[at] = uniform(numbers, at)
        count_heads(codes, old, -1.0, counts, totals)
        predict(codes, counts, totals, floors, room)
        is_log = fill_charts(room, n)[2]
        expand_tree(room, n, is_log, uniforms, new)
        proposed += 1
        ratio = log_correction(codes, new, counts, totals) - log_correction(codes, old, counts, totals)
        if np.log(uniform(numbers, 2 * n)) < ratio:
            old[:] = new
            accepted += 1
        count_heads(codes, old, 1.0, counts, totals)
    return accepted / max(proposed, 1)
