"""A grammar as kernels read it, and the charts of one sentence.

Rules are binary, unary or lexical; longer ones have been split (`structures/phrases/binary.py`). A *pair* is the
right-hand side of binary rules: what two neighbouring spans can be is summed over split points once for each pair, and
then multiplied by the weights of all rules with this pair. A lexical rule may emit several tokens at once, so a
sentence is given by *edges*: spans of tokens that a terminal stands for. An *entry* is an edge with one lexical rule.

Charts have a row of symbols for each span of fence posts i < j, at row i (n + 1) + j.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.compiled import kernel, small_kernel

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Short = NDArray[np.int32]

#: Exponent of a span that nothing covers.
EMPTY = -(1 << 40)


class Grammar(NamedTuple):
    """Rules over S symbols, of which the first `n_own` are the user's; others come from splitting long rules.

    A weight is told by its place: structural rules, which are binary or unary, are 0 … G − 1, and G is a weight of one
    for rules that splitting has made; lexical rules are G … R − 1, and −1 is a weight of one.

    Attributes
    ----------
    n_symbols, n_own, start, n_structural : S, numbers of the user's symbols and of the start, G
    n_rows : for a fully connected grammar the number of symbols with binary rules, which are the first ones; every
        pair of the first `n_all` symbols is a right-hand side of each of them. 0 for a grammar in lists
    n_all : number of symbols but the start in a fully connected grammar
    first_single : first symbol that a single token can be there
    pair_first, pair_right : (S + 1,), (P,) pairs by their left symbol
    binary_first, binary_pair, binary_left, binary_right, binary_weight : (S + 1,), (B,) … binary rules by their
        left-hand side
    unary : (U, 3) left-hand side, right-hand side and weight; by component
    components : (C, 6) groups of symbols that are each other's descendants by unary rules, children first: the first
        unary rule to another component, the first one within, the last rule, the first and the last member, and where
        the closure of its rules begins
    members : symbols of components
    lexical_first, lexical_symbol, lexical_weight : (T + 1,), (L,) … lexical rules by terminal
    """

    n_symbols: int
    n_own: int
    start: int
    n_structural: int
    n_rows: int
    n_all: int
    first_single: int
    pair_first: Index
    pair_right: Index
    binary_first: Index
    binary_pair: Index
    binary_left: Index
    binary_right: Index
    binary_weight: Index
    unary: Index
    components: Index
    members: Index
    lexical_first: Index
    lexical_symbol: Index
    lexical_weight: Index


class Text(NamedTuple):
    """Sentences as edges, one sentence after the other.

    Attributes
    ----------
    tokens, edges, entries, brackets : (N + 1,) where tokens, edges, entries and brackets of each sentence begin
    edge : (M, 3) first token within the sentence, the one after the last, and the terminal
    bracket : (Q, 2) spans that no phrase may cross
    """

    tokens: Index
    edges: Index
    entries: Index
    brackets: Index
    edge: Short
    bracket: Short


class Room(NamedTuple):
    """Room of one thread for the longest sentence, as flat arrays.

    Attributes
    ----------
    inside, outside : (n (n + 1) S,) charts
    exponents : (n (n + 1),) powers of two that inside weights of a span have been divided by; `EMPTY` where it has none
    legal : (n (n + 1),) whether the user's symbols may cover a span
    pairs, above : (P,) sums over split points, and what is multiplied by them
    structural : (G + 1,) weights
    lexical : (E,) weights of entries
    found : (G + 1 + E,) expected numbers of structural rules and of entries
    closure : matrices of components with cycles
    scratch : (S,)
    items : (I, 3) nodes that are left to be expanded
    """

    inside: Array
    outside: Array
    exponents: Index
    legal: NDArray[np.bool_]
    pairs: Array
    above: Array
    structural: Array
    lexical: Array
    found: Array
    closure: Array
    scratch: Array
    items: Index


@kernel
def make_room(grammar, n, n_entries):
    """Return the room for sentences of at most n tokens and so many entries."""
    cells = max(n * (n + 1), 1)
    n_pairs, n_components = grammar.pair_right.shape[0], grammar.components.shape[0]
    closing = grammar.components[n_components - 1, 5] if n_components else 0
    if n_components:
        size = grammar.components[n_components - 1, 4] - grammar.components[n_components - 1, 3]
        closing += size * size
    weights = np.ones(grammar.n_structural + 1)
    return Room(
        np.empty(cells * grammar.n_symbols), np.empty(cells * grammar.n_symbols), np.empty(cells, dtype=np.int64),
        np.empty(cells, dtype=np.bool_), np.empty(n_pairs), np.empty(n_pairs), weights, np.empty(n_entries),
        np.empty(grammar.n_structural + 1 + n_entries), np.empty(closing), np.empty(grammar.n_symbols),
        np.empty((2 * n + 2, 3), dtype=np.int64),
    )  # fmt: skip


@small_kernel
def three_of(table, row):
    """Return the three numbers of a row."""
    return np.int64(table[row, 0]), np.int64(table[row, 1]), np.int64(table[row, 2])


@small_kernel
def six_of(table, row):
    """Return the six numbers of a row."""
    return table[row, 0], table[row, 1], table[row, 2], table[row, 3], table[row, 4], table[row, 5]


@small_kernel
def row_of(chart, cell, n_symbols):
    """Return the row of a span."""
    return chart[cell * n_symbols : (cell + 1) * n_symbols]


@kernel
def mark_legal(text, sentence, room, n):
    """Note which spans cross no bracket."""
    room.legal[: n * (n + 1)] = True
    for at in range(text.brackets[sentence], text.brackets[sentence + 1]):
        first, last = text.bracket[at, 0], text.bracket[at, 1]
        for i in range(first):
            for j in range(first + 1, last):
                room.legal[i * (n + 1) + j] = False
        for i in range(first + 1, last):
            for j in range(last + 1, n + 1):
                room.legal[i * (n + 1) + j] = False


@kernel
def weigh_entries(grammar, text, sentence, weights, room):
    """Look up the weights of the lexical rules of one sentence; return their number."""
    count = 0
    for edge in range(text.edges[sentence], text.edges[sentence + 1]):
        terminal = text.edge[edge, 2]
        for at in range(grammar.lexical_first[terminal], grammar.lexical_first[terminal + 1]):
            weight = grammar.lexical_weight[at]
            room.lexical[count] = weights[weight] if weight >= 0 else 1.0
            count += 1
    return count


@small_kernel
def place_of(grammar, first, last, symbol):
    """Return the place of a symbol among the members of a component."""
    place = 0
    for at in range(first, last):
        if grammar.members[at] == symbol:
            place = at - first
    return place


@kernel
def invert(matrix):
    """Invert I − U in place, for rows of U that sum to less than one, so that no pivot is zero (Gauss and Jordan)."""
    size = matrix.shape[0]
    for pivot in range(size):
        scale = 1.0 / matrix[pivot, pivot]
        matrix[pivot, pivot] = 1.0
        for b in range(size):
            matrix[pivot, b] *= scale
        for a in range(size):
            if a != pivot:
                factor = matrix[a, pivot]
                matrix[a, pivot] = 0.0
                for b in range(size):
                    matrix[a, b] -= factor * matrix[pivot, b]


@kernel
def close_cycles(grammar, room):
    """Compute (I − U)⁻¹ for the unary rules U within each component, from weights in the room."""
    for c in range(grammar.components.shape[0]):
        _, within, last, first_member, last_member, place = six_of(grammar.components, c)
        if within == last:
            continue
        size = last_member - first_member
        matrix = room.closure[place : place + size * size].reshape(size, size)
        matrix[:] = 0.0
        for at in range(within, last):
            a = place_of(grammar, first_member, last_member, grammar.unary[at, 0])
            b = place_of(grammar, first_member, last_member, grammar.unary[at, 1])
            matrix[a, b] -= room.structural[grammar.unary[at, 2]]
        for a in range(size):
            matrix[a, a] += 1.0
        invert(matrix)
