"""One tree out of the charts of a sentence, from the top down: the best one, or a draw."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from subchain.propagation.compiled import ordered_kernel
from subchain.propagation.trees.charts import (
    ARC_LEFT,
    ARC_RIGHT,
    GO_LEFT,
    GO_RIGHT,
    LEFT,
    LEFT_HALF,
    LEFT_TURNED,
    N_INSIDE,
    RIGHT,
    RIGHT_HALF,
    RIGHT_TURNED,
    charts_of,
)
from subchain.propagation.trees.log_space import joined


@ordered_kernel
def choose(one, other, first, last, is_log, uniform):
    """Return a k in proportion to its term, one[k] · other[k] or exp(one[k] + other[k]); the largest if uniform < 0."""
    if uniform < 0.0:
        best = first
        for k in range(first + 1, last):
            if one[k] + other[k] > one[best] + other[best]:
                best = k
        return best
    total = 0.0
    if is_log:
        total = joined(one, other, first, last, False)
        left = uniform
    else:
        for k in range(first, last):
            total += one[k] * other[k]
        left = uniform * total
    chosen = first
    for k in range(first, last):
        term = np.exp(one[k] + other[k] - total) if is_log else one[k] * other[k]
        if term > 0.0:
            chosen = k
            left -= term
            if left < 0.0:
                break
    return chosen


@ordered_kernel
def expand_tree(room, n, is_log, uniforms, heads):
    """Write the head of every word, −1 for the root; `uniforms` (2 n,) are random numbers, or −1 for the best tree."""
    charts, items = charts_of(room, n), room.items
    go_right, right, right_t, arc_right = charts[GO_RIGHT], charts[RIGHT_HALF], charts[RIGHT_TURNED], charts[ARC_RIGHT]
    go_left, left, left_t, arc_left = charts[GO_LEFT], charts[LEFT_HALF], charts[LEFT_TURNED], charts[ARC_LEFT]
    halves = charts[N_INSIDE, 0]
    for r in range(n):
        halves[r] = left[r, 0] + right[r, n - 1] if is_log else left[r, 0] * right[r, n - 1]
    root = choose(room.root, halves, 0, n, is_log, uniforms[0])
    heads[root] = -1
    items[0, 0], items[0, 1], items[0, 2] = LEFT, root, 0
    items[1, 0], items[1, 1], items[1, 2] = RIGHT, root, n - 1
    count, used = 2, 1
    while count:
        count -= 1
        side, head, end = items[count, 0], items[count, 1], items[count, 2]
        if head == end:
            continue
        for row in range(3):
            items[count + row, 0] = side
        if side == RIGHT:
            child = choose(arc_right[head], right_t[end], head + 1, end + 1, is_log, uniforms[used])
            split = choose(go_right[head], left[child, 1:], head, child, is_log, uniforms[used + 1])
            items[count + 2, 0], items[count + 2, 2] = LEFT, split + 1
            items[count, 2] = split
        else:
            child = choose(arc_left[head], left_t[end], end, head, is_log, uniforms[used])
            split = choose(right[child], go_left[head, 1:], child, head, is_log, uniforms[used + 1])
            items[count + 2, 0], items[count + 2, 2] = RIGHT, split
            items[count, 2] = split + 1
        heads[child] = head
        items[count, 1] = head
        items[count + 1, 1], items[count + 1, 2] = child, end
        items[count + 2, 1] = child
        used += 2
        count += 3


@ordered_kernel
def mark_tree(heads, arcs_out, childless):
    """Write a tree as posteriors of zero and one; see `inside_outside.spread_outside`."""
    arcs_out[:] = 0.0
    childless[:] = 1.0
    for d in range(heads.shape[0]):
        h = heads[d]
        if h < 0:
            arcs_out[d, d] = 1.0
        else:
            arcs_out[h, d] = 1.0
            childless[h, 1 if d > h else 0] = 0.0
