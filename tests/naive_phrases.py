"""Context-free grammars by enumeration of all trees of a sentence, rules of any length, without charts.

A rule is (left, right): a symbol and a tuple of symbols and tokens; tokens are strings in quotes, such as "'a'" (of
several tokens, if the text has spaces). Cycles of unary rules are followed up to a depth, where what is left is small.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from subchain.data.tree import Tree

Rule = tuple[str, tuple[str, ...]]


class Derived(NamedTuple):
    """A tree, its rules in any order, and its probability."""

    tree: Tree
    rules: tuple[Rule, ...]
    probability: float


def derivations(
    symbol: str, tokens: tuple[str, ...], rules: dict[Rule, float], depth: int, joint: str = " "
) -> Iterator[Derived]:
    """Yield all trees of a symbol over tokens with at most `depth` unary rules above each other."""
    for (left, right), weight in rules.items():
        if left != symbol or weight == 0.0 or len(right) > len(tokens):
            continue
        is_unary = len(right) == 1 and not right[0].startswith("'")
        if is_unary and not depth:
            continue
        for cuts in itertools.combinations(range(1, len(tokens)), len(right) - 1):
            ends = (0, *cuts, len(tokens))
            parts = [tokens[a:b] for a, b in itertools.pairwise(ends)]
            choices = [list(_of(item, part, rules, depth - is_unary, joint, is_unary)) for item, part in
                       zip(right, parts, strict=True)]  # fmt: skip
            for chosen in itertools.product(*choices):
                used = ((left, right), *itertools.chain.from_iterable(one[1] for one in chosen))
                probability = weight * float(np.prod([one[2] for one in chosen]))
                yield Derived(Tree(left, [one[0] for one in chosen]), used, probability)


FULL_DEPTH = 6


def _of(
    item: str, part: tuple[str, ...], rules: dict[Rule, float], depth: int, joint: str, keeps: bool
) -> Iterator[tuple[Any, tuple[Rule, ...], float]]:
    if item.startswith("'"):
        if joint.join(part) == item[1:-1]:
            yield item[1:-1], (), 1.0
        return
    yield from derivations(item, part, rules, depth if keeps else FULL_DEPTH, joint)


class Enumerated(NamedTuple):
    """Likelihood, expected rules, expected symbols at spans, all trees with their posterior, entropy."""

    likelihood: float
    counts: dict[Rule, float]
    spans: dict[tuple[str, int, int], float]
    posterior: dict[Tree, float]
    entropy: float


def crosses(tree: Tree, brackets: list[tuple[int, int]]) -> bool:
    """Return whether a phrase crosses a bracket."""
    return any(a < i < b < j or i < a < j < b for _, i, j in tree.spans() for a, b in brackets)


def enumerate_trees(
    start: str,
    tokens: tuple[str, ...],
    rules: dict[Rule, float],
    brackets: list[tuple[int, int]] | None = None,
    joint: str = " ",
) -> Enumerated:
    """Return everything about one sentence, from all of its trees."""
    found = [one for one in derivations(start, tokens, rules, FULL_DEPTH, joint) if
             not crosses(one.tree, brackets or [])]  # fmt: skip
    total = sum(one.probability for one in found)
    counts: Counter[Rule] = Counter()
    spans: Counter[tuple[str, int, int]] = Counter()
    posterior: Counter[Tree] = Counter()
    for one in found:
        share = one.probability / total
        posterior[one.tree] += share
        for rule in one.rules:
            counts[rule] += share
        for label, i, j in _spans(one.tree, joint):
            spans[label, i, j] += share
    entropy = -sum(p * np.log(p) for p in posterior.values() if p > 0.0)
    return Enumerated(total, dict(counts), dict(spans), dict(posterior), float(entropy))


def _spans(tree: Tree, joint: str) -> list[tuple[str, int, int]]:
    """Return spans in tokens; a leaf may hold several."""
    ends = np.concatenate([[0], np.cumsum([len(leaf.split(" ")) if joint else len(leaf) for leaf in tree.leaves()])])
    return [(label, int(ends[i]), int(ends[j])) for label, i, j in tree.spans()]
