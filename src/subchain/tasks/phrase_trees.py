"""Trees of phrases from the lists of rules that kernels write, with the rules of any length that the user has."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from subchain.data.tree import Tree
from subchain.errors import unknown_name
from subchain.propagation.phrases.charts import Grammar
from subchain.propagation.phrases.passes import BEST, RULES, SPANS
from subchain.structures.phrases.rules import RuleSet
from subchain.structures.phrases.structure import PhraseTrees

Array = NDArray[np.float64]
Index = NDArray[np.int64]

METHODS = {"viterbi": BEST, "max-rule": RULES, "mbr": SPANS}


class TreeBuilder:
    """Makes trees of lists of rules, see `propagation.phrases.expanding`."""

    def __init__(self, grammar: Grammar, rules: RuleSet) -> None:
        self.rules = rules
        self.n_binary, n_unary = len(grammar.binary_pair), len(grammar.unary)
        counts = np.diff(grammar.binary_first)
        binary = np.repeat(np.arange(grammar.n_symbols), counts)
        self.left = np.concatenate([binary, grammar.unary[:, 0], grammar.lexical_symbol]).tolist()
        self.terminal = np.repeat(np.arange(len(rules.terminals)), np.diff(grammar.lexical_first)).tolist()
        self.n_structural = self.n_binary + n_unary

    def tree(self, rules: Iterable[int]) -> Tree | None:
        """Return the tree of a list of rules; None for an empty list."""
        done: list[tuple[Tree | str, ...]] = []  # what stands for the symbols that are complete, the last one first
        n_own = len(self.rules.symbols)
        for rule in reversed(list(rules)):
            if rule < self.n_binary:
                children = done.pop() + done.pop()
            elif rule < self.n_structural:
                children = done.pop()
            else:
                children = (self.rules.written(self.terminal[rule - self.n_structural]),)
            left = self.left[rule]
            done.append((Tree(self.rules.symbols[left], children),) if left < n_own else children)
        if not done:
            return None
        found = done[0][0]
        assert isinstance(found, Tree)
        return found


def parsed(structure: PhraseTrees, weights: Array, method: str) -> tuple[list[Tree | None], list[int]]:
    """Return a tree for every sentence, None where the grammar cannot derive it, and the numbers of these."""
    if method not in METHODS:
        raise unknown_name("method of parsing", method, METHODS)
    found = structure.run(METHODS[method], weights, np.arange(structure.n_clusters))
    builder = TreeBuilder(structure.grammar, structure.rules)
    assert found.trees is not None
    trees = [builder.tree(rules.tolist()) for rules in found.trees]
    return trees, np.flatnonzero(np.isneginf(found.logs)).tolist()
