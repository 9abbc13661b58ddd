"""What neighbouring pieces of a sequence have to do with each other, with posterior marginals over all states.

A piece that begins or ends inside a sequence is told by its neighbours, of which only marginals are known: weights of
its first state and a backward message for its last (algorithm 3 of Wang 2016).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from subchain.numerics.vectors import WIDTH, first, largest, load, minus, store, times, total, zeros
from subchain.propagation.collapsed.pieces import weight_of
from subchain.propagation.compiled import bare_kernel, bare_part


@bare_part
def tail_of(n_states):
    """First state of the last, incomplete vector."""
    return n_states - n_states % WIDTH


@bare_part
def free_total(rows, j, table, row, summed):
    """Sum of the free entries of row j, whose counts are in a row of a table; `summed` is a vector of sums of all."""
    if not rows.has_fixed:
        return total(summed)
    whole = 0.0
    for k in range(rows.counts.shape[1]):
        if rows.concentration[j, k] > 0.0:
            whole += table[row, k]
    return whole


@bare_kernel
def add_border(before, row, after, other, gain, rows, counts):
    """Count gain · before[row, j] · after[other, k] transitions between independent pieces, where they can happen."""
    n_states = rows.counts.shape[1]
    tail = tail_of(n_states)
    for j in range(n_states):
        weight = gain * before[row, j]
        if rows.is_full:
            for k in range(0, tail, WIDTH):
                store(counts, j, k, None, load(counts, j, k, None) + times(load(after, other, k, None), weight))
            for k in range(tail, n_states):  # one by one: masked stores are slow
                counts[j, k] += weight * after[other, k]
            continue
        for k in range(n_states):
            if rows.concentration[j, k] > 0.0 or rows.fixed[j, k] > 0.0:
                counts[j, k] += weight * after[other, k]


@bare_kernel
def surround(shares, piece, pieces, rows, how, room):
    """What a piece is told by its neighbours: weights of its first state, backward message of its last.

    Where every cluster is one piece, the neighbours' own shares are left out of the transitions too.
    """
    n_states = rows.counts.shape[1]
    begin, end = pieces.starts[piece], pieces.stops[piece]
    share = weight_of(pieces, piece) if how.excludes and pieces.size == pieces.starts.shape[0] else 0.0
    if pieces.is_first[piece]:
        for k in range(room.start.shape[1]):
            room.start[0, k] = room.initial[0, k]
    else:
        before = piece - 1
        border = pieces.starts[before] if not pieces.is_first[before] else -1
        _enter(shares, pieces.share_of[before], border, begin, share, rows, how.by_counts, room)
    if pieces.is_last[piece]:
        room.stop[0, :n_states] = 1.0
    else:
        after = piece + 1
        border = pieces.stops[after] if not pieces.is_last[after] else -1
        _leave(shares, pieces.share_of[after], border, end, share, rows, room)


@bare_part
def _left(shares, row, border, share, j, rows, room):
    """Counts of a row without a neighbour's share, prior included, into `room.left`; return the sum of free entries.

    The neighbour has put in the inner transitions of `row` and that into position `border`, if this is not −1. With a
    share of zero nothing is left out, `share` being else how often the sequence counts. Entries that are neither free
    nor fixed come out as zero.
    """
    n_states = rows.counts.shape[1]
    summed = zeros()
    lead, at = (share * shares.marginals[border - 1, j], border) if border >= 0 else (0.0, 0)
    inner, own = 1.0 if share > 0.0 else 0.0, shares.pairs[row]
    tail = tail_of(n_states)
    for k in range(0, tail, WIDTH):
        left = minus(load(room.moves, j, k, None), times(load(own, j, k, None), inner))
        left = minus(left, times(load(shares.marginals, at, k, None), lead))
        left = largest(left, load(rows.concentration, j, k, None))
        store(room.left, 0, k, None, left)
        summed += left
    if tail < n_states:
        mask = first(n_states - tail)
        left = minus(load(room.moves, j, tail, None), times(load(own, j, tail, mask), inner))
        left = minus(left, times(load(shares.marginals, at, tail, mask), lead))
        left = largest(left, load(rows.concentration, j, tail, mask))
        store(room.left, 0, tail, None, left)
        summed += left
    return free_total(rows, j, room.left, 0, summed)


@bare_part
def _enter(shares, row, border, begin, share, rows, by_counts, room):
    """Weights of a piece's first state, given the marginals of the position before it (3.68)."""
    n_states = rows.counts.shape[1]
    room.start[:] = 0.0
    for j in range(n_states):
        before = shares.marginals[begin - 1, j]
        summed = _left(shares, row, border, share, j, rows, room)
        if by_counts:
            before *= room.left[0, :n_states].sum() if rows.has_fixed else summed
        factor = before * rows.shares[j] / summed if summed > 0.0 else 0.0
        if rows.has_fixed:
            for k in range(n_states):
                is_free = rows.concentration[j, k] > 0.0
                room.start[0, k] += factor * room.left[0, k] if is_free else before * rows.fixed[j, k]
        else:
            for k in range(0, n_states, WIDTH):
                more = times(load(room.left, 0, k, None), factor)
                store(room.start, 0, k, None, load(room.start, 0, k, None) + more)


@bare_part
def _leave(shares, row, border, end, share, rows, room):
    """Backward message of a piece's last state, given the marginals of the position after it (3.69)."""
    n_states = rows.counts.shape[1]
    tail = tail_of(n_states)
    for j in range(n_states):
        summed = _left(shares, row, border, share, j, rows, room)
        free, fixed = zeros(), 0.0
        if rows.has_fixed:
            for k in range(n_states):
                if not rows.concentration[j, k] > 0.0:
                    room.left[0, k] = 0.0
                    fixed += shares.marginals[end, k] * rows.fixed[j, k]
        for k in range(0, tail, WIDTH):
            free += load(room.left, 0, k, None) * load(shares.marginals, end, k, None)
        if tail < n_states:
            free += load(room.left, 0, tail, None) * load(shares.marginals, end, tail, first(n_states - tail))
        room.stop[0, j] = fixed + (total(free) * rows.shares[j] / summed if summed > 0.0 else 0.0)
