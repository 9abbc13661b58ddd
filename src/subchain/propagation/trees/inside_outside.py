"""Inside-outside of one sentence with scaled probabilities: the log likelihood and all expected counts.

A factor for each boundary between two words keeps the weights of spans near one: it is the inverse weight of the better
arc between the two. Every span has the factors of the boundaries within it, so sums need no other care. Where the
numbers still leave the range of doubles, `expect_tree` takes logarithms instead (`log_space.py`).

The outside pass is the derivative of the inside pass, taken backwards: what is expected of an entry is the entry times
the derivative of log Z.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from subchain.propagation.compiled import kernel, small_kernel
from subchain.propagation.trees.charts import (
    ARC_LEFT,
    ARC_RIGHT,
    GO_LEFT,
    GO_RIGHT,
    LEFT,
    LEFT_HALF,
    LEFT_TURNED,
    N_INSIDE,
    RIGHT_HALF,
    RIGHT_TURNED,
    arcs_of,
    charts_of,
    decisions_of,
)
from subchain.propagation.trees.log_space import fill_logs, spread_logs, take_logs

#: Scaled weights above the first, and totals below the second, are computed in log space.
MOST, LEAST = 1e100, 1e-100


@kernel
def scale_sentence(room, n):
    """Choose the factors between words; return the logarithm of their product."""
    arcs, decisions = arcs_of(room, n), decisions_of(room, n)
    found = 0.0
    for b in range(n - 1):
        right = arcs[b, b + 1] * decisions[b, 5] * decisions[b, 6] * decisions[b + 1, 0]
        left = arcs[b + 1, b] * decisions[b + 1, 1] * decisions[b + 1, 2] * decisions[b, 4]
        largest = max(right, left)
        room.scales[b] = 1.0 / largest if largest > LEAST else 1.0
        found += np.log(room.scales[b])
    room.scales[n - 1] = 1.0
    return found


@kernel
def fill_inside(room, n):
    """Fill the inside charts; return the total weight and the largest entry."""
    arcs, decisions, charts = arcs_of(room, n), decisions_of(room, n), charts_of(room, n)
    go_right, right, right_t, arc_right = charts[GO_RIGHT], charts[RIGHT_HALF], charts[RIGHT_TURNED], charts[ARC_RIGHT]
    go_left, left, left_t, arc_left = charts[GO_LEFT], charts[LEFT_HALF], charts[LEFT_TURNED], charts[ARC_LEFT]
    largest = 0.0
    for i in range(n):
        left[i, i] = left_t[i, i] = decisions[i, 0]
        go_left[i, i] = decisions[i, 1] * (room.scales[i - 1] if i else 1.0)
        right[i, i] = right_t[i, i] = decisions[i, 4]
        go_right[i, i] = decisions[i, 5] * room.scales[i]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            of_right, of_left = 0.0, 0.0
            for k in range(i, j):
                of_right += go_right[i, k] * left[j, k + 1]
                of_left += right[i, k] * go_left[j, k + 1]
            arc_right[i, j] = arcs[i, j] * of_right
            arc_left[j, i] = arcs[j, i] * of_left
            open_right, open_left = 0.0, 0.0
            for k in range(i + 1, j + 1):
                open_right += arc_right[i, k] * right_t[j, k]
            for k in range(i, j):
                open_left += arc_left[j, k] * left_t[i, k]
            right[i, j] = right_t[j, i] = open_right * decisions[i, 6]
            go_right[i, j] = open_right * decisions[i, 7] * room.scales[j]
            left[j, i] = left_t[i, j] = open_left * decisions[j, 2]
            go_left[j, i] = open_left * decisions[j, 3] * (room.scales[i - 1] if i else 1.0)
            largest = max(largest, max(max(of_right, of_left), max(go_right[i, j], go_left[j, i])))
            largest = max(largest, max(open_right, open_left))
    total = 0.0
    for r in range(n):
        total += room.root[r] * left[r, 0] * right[r, n - 1]
    return total, largest


@kernel
def spread_outside(room, n, total, arcs_out, childless):
    """Write the posterior of every arc, that of the root on the diagonal, and of having no child on either side."""
    arcs, decisions, charts = arcs_of(room, n), decisions_of(room, n), charts_of(room, n)
    go_right, right, right_t, arc_right = charts[GO_RIGHT], charts[RIGHT_HALF], charts[RIGHT_TURNED], charts[ARC_RIGHT]
    go_left, left, left_t, arc_left = charts[GO_LEFT], charts[LEFT_HALF], charts[LEFT_TURNED], charts[ARC_LEFT]
    slopes = charts[N_INSIDE:]
    slopes[:] = 0.0
    d_go_right, d_right, d_right_t, d_arc_right = slopes[0], slopes[1], slopes[2], slopes[3]
    d_go_left, d_left, d_left_t, d_arc_left = slopes[4], slopes[5], slopes[6], slopes[7]
    for r in range(n):
        weight = room.root[r] / total
        arcs_out[r, r] = weight * left[r, 0] * right[r, n - 1]
        d_right[r, n - 1] += weight * left[r, 0]
        d_left[r, 0] += weight * right[r, n - 1]
    for length in range(n - 1, 0, -1):
        for i in range(n - length):
            j = i + length
            scale = room.scales[i - 1] if i else 1.0
            slope = (d_right[i, j] + d_right_t[j, i]) * decisions[i, 6]
            slope += d_go_right[i, j] * decisions[i, 7] * room.scales[j]
            other = (d_left[j, i] + d_left_t[i, j]) * decisions[j, 2]
            other += d_go_left[j, i] * decisions[j, 3] * scale
            for k in range(i + 1, j + 1):
                d_arc_right[i, k] += slope * right_t[j, k]
                d_right_t[j, k] += slope * arc_right[i, k]
            for k in range(i, j):
                d_arc_left[j, k] += other * left_t[i, k]
                d_left_t[i, k] += other * arc_left[j, k]
            arcs_out[i, j] = d_arc_right[i, j] * arc_right[i, j]
            arcs_out[j, i] = d_arc_left[j, i] * arc_left[j, i]
            slope, other = d_arc_right[i, j] * arcs[i, j], d_arc_left[j, i] * arcs[j, i]
            for k in range(i, j):
                d_go_right[i, k] += slope * left[j, k + 1]
                d_left[j, k + 1] += slope * go_right[i, k]
                d_right[i, k] += other * go_left[j, k + 1]
                d_go_left[j, k + 1] += other * right[i, k]
    for i in range(n):
        childless[i, 0] = (d_left[i, i] + d_left_t[i, i]) * left[i, i]
        childless[i, 1] = (d_right[i, i] + d_right_t[i, i]) * right[i, i]


@kernel
def fill_charts(room, n):
    """Fill the inside charts; return log Z, the total to divide by, and whether the charts are in logarithms."""
    log_scale = scale_sentence(room, n)
    total, largest = fill_inside(room, n)
    if largest <= MOST and total >= LEAST:
        return np.log(total) - log_scale, total, False
    take_logs(room, n)
    return fill_logs(room, n, False), 1.0, True


@kernel
def expect_tree(room, n, arcs_out, childless):
    """Write what is expected of one sentence, see `spread_outside`.

    Return its log likelihood, perhaps −inf, and whether the weights in the room are logarithms now.
    """
    found, total, is_log = fill_charts(room, n)
    if not is_log:
        spread_outside(room, n, total, arcs_out, childless)
    elif found > -np.inf:
        spread_logs(room, n, found, arcs_out, childless)
    else:
        arcs_out[:] = 0.0
        childless[:] = 0.0
    return found, is_log


@small_kernel
def _log_share(expected, weight, is_log):
    """Return an expected count times the log of its weight; nothing for what is not expected."""
    if expected <= 0.0:
        return 0.0
    return expected * (weight if is_log else np.log(weight))


@kernel
def entropy_of(room, n, log_normalizer, is_log, arcs_out, childless):
    """Return the entropy of the trees of one sentence: log Z minus the expected log weight."""
    arcs, decisions = arcs_of(room, n), decisions_of(room, n)
    found = log_normalizer
    for h in range(n):
        found -= _log_share(arcs_out[h, h], room.root[h], is_log)
        for side in range(2):
            expected, of_side = 0.0, decisions[h, 4 * side : 4 * side + 4]
            for d in range(0 if side == LEFT else h + 1, h if side == LEFT else n):
                found -= _log_share(arcs_out[h, d], arcs[h, d], is_log)
                expected += arcs_out[h, d]
            none = min(childless[h, side], 1.0)
            found -= _log_share(none, of_side[0], is_log) + _log_share(1.0 - none, of_side[1], is_log)
            found -= _log_share(1.0 - none, of_side[2], is_log)
            found -= _log_share(expected - (1.0 - none), of_side[3], is_log)
    return found
