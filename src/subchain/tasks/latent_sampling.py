"""Trees that a grammar with latent annotations generates."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from subchain.data.tree import Tree
from subchain.data.treebank import Chains, restored
from subchain.errors import InputError
from subchain.propagation.latent.trees import BINARY, UNARY, WORD
from subchain.structures.latent.grammar import TreebankGrammar
from subchain.structures.latent.layout import Layout

Array = NDArray[np.float64]

#: Trees that are drawn for each one that is wanted, before the length is called too small.
MOST_TRIES = 10_000


def sample_trees(
    grammar: TreebankGrammar, layout: Layout, weights: Array, chains: Chains, n: int, max_length: int,
    rng: np.random.Generator,
) -> list[Tree]:  # fmt: skip
    """Return n trees of at most `max_length` words; others are drawn again."""
    for name, value in (("n_trees", n), ("max_length", max_length)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise InputError(f"{name} must be a whole number of at least 1, not {value!r}.")
    found: list[Tree] = []
    source = _Source(grammar, layout, weights)
    for _ in range(n * MOST_TRIES):
        if len(found) == n:
            break
        tree = source.tree(max_length, rng)
        if tree is not None:
            found.append(restored(tree, chains))
    if len(found) < n:
        raise InputError(
            f"{n * MOST_TRIES:,} draws gave only {len(found)} trees of at most {max_length} words without chains "
            "of unary nodes; set a larger max_length."
        )
    return found


class _Source:
    """Draws rules of annotated symbols."""

    def __init__(self, grammar: TreebankGrammar, layout: Layout, weights: Array) -> None:
        self.grammar, self.layout = grammar, layout
        ends = np.cumsum(layout.widths)
        self.row_of = np.cumsum(layout.sizes) - layout.sizes
        self.first = np.searchsorted(grammar.rules[:, 0], np.arange(grammar.n_symbols + 1))
        self.cumulated = lru_cache(maxsize=4096)(
            lambda row: np.cumsum(weights[ends[row] - layout.widths[row] : ends[row]])
        )
        widths = layout.rules.sizes[:, 1].astype(np.int64) * layout.rules.sizes[:, 2]
        self.ends_of_rules = np.cumsum(widths)

    def rule(self, symbol: int, annotation: int, rng: np.random.Generator) -> tuple[int, int, int]:
        """Draw a rule of an annotated symbol; return it with the annotations of its children."""
        shares = self.cumulated(int(self.row_of[symbol]) + annotation)
        entry = min(int(np.searchsorted(shares, rng.random() * shares[-1], side="right")), len(shares) - 1)
        first, last = self.first[symbol], self.first[symbol + 1]
        before = self.ends_of_rules[first - 1] if first else 0
        rule = int(first + np.searchsorted(self.ends_of_rules[first:last] - before, entry, side="right"))
        within = entry - int(self.ends_of_rules[rule - 1] - before if rule > first else 0)
        n_right = int(self.layout.rules.sizes[rule, 2])
        return rule, within // n_right, within % n_right

    def tree(self, max_length: int, rng: np.random.Generator) -> Tree | None:
        """Draw a tree; None if it has more words than wanted, or a chain of unary nodes, of which parsers know none."""
        waiting, drawn, n_words = [(0, 0, False)], list[int](), 0
        while waiting:
            symbol, annotation, is_below = waiting.pop()
            rule, y, z = self.rule(symbol, annotation, rng)
            drawn.append(rule)
            arity = int(self.grammar.arity[rule])
            is_unary = arity == UNARY and len(drawn) > 1  # the root is on top of any node
            if arity == WORD:
                n_words += 1
            else:
                if arity == BINARY:
                    waiting.append((int(self.grammar.rules[rule, 2]), z, False))
                waiting.append((int(self.grammar.rules[rule, 1]), y, is_unary))
            if n_words + len(waiting) > max_length or (is_unary and is_below):
                return None
        stack: list[Tree] = []
        for rule in reversed(drawn):
            parent, left, _ = self.grammar.rules[rule].tolist()
            arity = int(self.grammar.arity[rule])
            children = (self.grammar.words[left],) if arity == WORD else tuple(stack.pop() for _ in range(arity))
            stack.append(Tree(self.grammar.symbols[parent], children))
        return stack[0]
