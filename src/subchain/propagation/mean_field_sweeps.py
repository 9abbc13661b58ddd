"""Sweeps of mean field over hidden chains: every position is told its neighbours' marginals, not their states.

The best marginal of a position, given those of all others, is

    log q(z_t = k) = log p(x_t | k) + Σ_j q(z_{t−1} = j) log A_jk + Σ_l q(z_{t+1} = l) log A_kl + constant

so visiting one position after the other never lowers the bound. States fill the vectors, as in `one_chain`: tables are
position-major, (n, P), with the K states padded to P; what is beyond K is zero in every matrix.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.numerics.linking import linked
from subchain.numerics.vectors import WIDTH, exponential, largest, load, minus, spread, store, total, zeros
from subchain.propagation.collapsed.single_chain import product
from subchain.propagation.compiled import part

#: Stands for the logarithm of zero where it is multiplied by marginals: finite, so that zero times it is zero.
FORBIDDEN = -1e300
#: Rows of the room that a sweep needs: what a position hears from behind it, and some scratch.
BEHIND, SCRATCH, ROOM = 0, 1, 2

#: Products may be fused with sums, but nothing reordered: the exponential depends on the order of its steps.
kernel = linked(fastmath={"contract", "nsz"}, error_model="numpy")


@part
def _top(room):
    """The largest of the first entries of the scratch row."""
    top = room[SCRATCH, 0]
    for k in range(1, WIDTH):
        top = max(top, room[SCRATCH, k])
    return top


@kernel
def _believe(logs, before, row, room, marginals, into):
    """Write marginals[into] ∝ exp(logs[row] + before[row] + room[BEHIND]).

    Returns the expected log likelihood plus the entropy; −inf, and marginals of zero, where no state is possible.
    """
    width = logs.shape[1]
    best = load(logs, row, 0, None) + load(before, row, 0, None) + load(room, BEHIND, 0, None)
    store(marginals, into, 0, None, best)
    for k in range(WIDTH, width, WIDTH):
        score = load(logs, row, k, None) + load(before, row, k, None) + load(room, BEHIND, k, None)
        store(marginals, into, k, None, score)
        best = largest(best, score)
    store(room, SCRATCH, 0, None, best)
    top = _top(room)
    if not top > 0.5 * FORBIDDEN:
        for k in range(width):
            marginals[into, k] = 0.0
        return -np.inf
    room[SCRATCH, 0] = top
    shift, summed, heard = spread(room, SCRATCH, 0), zeros(), zeros()
    for k in range(0, width, WIDTH):
        weight = exponential(minus(load(marginals, into, k, None), shift))
        store(marginals, into, k, None, weight)
        summed += weight
        heard += weight * (load(before, row, k, None) + load(room, BEHIND, k, None))
    norm = total(summed)
    room[SCRATCH, 0] = 1.0 / norm
    factor = spread(room, SCRATCH, 0)
    for k in range(0, width, WIDTH):
        store(marginals, into, k, None, load(marginals, into, k, None) * factor)
    return top + np.log(norm) - total(heard) / norm


@part
def _hear_behind(marginals, row, turned, n_states, ends, room):
    """What a position hears from the one behind it, at `row`, if there is one."""
    if ends:
        for k in range(room.shape[1]):
            room[BEHIND, k] = 0.0
    else:
        product(marginals, row, turned, n_states, room, BEHIND)


@kernel
def sweep(logs, moves, turned, first, begins, n_states, marginals, before, room, gains):
    """Visit n neighbouring positions there and back.

    Parameters
    ----------
    logs : (n, P) log likelihoods, −inf in the padding
    moves, turned : (K, P) log weights of transitions, all finite, and the same transposed
    first : (P,) log weights of first states, `FORBIDDEN` for those that cannot be
    begins : (n + 1,) whether a chain begins at each position, and at the one behind them
    marginals : (n + 2, P) marginals, those of position i in row i + 1; the outer rows are the neighbours'
    before : (n, P) room for what each position hears from the one before it
    room : (`ROOM`, P)
    gains : (n,) on return the expected log likelihood of each position plus the entropy of its marginal
    """
    n = logs.shape[0]
    for i in range(n):
        if begins[i]:
            for k in range(first.shape[0]):
                before[i, k] = first[k]
        else:
            product(marginals, i, moves, n_states, before, i)
        _hear_behind(marginals, i + 2, turned, n_states, begins[i + 1], room)
        gains[i] = _believe(logs, before, i, room, marginals, i + 1)
    for i in range(n - 2, -1, -1):  # the position before has not changed since it was heard, nor what is behind a last
        if not begins[i + 1]:
            product(marginals, i + 2, turned, n_states, room, BEHIND)
            gains[i] = _believe(logs, before, i, room, marginals, i + 1)
