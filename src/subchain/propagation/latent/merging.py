"""How much likelihood a treebank loses if two annotations of a symbol become one (Petrov et al. 2006, section 2.2)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from subchain.propagation.compiled import ordered_kernel


@ordered_kernel
def merge_losses(forest, parents, rows, rules, inside, slopes, frequencies, losses):
    """Add the approximate loss of log likelihood, summed over nodes, of merging annotations 2 k and 2 k + 1.

    Each node is looked at alone: its inside weights are averaged by the frequencies of the two, its outside weights are
    added.

    Parameters
    ----------
    parents, rows : (R,) symbol of each rule's parent, and its row with annotation 0
    frequencies : one for each row
    losses : (S, K / 2)
    """
    for k in range(forest.rules.shape[0]):
        rule = forest.rules[k]
        n, first = rules.sizes[rule, 0], rows[rule]
        total = inside[k, n]
        for pair in range(n // 2):
            x = 2 * pair
            p, q = frequencies[first + x], frequencies[first + x + 1]
            share = p / (p + q) if p + q > 0.0 else 0.5
            one, other = slopes[k, x] * total, slopes[k, x + 1] * total
            before = inside[k, x] * one + inside[k, x + 1] * other
            after = (share * inside[k, x] + (1.0 - share) * inside[k, x + 1]) * (one + other)
            losses[parents[rule], pair] -= np.log(max(1.0 - before + after, 1e-300))
