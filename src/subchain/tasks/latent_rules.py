"""The rules of a grammar with latent annotations as one table for people."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.latent.trees import BINARY, WORD
from subchain.structures.latent.grammar import TreebankGrammar
from subchain.structures.latent.layout import Layout
from subchain.structures.latent.splitting import annotations_of

#: Expected uses from which on a split version of a rule is listed.
LEAST = 1e-3
_FIELDS = [
    ("parent", object), ("annotation", np.int64), ("left", object), ("left_annotation", np.int64), ("right", object),
    ("right_annotation", np.int64), ("probability", float), ("count", float),
]  # fmt: skip


def latent_rule_table(
    grammar: TreebankGrammar, layout: Layout, weights: NDArray[np.float64], counts: NDArray[np.float64]
) -> NDArray[Any]:
    """Return the split versions of all rules that are used, sorted by parent and annotation, then by probability."""
    rule, entries, (x, y, z) = annotations_of(layout)
    used = np.flatnonzero(counts[entries] >= LEAST)
    rule, entries, x, y, z = rule[used], entries[used], x[used], y[used], z[used]
    order = np.lexsort((-weights[entries], x, grammar.rules[rule, 0]))
    rule, entries, x, y, z = rule[order], entries[order], x[order], y[order], z[order]
    symbols, words = np.array(grammar.symbols, dtype=object), np.array(grammar.words, dtype=object)
    found = np.empty(len(rule), dtype=_FIELDS)
    parent, left, right = grammar.rules[rule].T
    arity = grammar.arity[rule]
    are_words, are_binary = arity == WORD, arity == BINARY
    found["parent"], found["annotation"] = symbols[parent], x
    found["left"] = np.where(are_words, words[np.where(are_words, left, 0)], symbols[np.where(are_words, 0, left)])
    found["left_annotation"] = np.where(are_words, -1, y)
    found["right"] = np.where(are_binary, symbols[np.where(are_binary, right, 0)], "")
    found["right_annotation"] = np.where(are_binary, z, -1)
    found["probability"], found["count"] = weights[entries], counts[entries]
    return found
