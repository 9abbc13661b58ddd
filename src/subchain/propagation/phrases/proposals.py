"""Sweeps of a Metropolis-Hastings sampler over the trees of sentences (Johnson, Griffiths & Goldwater 2007).

The tree of a sentence is proposed from the posterior predictive rule weights of all other trees, and accepted with the
probability that corrects for what these weights do not see: a rule that is used twice in a tree is likelier the second
time. Parameters are summed out, so draws are from the posterior of trees itself.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from subchain.numerics.random import stream, uniform
from subchain.propagation.compiled import kernel, ordered_kernel
from subchain.propagation.phrases.charts import make_room
from subchain.propagation.phrases.expanding import expand_drawn
from subchain.propagation.phrases.inside_outside import fill_charts
from subchain.propagation.phrases.passes import predict


@kernel
def weight_of_rule(grammar, rule):
    """Return the place of the weight of a rule of a tree, −1 if its weight is fixed; see `expanding`."""
    n_binary, n_unary = grammar.binary_pair.shape[0], grammar.unary.shape[0]
    if rule < n_binary:
        found = grammar.binary_weight[rule]
    elif rule < n_binary + n_unary:
        found = grammar.unary[rule - n_binary, 2]
    else:
        return grammar.lexical_weight[rule - n_binary - n_unary]
    return found if found < grammar.n_structural else -1


@kernel
def count_tree(grammar, tree, sign, counts, rows, totals):
    """Add `sign` times the rules of a tree to counts."""
    for at in range(tree[0]):
        weight = weight_of_rule(grammar, tree[1 + at])
        if weight >= 0:
            counts[weight] += sign
            totals[rows[weight]] += sign


@ordered_kernel
def log_correction(grammar, tree, counts, rows, totals):
    """Return the log probability of a tree given all others minus its log probability under fixed predictive weights.

    Counts are those of all other trees and of the prior, and are so again afterwards.
    """
    found = 0.0
    for at in range(tree[0]):
        weight = weight_of_rule(grammar, tree[1 + at])
        if weight >= 0:
            found -= np.log(counts[weight] / totals[rows[weight]])
    for at in range(tree[0]):
        weight = weight_of_rule(grammar, tree[1 + at])
        if weight >= 0:
            found += np.log(counts[weight] / totals[rows[weight]])
            counts[weight] += 1.0
            totals[rows[weight]] += 1.0
    count_tree(grammar, tree, -1.0, counts, rows, totals)
    return found


@kernel
def propose_phrases(grammar, text, counts, rooms, trees, key, longest, most):
    """Draw the tree of every sentence once given all others; return the share of proposals that were accepted.

    `rooms` (N + 1,) are where the trees of sentences begin in `trees`, each as its number of rules and these rules. A
    proposal whose rules have no room is rejected: trees with more rules than that are no part of the model.
    """
    room, inverse = make_room(grammar, longest, most), np.empty(counts.totals.shape[0])
    largest = 0
    for sentence in range(rooms.shape[0] - 1):
        largest = max(largest, rooms[sentence + 1] - rooms[sentence])
    proposal = np.empty(largest, dtype=trees.dtype)
    accepted, proposed = 0, 0
    for sentence in range(rooms.shape[0] - 1):
        n = text.tokens[sentence + 1] - text.tokens[sentence]
        if n == 0:
            continue
        old, new = trees[rooms[sentence] : rooms[sentence + 1]], proposal[: rooms[sentence + 1] - rooms[sentence]]
        numbers = stream(key, sentence)
        count_tree(grammar, old, -1.0, counts.rules, counts.rows, counts.totals)
        predict(grammar, text, sentence, counts, inverse, room)
        is_log = fill_charts(grammar, text, sentence, room, n)[2]
        new[0] = expand_drawn(grammar, text, sentence, room, n, is_log, numbers, new[1:])
        proposed += 1
        if new[0] >= 0:
            ratio = log_correction(grammar, new, counts.rules, counts.rows, counts.totals)
            ratio -= log_correction(grammar, old, counts.rules, counts.rows, counts.totals)
            if np.log(uniform(numbers, largest)) < ratio:
                old[:] = 0
                old[: new[0] + 1] = new[: new[0] + 1]
                accepted += 1
        count_tree(grammar, old, 1.0, counts.rules, counts.rows, counts.totals)
    return accepted / max(proposed, 1)
