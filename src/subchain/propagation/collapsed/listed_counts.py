"""Counts from posterior marginals that are kept for legal states alone.

Expected transitions into a position are a block of one number for every pair of a legal state of the position before
and one of its own, blocks one after the other; the first position of a piece has none.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.propagation.collapsed.pieces import weight_of
from subchain.propagation.collapsed.rows import count
from subchain.propagation.collapsed.verbs import add
from subchain.propagation.compiled import bare_kernel, bare_part, family_part, kernel


@kernel
def move_blocks(starts, lengths, offsets):
    """Where the expected transitions into each position begin, (N + 1,): pairs of legal states inside a piece."""
    n = offsets.shape[0] - 1
    out = np.zeros(n + 1, np.int64)
    for piece in range(starts.shape[0]):
        for position in range(starts[piece] + 1, starts[piece] + lengths[piece]):
            before, after = offsets[position] - offsets[position - 1], offsets[position + 1] - offsets[position]
            out[position + 1] = before * after
    for position in range(n):
        out[position + 1] += out[position]
    return out


@kernel
def sum_moves(first, last, legal, blocks, moves, at, out):
    """Add the transitions between two positions, those inside pieces, from entry `at` of a list on, to a table."""
    for position in range(first + 1, last):
        if blocks[position + 1] == blocks[position]:
            continue
        for a in range(legal.offsets[position - 1], legal.offsets[position]):
            for b in range(legal.offsets[position], legal.offsets[position + 1]):
                out[legal.states[a], legal.states[b]] += moves[at]
                at += 1


@kernel
def forget_impossible(legal, blocks, moves, possible):
    """Set the transitions of a list that cannot happen to zero."""
    for position in range(1, blocks.shape[0] - 1):
        at = blocks[position]
        if blocks[position + 1] == at:
            continue
        for a in range(legal.offsets[position - 1], legal.offsets[position]):
            for b in range(legal.offsets[position], legal.offsets[position + 1]):
                if not possible[legal.states[a], legal.states[b]]:
                    moves[at] = 0.0
                at += 1


@bare_part
def add_moves(sign, first, last, legal, blocks, moves, rows):
    """Add the transitions inside pieces between the positions `first` and `last`, kept as lists, to the counts."""
    offsets, states = legal.offsets, legal.states
    for position in range(first + 1, last):
        at = blocks[position]
        if blocks[position + 1] == at:
            continue
        for a in range(offsets[position - 1], offsets[position]):
            j, left = states[a], 0.0
            for b in range(offsets[position], offsets[position + 1]):
                k = states[b]
                rows.counts[j, k] += sign * moves[at]  # none that cannot happen
                left += moves[at] if rows.is_full or rows.concentration[j, k] > 0.0 else 0.0
                at += 1
            rows.totals[j] += sign * left


@bare_part
def add_border(sign, position, legal, marginals, rows):
    """Add the transition into a piece that begins at `position`, as if it and the piece before were independent."""
    offsets, states = legal.offsets, legal.states
    for a in range(offsets[position - 1], offsets[position]):
        for b in range(offsets[position], offsets[position + 1]):
            count(rows, states[a], states[b], sign * marginals[a] * marginals[b])


@bare_part
def add_table(sign, table, rows):
    """Add a table of transitions to the counts."""
    for j in range(table.shape[0]):
        for k in range(table.shape[1]):
            if table[j, k] != 0.0:
                count(rows, j, k, sign * table[j, k])


@bare_part
def add_ends(gain, piece, pieces, legal, marginals, rows):
    """Add a piece's first state, or the transition into it, and that out of it."""
    first = pieces.starts[piece]
    if pieces.is_first[piece]:
        for a in range(legal.offsets[first], legal.offsets[first + 1]):
            count(rows, rows.counts.shape[1], legal.states[a], gain * marginals[a])
    else:
        add_border(gain, first, legal, marginals, rows)
    if not pieces.is_last[piece]:
        add_border(gain, pieces.stops[piece], legal, marginals, rows)


@family_part
def add_entries(sign, cluster, pieces, legal, marginals, emissions):
    """Count the observations of a cluster by marginals, or take them out again."""
    for piece in range(cluster, pieces.starts.shape[0], pieces.size):
        gain = sign * weight_of(pieces, piece)
        for position in range(pieces.starts[piece], pieces.stops[piece]):
            for a in range(legal.offsets[position], legal.offsets[position + 1]):
                add(emissions, position, legal.states[a], gain * marginals[a])


@bare_kernel
def add_cluster(sign, cluster, pieces, shares, lists, rows):
    """Count all transitions and first states of a cluster, or take them out again."""
    for piece in range(cluster, pieces.starts.shape[0], pieces.size):
        first, last, gain = pieces.starts[piece], pieces.stops[piece], sign * weight_of(pieces, piece)
        if lists.moves.shape[0]:
            add_moves(sign, first, last, shares.legal, shares.blocks, lists.moves, rows)
        add_ends(gain, piece, pieces, shares.legal, lists.marginals, rows)
    if pieces.share_of[cluster] > 0 and not lists.moves.shape[0]:
        add_table(sign, lists.pairs[pieces.share_of[cluster]], rows)


@bare_kernel
def add_neighbour(sign, piece, border, pieces, shares, rows):
    """Add the inner transitions of a neighbour, and that into position `border` unless it is −1."""
    first, last = pieces.starts[piece], pieces.stops[piece]
    if shares.old.moves.shape[0]:
        add_moves(sign, first, last, shares.legal, shares.blocks, shares.old.moves, rows)
    else:
        add_table(sign, shares.old.pairs[pieces.share_of[piece]], rows)
    if border >= 0:
        add_border(sign * weight_of(pieces, piece), border, shares.legal, shares.old.marginals, rows)
