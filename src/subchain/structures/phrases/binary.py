"""Rules as kernels read them: split into binary, unary and lexical ones, with unary rules in an order that closes them.

A long rule A → B C D becomes A → B (C D) and (C D) → C D; a token among symbols gets a symbol of its own. These symbols
are shared by all rules that end alike, their rules have the weight one, and trees leave them out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from subchain.propagation.phrases.charts import Grammar, Index
from subchain.structures.phrases.rules import RuleSet

FIXED = -1


class _Lists:
    """Rules over the user's symbols and those that splitting makes."""

    def __init__(self, rules: RuleSet) -> None:
        self.n_own = len(rules.symbols)
        self.fixed = rules.n_structural
        self.made: dict[tuple[int, ...], int] = {}
        self.binary: list[tuple[int, int, int, int]] = []
        self.unary: list[tuple[int, int, int]] = []
        self.lexical: list[tuple[int, int, int]] = []
        for number, (left, right) in enumerate(zip(rules.left.tolist(), rules.right, strict=True)):
            if len(right) > 1:
                self.binary.append((left, self.symbol(right[:1]), self.symbol(right[1:]), number))
            elif right[0] >= 0:
                self.unary.append((left, right[0], number))
            else:
                self.lexical.append((-1 - right[0], left, number))

    def symbol(self, right: tuple[int, ...]) -> int:
        """Return the symbol that stands for an end of a right-hand side."""
        if len(right) == 1 and right[0] >= 0:
            return right[0]
        if right not in self.made:
            found = self.made[right] = self.n_own + len(self.made)
            if len(right) == 1:
                self.lexical.append((-1 - right[0], found, FIXED))
            else:
                self.binary.append((found, self.symbol(right[:1]), self.symbol(right[1:]), self.fixed))
        return self.made[right]


def _first(keys: Index, n: int) -> Index:
    """Return where the entries of each key begin in a sorted list, (n + 1,)."""
    return np.searchsorted(keys, np.arange(n + 1)).astype(np.int64)


class Ordered(NamedTuple):
    """Unary rules by component, see `Grammar`, and the largest number of them in a chain without a cycle."""

    unary: Index
    components: Index
    members: Index
    depth: int


def ordered_unary(unary: list[tuple[int, int, int]]) -> Ordered:
    """Return unary rules by components of symbols that derive each other, children first (Tarjan 1972)."""
    children: dict[int, list[tuple[int, int, int]]] = {}
    for rule in unary:
        children.setdefault(rule[0], []).append(rule)
        children.setdefault(rule[1], [])
    components = _components({a: [rule[1] for rule in own] for a, own in children.items()})
    of = {symbol: number for number, members in enumerate(components) for symbol in members}
    rules: list[tuple[int, int, int]] = []
    table: list[tuple[int, ...]] = []
    members: list[int] = []
    depths: list[int] = []
    closing = 0
    for number, own in enumerate(components):
        mine = [rule for symbol in own for rule in children[symbol]]
        out = [rule for rule in mine if of[rule[1]] != number]
        within = [rule for rule in mine if of[rule[1]] == number]
        first = len(rules)
        table.append((first, first + len(out), first + len(mine), len(members), len(members) + len(own), closing))
        closing += len(own) ** 2 if within else 0
        depths.append(len(own) + max((depths[of[rule[1]]] for rule in out), default=0))
        rules += out + within
        members += own
    return Ordered(
        np.array(rules, dtype=np.int64).reshape(-1, 3), np.array(table, dtype=np.int64).reshape(-1, 6),
        np.array(members, dtype=np.int64), max(depths, default=1),
    )  # fmt: skip


def _components(edges: dict[int, list[int]]) -> list[list[int]]:
    """Return the strongly connected components of a graph, what they lead to before them."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    found: list[list[int]] = []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            node, rest = work[-1]
            child = next((c for c in rest if c not in index or c in stack), None)
            if child is not None and child not in index:
                index[child] = low[child] = len(index)
                stack.append(child)
                work.append((child, iter(edges[child])))
            elif child is not None:
                low[node] = min(low[node], index[child])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    found.append(stack[at:])
                    del stack[at:]
    return found


def compiled(rules: RuleSet) -> Grammar:
    """Return rules as kernels read them."""
    lists = _Lists(rules)
    n_symbols = lists.n_own + len(lists.made)
    binary = np.array(sorted(lists.binary), dtype=np.int64).reshape(-1, 4)
    pairs, pair_of = np.unique(binary[:, 1:3], axis=0, return_inverse=True)
    lexical = np.array(sorted(lists.lexical), dtype=np.int64).reshape(-1, 3)
    unary = ordered_unary(lists.unary)
    left, right, weight = (np.ascontiguousarray(binary[:, column]) for column in (1, 2, 3))
    size = rules.connected
    return Grammar(
        n_symbols, lists.n_own, rules.start, rules.n_structural,
        size.n_rows if size else 0, size.n_all if size else 0, size.first_single if size else 0,
        _first(pairs[:, 0], n_symbols), np.ascontiguousarray(pairs[:, 1]), _first(binary[:, 0], n_symbols),
        pair_of.reshape(-1).astype(np.int64),
left, right, weight,
        unary.unary, unary.components, unary.members,
        _first(lexical[:, 0], len(rules.terminals)), np.ascontiguousarray(lexical[:, 1]),
        np.ascontiguousarray(lexical[:, 2]),
    )  # fmt: skip
