"""Kernels that look up rows of a table of symbols, (W, K), and add to them."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.errors import InputError
from subchain.numerics.linking import linked
from subchain.numerics.vectors import WIDTH, first, load, store, turned, turned_doubles, width

#: A symbol whose largest weight is between this and its inverse is used without scaling.
SMALL = 1e-30
#: The same in single precision.
SINGLE_SMALL = 1e-10


@linked()
def _any_missing(symbols, n_categories):
    """Return whether any symbol is −1 (missing); raise IndexError if one is not in the table."""
    smallest, largest = 0, -1
    for position in range(symbols.shape[0]):
        smallest = min(smallest, symbols[position])
        largest = max(largest, symbols[position])
    if largest >= n_categories or smallest < -1:
        raise InputError("the data hold a code beyond the symbols of the categorical emission; check the data.")
    return smallest < 0


@linked()
def gather(table, symbols, out):
    """Set out[k, i] = table[symbols[i], k], or 1 where the symbol is −1; square blocks are transposed in registers."""
    n_states, n, size = table.shape[1], symbols.shape[0], width(table)
    any_missing = _any_missing(symbols, table.shape[0])
    whole = n - n % size
    for position in range(0, whole, size):
        for k in range(0, n_states - size + 1, size):
            columns = turned(table, symbols, position, k, None)
            for i in range(size):
                store(out, k + i, position, None, columns[i])
        k = n_states - n_states % size
        if k < n_states:
            columns = turned(table, symbols, position, k, first(n_states - k, table))
            for i in range(size):
                if k + i < n_states:
                    store(out, k + i, position, None, columns[i])
    for position in range(0 if any_missing else whole, n):
        symbol = symbols[position]
        if symbol < 0:
            for k in range(n_states):
                out[k, position] = 1.0
        elif position >= whole:
            for k in range(n_states):
                out[k, position] = table[symbol, k]


@linked()
def round_rows(weights, out, shift):
    """Round weights (W, K) to singles; return whether any row had to be scaled.

    Such rows are divided by their largest entry, whose logarithm is added to `shift` (W + 1,).
    """
    any_scaled = False
    for symbol in range(weights.shape[0]):
        largest = 0.0
        for k in range(weights.shape[1]):
            largest = max(largest, weights[symbol, k])
        factor = 1.0
        if 0.0 < largest < SINGLE_SMALL or largest > 1.0 / SINGLE_SMALL:
            factor, any_scaled = 1.0 / largest, True
            shift[symbol] += np.log(largest)
        for k in range(weights.shape[1]):
            out[symbol, k] = weights[symbol, k] * factor
    return any_scaled


@linked(forceinline=True)
def _add_to_row(counts, symbol, k, mask, marginals):
    """Add a vector of marginals to the counts of a symbol from state k on, unless the symbol is missing."""
    if symbol >= 0:
        store(counts, symbol, k, mask, load(counts, symbol, k, mask) + marginals)


@linked()
def scatter(counts, symbols, marginals):
    """Add marginals[k, i] to counts[symbols[i], k], except where the symbol is −1; the reverse of `gather`.

    Counts are doubles, marginals of any floating type.
    """
    n_states, n = counts.shape[1], symbols.shape[0]
    _any_missing(symbols, counts.shape[0])
    whole = n - n % WIDTH if n_states >= WIDTH else 0
    states = np.minimum(np.arange(n_states + WIDTH), n_states - 1)
    for position in range(0, whole, WIDTH):
        for k in range(0, n_states - WIDTH + 1, WIDTH):
            rows = turned_doubles(marginals, states, k, position, None)
            for i in range(WIDTH):
                _add_to_row(counts, symbols[position + i], k, None, rows[i])
        k = n_states - n_states % WIDTH
        if k < n_states:
            rows = turned_doubles(marginals, states, k, position, None)
            for i in range(WIDTH):
                _add_to_row(counts, symbols[position + i], k, first(n_states - k), rows[i])
    for position in range(whole, n):
        symbol = symbols[position]
        if symbol >= 0:
            for k in range(n_states):
                counts[symbol, k] += marginals[k, position]


@linked()
def look_up(table, symbols, offsets, states, out):
    """Set out[e] = table[symbols[i], states[e]] for the entries e of each position i, or 1 where the symbol is −1."""
    _any_missing(symbols, table.shape[0])
    for position in range(symbols.shape[0]):
        symbol = symbols[position]
        for e in range(offsets[position], offsets[position + 1]):
            out[e] = table[symbol, states[e]] if symbol >= 0 else 1.0


@linked()
def scale_lists(entries, offsets, shift):
    """Divide the entries of each position by their largest if that is below SMALL or above 1 / SMALL; set `shift`."""
    for position in range(offsets.shape[0] - 1):
        largest = 0.0
        for e in range(offsets[position], offsets[position + 1]):
            largest = max(largest, entries[e])
        shift[position] = 0.0
        if 0.0 < largest < SMALL or largest > 1.0 / SMALL:
            shift[position] = np.log(largest)
            for e in range(offsets[position], offsets[position + 1]):
                entries[e] /= largest


@linked()
def add_up(counts, symbols, offsets, states, marginals):
    """Add marginals[e] to counts[symbols[i], states[e]], except where the symbol is −1; the reverse of `look_up`."""
    _any_missing(symbols, counts.shape[0])
    for position in range(symbols.shape[0]):
        symbol = symbols[position]
        if symbol >= 0:
            for e in range(offsets[position], offsets[position + 1]):
                counts[symbol, states[e]] += marginals[e]
