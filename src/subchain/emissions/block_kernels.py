"""Kernels of block-sparse tables: a symbol's likelihoods stand in the row of its rank within its group, (M, K)."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError
from subchain.numerics.linking import linked

Index = NDArray[np.int64]


class Places(NamedTuple):
    """Where symbols and states stand.

    Attributes
    ----------
    groups, ranks : (W,) group of each symbol, and its place within the group
    states : (K,) group of each state
    """

    groups: Index
    ranks: Index
    states: Index


@linked()
def check_symbols(symbols, n_symbols):
    """Raise an error if a symbol is not in the table; −1 is missing."""
    for position in range(symbols.shape[0]):
        if symbols[position] < -1 or symbols[position] >= n_symbols:
            raise InputError("the data hold a code beyond the symbols of the block-sparse emission; check the data.")


@linked()
def gather_blocks(table, symbols, places, out):
    """Write the weight of each symbol in each state into `out` (K, n); 1 where the symbol is missing."""
    check_symbols(symbols, places.groups.shape[0])
    for k in range(table.shape[1]):
        own = places.states[k]
        for position in range(symbols.shape[0]):
            symbol = symbols[position]
            if symbol < 0:
                out[k, position] = 1.0
            elif places.groups[symbol] == own:
                out[k, position] = table[places.ranks[symbol], k]
            else:
                out[k, position] = 0.0


@linked()
def scatter_blocks(counts, symbols, places, marginals):
    """Add marginals (K, n) to the counts (M, K) of the symbols, in the states of their groups."""
    check_symbols(symbols, places.groups.shape[0])
    for k in range(counts.shape[1]):
        own = places.states[k]
        for position in range(symbols.shape[0]):
            symbol = symbols[position]
            if symbol >= 0 and places.groups[symbol] == own:
                counts[places.ranks[symbol], k] += marginals[k, position]


@linked()
def look_up_blocks(table, symbols, places, offsets, states, out):
    """Write the weight of each symbol in its listed states into `out` (nnz,); 1 where the symbol is missing."""
    check_symbols(symbols, places.groups.shape[0])
    for position in range(symbols.shape[0]):
        symbol = symbols[position]
        for e in range(offsets[position], offsets[position + 1]):
            state = states[e]
            if symbol < 0:
                out[e] = 1.0
            elif places.groups[symbol] == places.states[state]:
                out[e] = table[places.ranks[symbol], state]
            else:
                out[e] = 0.0


@linked()
def add_up_blocks(counts, symbols, places, offsets, states, marginals):
    """Add the marginals of listed states (nnz,) to the counts (M, K) of the symbols, in the states of their groups."""
    check_symbols(symbols, places.groups.shape[0])
    for position in range(symbols.shape[0]):
        symbol = symbols[position]
        if symbol >= 0:
            for e in range(offsets[position], offsets[position + 1]):
                if places.groups[symbol] == places.states[states[e]]:
                    counts[places.ranks[symbol], states[e]] += marginals[e]
