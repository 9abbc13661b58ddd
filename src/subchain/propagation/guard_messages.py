"""Guards: what neighbouring subchains left in a table, as messages, and back."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.numerics.linking import linked

#: Smaller entries become zero: numbers near the end of the singles are slow to compute with.
SMALLEST = 1e-37


@linked()
def _fetch(lasts, firsts, pieces, sink):
    """Touch all that will be read or written: a loop of nothing else has many memory accesses under way at a time."""
    total = np.float32(0.0)
    most = lasts.shape[0] - 1
    for lane in range(pieces.shape[0]):
        before, after = max(pieces[lane] - 1, 0), min(pieces[lane] + 1, most)
        total += lasts[before, 0] + lasts[before, -1] + firsts[after, 0] + firsts[after, -1] + lasts[pieces[lane], 0]
    sink[0, 0] = total


@linked()
def _gather(table, pieces, step, skip, out):
    """Rows of a table, those of each piece's neighbour, as the columns of `out` (K, M); zeros where `skip`."""
    for lane in range(pieces.shape[0]):
        if skip[lane]:
            for k in range(out.shape[0]):
                out[k, lane] = 0.0
        else:
            row = table[pieces[lane] + step]
            for k in range(out.shape[0]):
                out[k, lane] = row[k]


@linked()
def _totals(guards):
    """Sum over the states of each column; zero for a neighbour that was never visited."""
    out = np.zeros(guards.shape[1])
    for k in range(guards.shape[0]):
        for lane in range(guards.shape[1]):
            out[lane] += guards[k, lane]
    return out


@linked()
def gather_guards(lasts, firsts, pieces, is_first, is_last, before, after):
    """What the neighbours of the given pieces of a grid left, as columns of `before` and `after`, both (K, M)."""
    _fetch(lasts, firsts, pieces, before)
    _gather(lasts, pieces, -1, is_first, before)
    _gather(firsts, pieces, 1, is_last, after)


@linked()
def fill_silent(before, after, is_first, is_last, initial, stationary, start, stop):
    """Set `start` and `stop` (K, M) of pieces that have no neighbour, or one that was never visited."""
    told_before, told_after = _totals(before), _totals(after)
    for lane in range(is_first.shape[0]):
        if is_first[lane]:
            start[:, lane] = initial
        elif told_before[lane] == 0.0:
            start[:, lane] = stationary
        if is_last[lane] or told_after[lane] == 0.0:
            stop[:, lane] = 1.0


@linked()
def write_guards(table, pieces, messages):
    """Keep (K, M) messages, each divided by its sum, as rows of a table."""
    totals = _totals(messages)
    for lane in range(messages.shape[1]):
        factor, row = 1.0 / totals[lane] if totals[lane] > 0.0 else 0.0, table[pieces[lane]]
        for k in range(messages.shape[0]):
            value = messages[k, lane] * factor
            row[k] = value if value >= SMALLEST else 0.0
