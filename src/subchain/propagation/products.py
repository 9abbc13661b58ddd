"""Forward and backward passes for many states: one step of all lanes is one matrix product.

The same functions as in `lanes`, with the same tables; worth their overhead from a few tens of states on, where a step of
a few hundred lanes keeps the matrix units of the processor busy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.lanes import absorb_step, believe_step

Array = NDArray[np.float64]
Offsets = NDArray[np.int64]


def forward(
    likelihood: Array, transition: Array, start: Array, offsets: Offsets, alpha: Array, scale: Array
) -> None:
    """Filtered beliefs of every position; see `lanes.forward`."""
    transposed = transition.T
    for step in range(len(offsets) - 1):
        at, stop = offsets[step], offsets[step + 1]
        if step == 0:
            alpha[:, at:stop] = start
        else:
            before = offsets[step - 1]
            np.matmul(transposed, alpha[:, before : before + stop - at], out=alpha[:, at:stop])
        absorb_step(likelihood, alpha, at, stop, scale)


def backward(
    likelihood: Array, transposed: Array, stop: Array, offsets: Offsets, alpha: Array, scale: Array, beliefs: Array
) -> None:
    """Smoothed beliefs of every position; see `lanes.backward`."""
    transition = transposed.T
    beta = stop.copy()
    steps = len(offsets) - 1
    for step in range(steps - 1, -1, -1):
        at, count = offsets[step], offsets[step + 1] - offsets[step]
        if step + 1 < steps:
            after, running = offsets[step + 1], offsets[step + 2] - offsets[step + 1]
            np.matmul(transition, likelihood[:, after : after + running], out=beta[:, :running])
        believe_step(likelihood, alpha, at, count, scale, beta, beliefs)


def retreat(likelihood: Array, transposed: Array, offsets: Offsets, beta: Array) -> None:
    """Carry backward messages over all steps, in place; see `lanes.retreat`."""
    transition = transposed.T
    for step in range(len(offsets) - 2, -1, -1):
        beta *= likelihood[:, offsets[step] : offsets[step + 1]]
        np.matmul(transition, beta.copy(), out=beta)
        total = beta.sum(axis=0)
        beta /= np.where(total > 0.0, total, 1.0)


def pair_sums(alpha: Array, weighted: Array, offsets: Offsets, sums: Array) -> None:
    """Add Σ α_{t−1} ⊗ weighted_t to `sums`; runs of steps with the same number of lanes are one product."""
    counts = np.diff(offsets)
    steps = len(counts)
    step = 1
    while step < steps:
        last = step
        while last + 1 < steps and counts[last + 1] == counts[last] == counts[step - 1]:
            last += 1
        before, at, stop = offsets[step - 1], offsets[step], offsets[last + 1]
        sums += alpha[:, before : before + stop - at] @ weighted[:, at:stop].T
        step = last + 1


__all__ = ["backward", "forward", "pair_sums", "retreat"]
