"""Counts of words and moves from marginals that are listed for legal states alone.

Expected moves into a position are kept for every pair of a legal state of the position before and one of its own, one
block after the other; the first position of a cluster has none.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.propagation.compiled import kernel


@kernel
def move_blocks(starts, lengths, offsets):
    """Where the expected moves into each position begin, (N + 1,): pairs of legal states inside a cluster."""
    n = offsets.shape[0] - 1
    out = np.zeros(n + 1, np.int64)
    for cluster in range(starts.shape[0]):
        for position in range(starts[cluster] + 1, starts[cluster] + lengths[cluster]):
            before, after = offsets[position] - offsets[position - 1], offsets[position + 1] - offsets[position]
            out[position + 1] = before * after
    for position in range(n):
        out[position + 1] += out[position]
    return out


@kernel
def add_moves(sign, first, last, offsets, states, blocks, moves, pairs, rows):
    """Add the moves that clusters have made between the positions `first` and `last` to the counts of moves."""
    for position in range(first + 1, last):
        at = blocks[position]
        if blocks[position + 1] == at:
            continue
        for a in range(offsets[position - 1], offsets[position]):
            j, left = states[a], 0.0
            for b in range(offsets[position], offsets[position + 1]):
                pairs[j, states[b]] += sign * moves[at]
                left += moves[at]
                at += 1
            rows[j] += sign * left


@kernel
def add_border(sign, position, offsets, states, marginals, pairs, rows):
    """Add the move into a cluster that begins at `position` to the counts of moves."""
    for a in range(offsets[position - 1], offsets[position]):
        j = states[a]
        rows[j] += sign * marginals[a]
        for b in range(offsets[position], offsets[position + 1]):
            pairs[j, states[b]] += sign * marginals[a] * marginals[b]


@kernel
def add_words(sign, first, last, values, offsets, states, marginals, counts, totals):
    """Add the marginals of positions to the counts of their words."""
    for position in range(first, last):
        symbol = values[position]
        if symbol >= 0:
            for a in range(offsets[position], offsets[position + 1]):
                counts[symbol, states[a]] += sign * marginals[a]
                totals[states[a]] += sign * marginals[a]
