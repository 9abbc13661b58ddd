"""Charts of one sentence in log space: best trees, and sums for sentences whose weights leave the range of doubles.

The charts have the places of `inside_outside.py`, but logarithms. What is expected is passed down as probabilities:
every entry gives its own to the terms of its sum, in proportion to them.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from subchain.propagation.compiled import ordered_kernel
from subchain.propagation.trees.charts import (
    ARC_LEFT,
    ARC_RIGHT,
    GO_LEFT,
    GO_RIGHT,
    LEFT_HALF,
    LEFT_TURNED,
    N_INSIDE,
    RIGHT_HALF,
    RIGHT_TURNED,
    arcs_of,
    charts_of,
    decisions_of,
)


@ordered_kernel
def take_logs(room, n):
    """Replace the weights of a sentence by their logarithms."""
    room.arcs[: n * n] = np.log(room.arcs[: n * n])
    room.root[:n] = np.log(room.root[:n])
    room.decisions[: 8 * n] = np.log(room.decisions[: 8 * n])
    room.scales[:n] = 0.0


@ordered_kernel
def joined(one, other, first, last, is_best):
    """Return the largest one[k] + other[k], or the logarithm of the sum of their exponentials, over a range of k."""
    largest = -np.inf
    for k in range(first, last):
        largest = max(largest, one[k] + other[k])
    if is_best or largest == -np.inf:
        return largest
    total = 0.0
    for k in range(first, last):
        total += np.exp(one[k] + other[k] - largest)
    return largest + np.log(total)


@ordered_kernel
def fill_logs(room, n, is_best):
    """Fill the inside charts from logarithms of weights; return log Z, or the log weight of the best tree."""
    arcs, decisions, charts = arcs_of(room, n), decisions_of(room, n), charts_of(room, n)
    go_right, right, right_t, arc_right = charts[GO_RIGHT], charts[RIGHT_HALF], charts[RIGHT_TURNED], charts[ARC_RIGHT]
    go_left, left, left_t, arc_left = charts[GO_LEFT], charts[LEFT_HALF], charts[LEFT_TURNED], charts[ARC_LEFT]
    for i in range(n):
        left[i, i] = left_t[i, i] = decisions[i, 0]
        go_left[i, i] = decisions[i, 1]
        right[i, i] = right_t[i, i] = decisions[i, 4]
        go_right[i, i] = decisions[i, 5]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            arc_right[i, j] = arcs[i, j] + joined(go_right[i], left[j, 1:], i, j, is_best)
            arc_left[j, i] = arcs[j, i] + joined(right[i], go_left[j, 1:], i, j, is_best)
            open_right = joined(arc_right[i], right_t[j], i + 1, j + 1, is_best)
            open_left = joined(arc_left[j], left_t[i], i, j, is_best)
            right[i, j] = right_t[j, i] = open_right + decisions[i, 6]
            go_right[i, j] = open_right + decisions[i, 7]
            left[j, i] = left_t[i, j] = open_left + decisions[j, 2]
            go_left[j, i] = open_left + decisions[j, 3]
    halves = charts[N_INSIDE, 0]
    for r in range(n):
        halves[r] = left[r, 0] + right[r, n - 1]
    return joined(room.root, halves, 0, n, is_best)


@ordered_kernel
def _pass_on(share, one, other, first, last, to_one, to_other):
    """Add a probability to the entries of a sum, in proportion to its terms; see `joined`."""
    if share <= 0.0:
        return
    total = joined(one, other, first, last, False)
    for k in range(first, last):
        part = share * np.exp(one[k] + other[k] - total)
        to_one[k] += part
        to_other[k] += part


@ordered_kernel
def spread_logs(room, n, total, arcs_out, childless):
    """Write the posteriors of one sentence as `inside_outside.spread_outside` does; `total` is log Z."""
    charts = charts_of(room, n)
    go_right, right, right_t, arc_right = charts[GO_RIGHT], charts[RIGHT_HALF], charts[RIGHT_TURNED], charts[ARC_RIGHT]
    go_left, left, left_t, arc_left = charts[GO_LEFT], charts[LEFT_HALF], charts[LEFT_TURNED], charts[ARC_LEFT]
    shares = charts[N_INSIDE:]
    shares[:] = 0.0
    s_go_right, s_right, s_right_t, s_arc_right = shares[0], shares[1], shares[2], shares[3]
    s_go_left, s_left, s_left_t, s_arc_left = shares[4], shares[5], shares[6], shares[7]
    for r in range(n):
        arcs_out[r, r] = np.exp(room.root[r] + left[r, 0] + right[r, n - 1] - total)
        s_right[r, n - 1] += arcs_out[r, r]
        s_left[r, 0] += arcs_out[r, r]
    for length in range(n - 1, 0, -1):
        for i in range(n - length):
            j = i + length
            share = s_right[i, j] + s_right_t[j, i] + s_go_right[i, j]
            _pass_on(share, arc_right[i], right_t[j], i + 1, j + 1, s_arc_right[i], s_right_t[j])
            share = s_left[j, i] + s_left_t[i, j] + s_go_left[j, i]
            _pass_on(share, arc_left[j], left_t[i], i, j, s_arc_left[j], s_left_t[i])
            arcs_out[i, j], arcs_out[j, i] = s_arc_right[i, j], s_arc_left[j, i]
            _pass_on(arcs_out[i, j], go_right[i], left[j, 1:], i, j, s_go_right[i], s_left[j, 1:])
            _pass_on(arcs_out[j, i], right[i], go_left[j, 1:], i, j, s_right[i], s_go_left[j, 1:])
    for i in range(n):
        childless[i, 0] = s_left[i, i] + s_left_t[i, i]
        childless[i, 1] = s_right[i, i] + s_right_t[i, i]
