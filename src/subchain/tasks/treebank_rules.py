"""The rules of a treebank, and how often each is used in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from subchain.data.tree import Tree
from subchain.errors import InputError
from subchain.structures.phrases.rules import RuleSet, Tokens

#: The start above trees that have different labels at the top.
ROOT = "ROOT"


def treebank_rules(trees: Sequence[Tree], joint: str) -> tuple[RuleSet, NDArray[np.float64]]:
    """Return the rules that occur in trees, and their counts."""
    if not trees:
        raise InputError("there are no trees to count rules in.")
    wrong = next((tree for tree in trees if not isinstance(tree, Tree)), None)
    if wrong is not None:
        raise InputError(f"trees must be of the class subchain.data.Tree, not {type(wrong).__name__}.")
    counts: Counter[tuple[str, tuple[Tree | str, ...]]] = Counter()
    for number, tree in enumerate(trees):
        for node in tree.subtrees():
            if not node.children:
                raise InputError(f"{node.label} of tree {number} has no children; remove empty phrases first.")
            counts[node.label, tuple(_item(child) for child in node.children)] += 1
    tops = Counter(tree.label for tree in trees)
    root = next(iter(tops))
    if len(tops) > 1:
        root = ROOT
        for label, count in tops.items():
            counts[root, (Tree(label, ()),)] += count
    return _coded(counts, root, joint)


def _item(child: Tree | str) -> Tree | str:
    """Return what a rule says of a child: its label, or the token."""
    return Tree(child.label, ()) if isinstance(child, Tree) else child


def _coded(
    counts: Counter[tuple[str, tuple[Tree | str, ...]]], root: str, joint: str
) -> tuple[RuleSet, NDArray[np.float64]]:
    symbols = list(dict.fromkeys([root, *(left for left, _ in counts)]))
    codes = {symbol: code for code, symbol in enumerate(symbols)}
    tokens: dict[str, int] = {}
    coded = [
        (
            codes[left],
            tuple(
                codes[item.label] if isinstance(item, Tree) else -1 - tokens.setdefault(item, len(tokens))
                for item in right
            ),
            count,
        )
        for (left, right), count in counts.items()
    ]
    coded.sort(key=lambda rule: len(rule[1]) == 1 and rule[1][0] < 0)  # structural rules first
    n_structural = sum(len(right) > 1 or right[0] >= 0 for _, right, _ in coded)
    left = np.array([rule[0] for rule in coded], dtype=np.int64)
    terminals: list[Tokens] = [(token,) for token in tokens]
    rules = RuleSet(symbols, 0, terminals, left, [rule[1] for rule in coded], n_structural, joint)
    return rules, np.array([rule[2] for rule in coded], dtype=np.float64)
