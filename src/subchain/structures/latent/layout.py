"""Where the weights of annotated rules are: the rows of all annotated symbols, one after the other.

A row belongs to one annotation of one symbol and holds, for every rule of the symbol, all annotations of its children.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.latent.trees import BINARY, UNARY, AnnotatedRules
from subchain.structures.latent.grammar import TreebankGrammar

Index = NDArray[np.int64]


class Layout(NamedTuple):
    """The layout for given numbers of annotations.

    Attributes
    ----------
    sizes : (n_symbols,) annotations of each symbol
    rules : the tables of the rules
    widths : entries of each row, one row for every annotation of every symbol
    rows : (R,) row of each rule's parent with annotation 0
    """

    sizes: Index
    rules: AnnotatedRules
    widths: Index
    rows: Index

    @property
    def n_entries(self) -> int:
        return int(self.widths.sum())


def layout_of(grammar: TreebankGrammar, sizes: Index) -> Layout:
    """Return the layout of a grammar whose symbols have so many annotations."""
    parents, lefts, rights = grammar.rules.T.astype(np.int64)
    shapes = np.ones((len(parents), 3), dtype=np.int32)
    shapes[:, 0] = sizes[parents]
    shapes[grammar.arity >= UNARY, 1] = sizes[lefts[grammar.arity >= UNARY]]
    shapes[grammar.arity == BINARY, 2] = sizes[rights[grammar.arity == BINARY]]
    entries = shapes[:, 1].astype(np.int64) * shapes[:, 2]
    of_symbol = np.bincount(parents, entries, len(sizes)).astype(np.int64)
    first_rule = np.searchsorted(parents, np.arange(len(sizes)))
    before = np.cumsum(entries) - entries
    first_entry = np.cumsum(of_symbol * sizes) - of_symbol * sizes
    within = before - before[np.minimum(first_rule, len(parents) - 1)][parents]
    first_row = np.cumsum(sizes) - sizes
    rules = AnnotatedRules(grammar.arity, shapes, first_entry[parents] + within, of_symbol[parents])
    return Layout(sizes, rules, np.repeat(of_symbol, sizes), first_row[parents])


def entries_of(layout: Layout) -> Index:
    """Return the entry of every split version of every rule, rules in order, over parent, left and right annotation."""
    rules = layout.rules
    n, widths = rules.sizes[:, 0].astype(np.int64), rules.sizes[:, 1].astype(np.int64) * rules.sizes[:, 2]
    rows = np.repeat(np.arange(len(n)), n)
    x = np.arange(len(rows)) - np.repeat(np.cumsum(n) - n, n)
    at = rules.places[rows] + x * rules.strides[rows]
    starts = np.cumsum(widths[rows]) - widths[rows]
    return np.repeat(at - starts, widths[rows]) + np.arange(int(widths[rows].sum()))
