"""Compiled updates of the sticks of transition rows and of the states that they point at.

Row k is broken into sticks of expected sizes `sizes[k, m]`, and stick m points at state j with probability
`points[k, m, j]`. The weight of the transition k → j sums over sticks; the remainder of the row follows a base
distribution that all rows share:

    weight[k, j] = Σ_m points[k, m, j] · sizes[k, m] + rest[k, j].

R is the number of rows (1 + K, row 0 for the initial distribution), M the largest number of sticks of a row.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.numerics.compilation import compiled

kernel = compiled(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})

#: A state is ignored by a stick if pointing at it would raise the expected log weight of all transitions by less.
NEGLIGIBLE = 0.01


@kernel
def weigh_transitions(points, sizes, used, rest, out):
    """Write the weights of all transitions into `out` (R, K)."""
    for k in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[k, j] = rest[k, j]
        for m in range(used[k]):
            for j in range(out.shape[1]):
                out[k, j] += points[k, m, j] * sizes[k, m]


@kernel
def share_transitions(counts, weights, points, sizes, used, out):
    """Write the expected number of transitions made by each stick into `out` (R, M).

    The transitions k → j are divided among the sticks in proportion to their terms of weight[k, j].
    """
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
def _gain(counts, others, size, gains):
    """Write the gain of pointing a stick at each state into `gains` (K,); return whether any is relevant.

    The gain of state j is the increase of the expected log weight, counts[j] · log(1 + size / others[j]).
    """
    any_gain = False
    for j in range(counts.shape[0]):
        gains[j] = 0.0
        if counts[j] * size > NEGLIGIBLE * others[j]:  # log(1 + x) is no larger than x
            gain = counts[j] * np.log1p(size / others[j])
            if gain > NEGLIGIBLE:
                gains[j] = gain
                any_gain = True
    return any_gain


@kernel
def _choose(gains, log_base, out):
    """Write the posterior of a pointer, ∝ exp(log_base + gains), into `out` (K,); return its KL from the base."""
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
def update_pointers(counts, sizes, used, rest, log_base, points, negentropy):
    """Update the pointers of all sticks, one after the other, in place.

    The log probability that a stick points at state j is log_base[j] plus the gain of all expected transitions to j if
    it does, with the other sticks fixed.

    Parameters
    ----------
    counts : (R, K) expected transitions
    sizes, used : (R, M), (R,) expected sizes of the sticks, and number of sticks of each row
    rest : (R, K) weights of the transitions without the sticks
    log_base : (K,) log of the base distribution, which need not be normalised
    points, negentropy : (R, M, K), (R, M) probabilities of the pointers, and Σ p log p of each
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
            size, pointer = sizes[k, m], points[k, m]
            for j in range(n_states):
                others[j] = max(weights[j] - pointer[j] * size, rest[k, j])
            if _gain(counts[k], others, size, gains):
                negentropy[k, m] = _choose(gains, log_base, pointer)
            else:
                negentropy[k, m] = of_base
                pointer[:] = base
            for j in range(n_states):
                negentropy[k, m] += pointer[j] * log_base[j]
                weights[j] = others[j] + pointer[j] * size


@kernel
def count_dishes(points, used, out):
    """Write the expected number of sticks of each row that point at each state into `out` (R, K)."""
    for k in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[k, j] = 0.0
        for m in range(used[k]):
            for j in range(out.shape[1]):
                out[k, j] += points[k, m, j]
