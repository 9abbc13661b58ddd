"""Weights and charts of one sentence under the dependency model with valence (Klein & Manning 2004).

A head generates its dependents on either side from the inside out. Before each it decides whether to stop, given its
tag, the side and whether it has a dependent there already; then it chooses the dependent's tag. Left and right halves
of a head are independent (split heads, Eisner & Satta 1999), so a chart has halves of spans, and sums take O(n³).

Charts are (16, n, n): eight tables of inside weights, then as many of derivatives. A right half of head i over words
i … j is at [i, j], a left half of head j over i … j at [j, i]; transposed tables make inner loops run along rows.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.compiled import kernel

Array = NDArray[np.float64]

LEFT, RIGHT = 0, 1
STOP, GO_ON = 0, 1
#: Decisions of a word: side × whether it has a dependent there × stop or go on.
N_DECISIONS = 8
#: Tables of the chart: halves that go on, finished halves and their transpose, halves that end in a dependent.
GO_RIGHT, RIGHT_HALF, RIGHT_TURNED, ARC_RIGHT, GO_LEFT, LEFT_HALF, LEFT_TURNED, ARC_LEFT = range(8)
N_INSIDE, N_TABLES = 8, 16


class Rules(NamedTuple):
    """Weights, or counts, of the rules over T tags.

    Attributes
    ----------
    root : (1, T)
    stop : (4 T, 2) stop and go on; row 4 · tag + 2 · side + whether the head has a dependent on this side
    attach : (2 T, T) tag of a dependent; row 2 · tag of the head + side
    """

    root: Array
    stop: Array
    attach: Array


class Room(NamedTuple):
    """Room of one thread for the longest sentence: flat arrays that kernels cut into tables.

    Attributes
    ----------
    arcs : (n × n) weight of each dependent (column) given each head (row)
    root : (n,) weight of each word as the root
    decisions : (n × 8) weights of stopping and going on
    scales : (n,) factor between each word and the next
    charts : (16 × n × n)
    items : (2 n, 3) halves that are left to be expanded into a tree
    """

    arcs: Array
    root: Array
    decisions: Array
    scales: Array
    charts: Array
    items: NDArray[np.int64]


@kernel
def make_room(n):
    """Return the room for sentences of at most n words."""
    return Room(
        np.empty(n * n), np.empty(n), np.empty(n * N_DECISIONS), np.empty(n), np.empty(N_TABLES * n * n),
        np.empty((2 * n + 1, 3), dtype=np.int64),
    )  # fmt: skip


@kernel
def arcs_of(room, n):
    """Return the table of weights of arcs, (n, n)."""
    return room.arcs[: n * n].reshape(n, n)


@kernel
def decisions_of(room, n):
    """Return the weights of decisions, (n, 8)."""
    return room.decisions[: n * N_DECISIONS].reshape(n, N_DECISIONS)


@kernel
def charts_of(room, n):
    """Return the charts, (16, n, n)."""
    return room.charts[: N_TABLES * n * n].reshape(N_TABLES, n, n)


@kernel
def weigh(tags, rules, room):
    """Look up the weights, or their logarithms, of one sentence."""
    n = tags.shape[0]
    arcs, decisions = arcs_of(room, n), decisions_of(room, n)
    for h in range(n):
        tag = np.int64(tags[h])
        room.root[h] = rules.root[0, tag]
        for row in range(4):
            decisions[h, 2 * row] = rules.stop[4 * tag + row, STOP]
            decisions[h, 2 * row + 1] = rules.stop[4 * tag + row, GO_ON]
        left, right = rules.attach[2 * tag + LEFT], rules.attach[2 * tag + RIGHT]
        for d in range(h):
            arcs[h, d] = left[tags[d]]
        arcs[h, h] = 0.0
        for d in range(h + 1, n):
            arcs[h, d] = right[tags[d]]


@kernel
def predict(tags, counts, totals, floors, room):
    """Fill the weights of one sentence from counts, which hold those of the prior; `totals` (2 T,) are of `attach`.

    `floors` (3,) are the smallest concentrations of the prior: taking shares out of counts must leave that much.
    """
    n = tags.shape[0]
    arcs, decisions = arcs_of(room, n), decisions_of(room, n)
    for h in range(n):
        tag = np.int64(tags[h])
        room.root[h] = max(counts.root[0, tag], floors[0])
        for row in range(4):
            stop = max(counts.stop[4 * tag + row, STOP], floors[1])
            go_on = max(counts.stop[4 * tag + row, GO_ON], floors[1])
            scale = 1.0 / (stop + go_on)
            decisions[h, 2 * row] = stop * scale
            decisions[h, 2 * row + 1] = go_on * scale
        left, right = counts.attach[2 * tag + LEFT], counts.attach[2 * tag + RIGHT]
        least = floors[2] * counts.attach.shape[1]
        of_left, of_right = 1.0 / max(totals[2 * tag + LEFT], least), 1.0 / max(totals[2 * tag + RIGHT], least)
        for d in range(h):
            arcs[h, d] = max(left[tags[d]], floors[2]) * of_left
        arcs[h, h] = 0.0
        for d in range(h + 1, n):
            arcs[h, d] = max(right[tags[d]], floors[2]) * of_right
    total = 0.0
    for weight in counts.root[0]:
        total += max(weight, floors[0])
    for h in range(n):
        room.root[h] /= total
