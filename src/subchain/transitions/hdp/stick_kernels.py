"""Sticks of many rows that point at states: who points where, given how often each move was made.

Row k of the moves is broken into sticks with expected sizes `sizes[k, m]`, and stick m points at state j with
probability `points[k, m, j]`. The weight of a move is what all sticks give it, and what is left of the row follows a
common base:

    weight[k, j] = Σ_m points[k, m, j] · sizes[k, m] + rest[k, j].
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit

kernel = njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})

#: A stick that would raise the log weight of all counted moves to a state by less than this does not see that state.
NEGLIGIBLE = 0.01


@kernel
def weigh_moves(points, sizes, used, rest, out):
    """Weights of all moves, (R, K)."""
    for k in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[k, j] = rest[k, j]
        for m in range(used[k]):
            for j in range(out.shape[1]):
                out[k, j] += points[k, m, j] * sizes[k, m]


@kernel
def share_moves(counts, weights, points, sizes, used, out):
    """Expected number of moves that each stick was used for, (R, M): moves are shared in proportion to what gives them
    their weight."""
    each = np.empty(counts.shape[1])
    for k in range(counts.shape[0]):
        for m in range(out.shape[1]):
            out[k, m] = 0.0
        for j in range(counts.shape[1]):
            each[j] = counts[k, j] / weights[k, j]
        for m in range(used[k]):
            total = 0.0
            for j in range(counts.shape[1]):
                total += each[j] * points[k, m, j]
            out[k, m] = total * sizes[k, m]


@kernel
def _see(counts, others, size, gains):
    """What all counted moves to each state gain if a stick points at it; whether that is anything anywhere."""
    sees = False
    for j in range(counts.shape[0]):
        gains[j] = 0.0
        if counts[j] * size > NEGLIGIBLE * others[j]:  # log(1 + x) is no larger than x
            gain = counts[j] * np.log1p(size / others[j])
            if gain > NEGLIGIBLE:
                gains[j] = gain
                sees = True
    return sees


@kernel
def _choose(gains, log_base, out):
    """Where a stick points that gains so much at each state; return its divergence from the base."""
    largest, total, expected = -np.inf, 0.0, 0.0
    for j in range(gains.shape[0]):
        largest = max(largest, log_base[j] + gains[j])
    for j in range(gains.shape[0]):
        out[j] = np.exp(log_base[j] + gains[j] - largest)
        total += out[j]
    for j in range(gains.shape[0]):
        out[j] /= total
        expected += out[j] * gains[j]
    return expected - largest - np.log(total)


@kernel
def point_anew(counts, sizes, used, rest, log_base, points, negentropy):
    """Let every stick in turn point where it is needed, in place.

    The log weight of state j for a stick is that of the base, and what all counted moves to j gain if the stick points
    at it while the others stay.

    Parameters
    ----------
    counts : (R, K) expected moves
    sizes, used : (R, M), (R,) expected sizes of sticks, and how many there are
    rest : (R, K) what moves have beside the sticks
    log_base : (K,) the common base, which need not be normalised
    points, negentropy : (R, M, K), (R, M) where sticks point, and Σ p log p of that
    """
    n_rows, _, n_states = points.shape
    weights, others, gains, base = (np.zeros(n_states), np.empty(n_states), np.zeros(n_states), np.empty(n_states))
    for k in range(n_rows):
        gains[:] = 0.0
        of_base = _choose(gains, log_base, base)
        for j in range(n_states):
            weights[j] = rest[k, j]
        for m in range(used[k]):
            for j in range(n_states):
                weights[j] += points[k, m, j] * sizes[k, m]
        for m in range(used[k]):
            size, towards = sizes[k, m], points[k, m]
            for j in range(n_states):
                others[j] = max(weights[j] - towards[j] * size, rest[k, j])
            if _see(counts[k], others, size, gains):
                negentropy[k, m] = _choose(gains, log_base, towards)
            else:
                negentropy[k, m] = of_base
                towards[:] = base
            for j in range(n_states):
                negentropy[k, m] += towards[j] * log_base[j]
                weights[j] = others[j] + towards[j] * size


@kernel
def count_dishes(points, used, out):
    """Expected number of sticks of each row that point at each state, (R, K)."""
    for k in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[k, j] = 0.0
        for m in range(used[k]):
            for j in range(out.shape[1]):
                out[k, j] += points[k, m, j]
