"""Forward and backward passes for many states: one step of all lanes is one matrix product, or two with factors.

The same functions as in `lanes`, with the same tables; worth their overhead from about a hundred states on, where a
step of a hundred lanes or more keeps the matrix units of the processor busy.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.factors import Factors
from subchain.propagation.lanes.recursions import absorb_step, believe_step, log_totals

Array = NDArray[np.float64]
Offsets = NDArray[np.int64]

#: Columns that make a product of pair sums worth its overhead.
ENOUGH = 1024


def carry(matrix: Array | Factors, table: Array, out: Array) -> None:
    """Write the transposed matrix times a table into `out`."""
    if isinstance(matrix, Factors):
        matrix.carry(table, out)
    else:
        np.matmul(matrix.T, table, out=out)


def forward(
    likelihood: Array, transition: Array | Factors, start: Array, offsets: Offsets, alpha: Array, scale: Array
) -> None:
    """Filtered marginals of every position; see `lanes.forward`."""
    for step in range(len(offsets) - 1):
        at, stop = offsets[step], offsets[step + 1]
        if step == 0:
            alpha[:, at:stop] = start
        else:
            before = offsets[step - 1]
            carry(transition, alpha[:, before : before + stop - at], alpha[:, at:stop])
        absorb_step(likelihood, alpha, at, stop, scale)


def backward(
    likelihood: Array, transposed: Array | Factors, stop: Array, offsets: Offsets, alpha: Array, scale: Array,
    marginals: Array,
) -> None:  # fmt: skip
    """Smoothed marginals of every position; see `lanes.backward`."""
    beta = stop.copy()
    steps = len(offsets) - 1
    for step in range(steps - 1, -1, -1):
        at, count = offsets[step], offsets[step + 1] - offsets[step]
        if step + 1 < steps:
            after, running = offsets[step + 1], offsets[step + 2] - offsets[step + 1]
            carry(transposed, likelihood[:, after : after + running], beta[:, :running])
        believe_step(likelihood, alpha, at, count, scale, beta, marginals)


def forward_backward(
    likelihood: Array,
    transition: Array | Factors,
    transposed: Array | Factors,
    start: Array,
    stop: Array,
    offsets: Offsets,
    shift: Array,
    alpha: Array,
    scale: Array,
    marginals: Array,
    totals: Array,
) -> None:
    """`forward`, `log_totals` and `backward`; see `lanes.forward_backward`."""
    forward(likelihood, transition, start, offsets, alpha, scale)
    log_totals(scale, shift, offsets, totals)
    backward(likelihood, transposed, stop, offsets, alpha, scale, marginals)


def advance(likelihood: Array, transition: Array | Factors, start: Array, offsets: Offsets, last: Array) -> None:
    """Filtered marginals of the last positions alone; see `lanes.advance`."""
    running = 0
    for at, stop in pairwise(offsets):
        count = stop - at
        carry(transition, last[:, :running].copy(), last[:, :running])
        last[:, running:count] = start[:, running:count]
        last[:, :count] *= likelihood[:, at:stop]
        _normalize(last[:, :count])
        running = count


def retreat(likelihood: Array, transposed: Array | Factors, stop: Array, offsets: Offsets, before: Array) -> None:
    """Backward messages of the positions before the first alone; see `lanes.retreat`."""
    running = 0
    for at, end in reversed(list(pairwise(offsets))):
        count = end - at
        before[:, running:count] = stop[:, running:count]
        carry(transposed, before[:, :count] * likelihood[:, at:end], before[:, :count])
        _normalize(before[:, :count])
        running = count


def approach(
    likelihood: Array,
    transition: Array | Factors,
    transposed: Array | Factors,
    start: Array,
    stop: Array,
    offsets: Offsets,
    last: Array,
    before: Array,
) -> None:
    """`advance` and `retreat`; see `lanes.approach`."""
    advance(likelihood, transition, start, offsets, last)
    if stop.shape[1]:
        retreat(likelihood, transposed, stop, offsets, before)


def _normalize(messages: Array) -> None:
    total = messages.sum(axis=0)
    messages /= np.where(total > 0.0, total, 1.0)


def pair_sums(alpha: Array, weighted: Array, offsets: Offsets, sums: Array) -> None:
    """Add Σ α_{t−1} ⊗ weighted_t over all steps and lanes to `sums`; see `lanes.pair_sums`."""
    for before, after in paired(alpha, weighted, offsets):
        sums += before @ after.T


def paired(alpha: Array, weighted: Array, offsets: Offsets) -> Iterator[tuple[Array, Array]]:
    """Yield α_{t−1} and weighted_t of all steps and lanes, (K, n) each, in blocks that are worth a product."""
    at, waiting = int(offsets[1]), list[Array]()
    for before, stop in _runs(offsets):
        start = at + sum(part.shape[1] for part in waiting)
        waiting.append(alpha[:, before : before + stop - start])
        if stop - at >= ENOUGH or stop == offsets[-1]:
            predecessors = waiting[0] if len(waiting) == 1 else np.concatenate(waiting, axis=1)
            yield predecessors, weighted[:, at:stop]
            at, waiting = stop, []


def _runs(offsets: Offsets) -> Iterator[tuple[int, int]]:
    """Stretches of columns whose predecessors are contiguous: first predecessor, and the column after the stretch.

    They begin at the second step and follow one another.
    """
    counts = np.diff(offsets)
    last = np.append(np.flatnonzero(counts[1:] != counts[:-1]) + 1, len(counts) - 1)
    step = 1
    for end in np.unique(last[last > 0]):
        yield int(offsets[step - 1]), int(offsets[end + 1])
        step = end + 1


__all__ = ["approach", "backward", "carry", "forward", "forward_backward", "log_totals", "pair_sums", "paired"]
