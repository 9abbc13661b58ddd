"""Guards: what neighbouring subchains left in a table, as messages, and back.

A row of the table holds the two guards of a subchain, that of its first position and that of its last: (n, 2 K). Blocks
of `WIDTH` lanes are transposed in registers.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.numerics.linking import linked
from subchain.numerics.vectors import WIDTH, all_within, first, load, reciprocal, store, times, turned_doubles, zeros

#: Smaller entries become zero: numbers near the end of the singles are slow to compute with.
SMALLEST = 1e-37


@linked()
def _fetch(table, pieces, sink):
    """Touch all that will be read or written: a loop of nothing else has many memory accesses under way at a time."""
    fetched, most, end = np.float32(0.0), table.shape[0] - 1, table.shape[1] - 1
    half = end // 2
    for lane in range(pieces.shape[0]):
        before, after = max(pieces[lane] - 1, 0), min(pieces[lane] + 1, most)
        fetched += table[before, half + 1] + table[before, end] + table[pieces[lane], half]
        fetched += table[after, 0] + table[after, half]
    sink[0, 0] = fetched


@linked(forceinline=True)
def _store_columns(columns, out, k, lane):
    """Write neighbouring columns of a block as rows of `out` from row k on, as far as there are rows."""
    for i in range(WIDTH):
        if k + i < out.shape[0]:
            store(out, k + i, lane, None, columns[i])


@linked()
def _gather(table, rows, at, skip, out):
    """Write entries of rows of a table, from column `at` on, as the columns of `out` (K, M); zeros where `skip`."""
    n_states, lanes = out.shape
    whole, even = lanes - lanes % WIDTH, n_states - n_states % WIDTH
    for lane in range(0, whole, WIDTH):
        for k in range(0, even, WIDTH):
            _store_columns(turned_doubles(table, rows, lane, at + k, None), out, k, lane)
        if even < n_states:
            mask = first(n_states - even)
            _store_columns(turned_doubles(table, rows, lane, at + even, mask), out, even, lane)
    for lane in range(lanes):
        if skip[lane]:
            out[:, lane] = 0.0
        elif lane >= whole:
            out[:, lane] = table[rows[lane], at : at + n_states]


@linked()
def _totals(messages, begin, lanes):
    """Sum over the states of each column from `begin` on, (1, lanes); zero for a neighbour that was never visited."""
    out, whole = np.empty((1, lanes)), lanes - lanes % WIDTH
    for lane in range(0, whole, WIDTH):
        summed = zeros()
        for k in range(messages.shape[0]):
            summed += load(messages, k, begin + lane, None)
        store(out, 0, lane, None, summed)
    for lane in range(whole, lanes):
        out[0, lane] = 0.0
        for k in range(messages.shape[0]):
            out[0, lane] += messages[k, begin + lane]
    return out


@linked()
def gather_guards(table, pieces, is_first, is_last, before, after):
    """What the neighbours of the given pieces of a grid left, as columns of `before` and `after`, both (K, M)."""
    _fetch(table, pieces, before)
    rows = pieces - 1
    _gather(table, rows, before.shape[0], is_first, before)
    for lane in range(pieces.shape[0]):
        rows[lane] = min(pieces[lane] + 1, table.shape[0] - 1)
    _gather(table, rows, 0, is_last, after)


@linked()
def fill_silent(before, after, is_first, is_last, initial, stationary, start, stop):
    """Set `start` and `stop` (K, M) of pieces that have no neighbour, or one that was never visited."""
    told_before, told_after = (_totals(before, 0, before.shape[1])[0], _totals(after, 0, after.shape[1])[0])
    for lane in range(is_first.shape[0]):
        if is_first[lane]:
            start[:, lane] = initial
        elif told_before[lane] == 0.0:
            start[:, lane] = stationary
        if is_last[lane] or told_after[lane] == 0.0:
            stop[:, lane] = 1.0


@linked()
def _write_some(table, row, at, messages, column, factor, k, stop):
    """Write the entries from state `k` to `stop` of a column of messages, times a factor, into a row."""
    for state in range(k, stop):
        value = messages[state, column] * factor
        table[row, at + state] = value if value >= SMALLEST else 0.0


@linked()
def write_guards(table, at, pieces, messages, begin):
    """Keep messages, columns of a table (K, n) from `begin` on, divided by their sums, from column `at` of rows on."""
    n_states, lanes = messages.shape[0], pieces.shape[0]
    totals, whole = _totals(messages, begin, lanes), lanes - lanes % WIDTH
    states, factors = np.minimum(np.arange(n_states + WIDTH), n_states - 1), np.empty((1, WIDTH))
    beyond = np.zeros((2, WIDTH))  # ones beyond the last state
    beyond[1, n_states % WIDTH :] = 1.0
    for lane in range(0, whole, WIDTH):
        store(factors, 0, 0, None, reciprocal(load(totals, 0, lane, None)))
        for k in range(0, n_states, WIDTH):
            is_whole = k + WIDTH <= n_states
            rows = turned_doubles(messages, states, k, begin + lane, None)
            some = load(beyond, 0 if is_whole else 1, 0, None)
            for i in range(WIDTH):
                entries = times(rows[i], factors[0, i])
                if not all_within(entries + some, SMALLEST, 3.0):
                    stop = min(k + WIDTH, n_states)
                    _write_some(table, pieces[lane + i], at, messages, begin + lane + i, factors[0, i], k, stop)
                elif is_whole:
                    store(table, pieces[lane + i], at + k, None, entries)
                else:
                    store(table, pieces[lane + i], at + k, first(n_states - k), entries)
    for lane in range(whole, lanes):
        factor = 1.0 / totals[0, lane] if totals[0, lane] > 0.0 else 0.0
        _write_some(table, pieces[lane], at, messages, begin + lane, factor, 0, n_states)
