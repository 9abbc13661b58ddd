"""Numba kernels of the checks: runs of equal states, and paths that start in given distributions."""

from __future__ import annotations

from subchain.datasets.paths import first_above
from subchain.numerics.linking import linked


@linked()
def split_runs(best, begins, before, states, lengths, is_cut, changes):  # type: ignore[no-untyped-def]
    """Write the runs of equal states that end in a block, and count changes of state; return the number of runs.

    A run ends with a change of state or with its sequence, which cuts it off.

    Parameters
    ----------
    best : (n,) state of each position of the block
    begins : increasing positions within the block at which sequences begin
    before : [state, length] of the run that the previous block ended with, state −1 for none; updated
    states, lengths, is_cut : (n,) outputs
    changes : (K, K) numbers of changes from row to column; updated
    """
    state, length, following, n = before[0], before[1], 0, 0
    for i in range(best.shape[0]):
        is_new = False
        while following < begins.shape[0] and begins[following] == i:
            is_new, following = True, following + 1
        if best[i] == state and not is_new:
            length += 1
            continue
        if state >= 0:
            states[n], lengths[n], is_cut[n] = state, length, is_new
            n += 1
            if not is_new:
                changes[state, best[i]] += 1
        state, length = best[i], 1
    before[0], before[1] = state, length
    return n


@linked()
def walk_pieces(rows, starts, offsets, uniforms, states):  # type: ignore[no-untyped-def]
    """Write one path for each piece, by inversion of cumulative distributions.

    Parameters
    ----------
    rows : (K, K) cumulative transition probabilities
    starts : (P, K) cumulative distributions of the pieces' first states
    offsets : (P + 1,) first positions of the pieces, and the end of the last
    uniforms : (N,) uniform random numbers
    states : (N,) output
    """
    for piece in range(starts.shape[0]):
        state = -1
        for i in range(offsets[piece], offsets[piece + 1]):
            state = first_above(starts[piece] if state < 0 else rows[state], uniforms[i])
            states[i] = state
