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

kernel = njit(nogil=True, cache=True, error_model="numpy")

#: A stick that would raise the log weight of all counted moves to a state by less than this does not see that state.
NEGLIGIBLE = 0.1


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
    for k in range(counts.shape[0]):
        for m in range(out.shape[1]):
            out[k, m] = 0.0
        for m in range(used[k]):
            total = 0.0
            for j in range(counts.shape[1]):
                total += counts[k, j] / weights[k, j] * points[k, m, j]
            out[k, m] = total * sizes[k, m]


@kernel
def _gain(counts, others, size, old, new, log_base):
    """What the bound gains if a stick points elsewhere."""
    gain = 0.0
    for j in range(counts.shape[0]):
        if counts[j] > 0.0 and new[j] != old[j]:
            gain += counts[j] * np.log((others[j] + new[j] * size) / (others[j] + old[j] * size))
        if new[j] > 1e-300:
            gain -= new[j] * (np.log(new[j]) - log_base[j])
        if old[j] > 1e-300:
            gain += old[j] * (np.log(old[j]) - log_base[j])
    return gain


@kernel
def point_anew(counts, sizes, used, rest, log_base, base, points):
    """Let every stick in turn point where it is needed, in place; return how many would have lowered the bound.

    The log weight of state j for a stick is that of the base, and what all counted moves to j gain if the stick points
    at it while the others stay. A stick for which the bound would fall stays as it is.

    Parameters
    ----------
    counts : (R, K) expected moves
    sizes, used : (R, M), (R,) expected sizes of sticks, and how many there are
    rest : (R, K) what is left of the rows
    log_base, base : (R, K) the common base, which need not be normalised, and the same normalised
    points : (R, M, K)
    """
    n_rows, _, n_states = points.shape
    weights, new, others = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    refused = 0
    for k in range(n_rows):
        for j in range(n_states):
            weights[j] = rest[k, j]
        for m in range(used[k]):
            for j in range(n_states):
                weights[j] += points[k, m, j] * sizes[k, m]
        for m in range(used[k]):
            size, largest, sees = sizes[k, m], -np.inf, False
            for j in range(n_states):
                others[j] = max(weights[j] - points[k, m, j] * size, rest[k, j])
                gain = 0.0
                if counts[k, j] * size > NEGLIGIBLE * others[j]:  # log(1 + x) is no larger than x
                    gain = counts[k, j] * np.log1p(size / others[j])
                    if gain < NEGLIGIBLE:
                        gain = 0.0
                    else:
                        sees = True
                new[j] = gain
                largest = max(largest, log_base[k, j] + gain)
            if sees:
                total = 0.0
                for j in range(n_states):
                    new[j] = np.exp(log_base[k, j] + new[j] - largest)
                    total += new[j]
                for j in range(n_states):
                    new[j] /= total
            else:
                for j in range(n_states):
                    new[j] = base[k, j]
            if _gain(counts[k], others, size, points[k, m], new, log_base[k]) >= 0.0:
                for j in range(n_states):
                    points[k, m, j] = new[j]
            else:
                refused += 1
            for j in range(n_states):
                weights[j] = others[j] + points[k, m, j] * size
    return refused


@kernel
def count_dishes(points, used, out):
    """Expected number of sticks of each row that point at each state, (R, K), and their negative entropy, which is
    returned."""
    total = 0.0
    for k in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[k, j] = 0.0
        for m in range(used[k]):
            for j in range(out.shape[1]):
                value = points[k, m, j]
                out[k, j] += value
                if value > 1e-300:
                    total += value * np.log(value)
    return total
