"""Sampling of Markov chains by inversion of the cumulative transition rows, block by block.

A path needs one uniform number per position and depends only on the last state, so the concatenated blocks are the same
path for every size of block.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.errors import InputError
from subchain.numerics.compilation import compiled

#: Positions per block: a few megabytes of scratch memory, and negligible overhead per block.
BLOCK_SIZE = 1 << 18


def sample_chain(initial: ArrayLike, transition: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw one path of a Markov chain.

    Use it if you need only the hidden states, or add observations of your own.

    Parameters
    ----------
    initial : array of shape (n_states,)
        Probabilities of the first state.
    transition : array of shape (n_states, n_states)
        Row *j* holds the probabilities of the state that follows state *j*.
    n : int
        Number of positions.
    rng : numpy.random.Generator
        Source of randomness; advanced by `n` uniform numbers.

    Returns
    -------
    array of shape (n,), int32

    Examples
    --------
    >>> import numpy as np
    >>> sample_chain([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]], 5, np.random.default_rng(0))
    array([0, 1, 0, 1, 0], dtype=int32)
    """
    return sample_paths(initial, transition, np.array([0, positive("n", n)]), rng)


def sample_paths(
    initial: ArrayLike, transition: ArrayLike, offsets: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int32]:
    """Draw the paths of many sequences, concatenated, (N,)."""
    states = np.empty(offsets[-1], dtype=np.int32)
    filled = 0
    for block in path_blocks(initial, transition, offsets, rng):
        states[filled : filled + len(block)] = block
        filled += len(block)
    return states


def path_blocks(
    initial: ArrayLike,
    transition: ArrayLike,
    offsets: NDArray[np.int64],
    rng: np.random.Generator,
    block_size: int = BLOCK_SIZE,
) -> Iterator[NDArray[np.int32]]:
    """Yield the concatenated paths of many sequences in blocks of `block_size` positions.

    Sequence *i* has the positions offsets[i] … offsets[i + 1] − 1; none is empty.
    """
    cumulative = _cumulative_chain(initial, transition)
    start_row = len(cumulative) - 1
    row = start_row
    for start in range(0, int(offsets[-1]), block_size):
        stop = min(start + block_size, int(offsets[-1]))
        first, last = np.searchsorted(offsets, [start + 1, stop])
        cuts = np.concatenate([[0], offsets[first:last] - start, [stop - start]])
        if offsets[first - 1] == start:
            row = start_row
        states = np.empty(stop - start, dtype=np.int32)
        _walk(cumulative, row, cuts, rng.random(stop - start), states)
        row = int(states[-1])
        yield states


def cumulative_rows(name: str, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cumulative sums of the rows, after a check that every row is a distribution.

    Each row is exactly one from its last possible outcome on, so that an impossible outcome is never drawn.
    """
    if not np.all(np.isfinite(probabilities)) or np.any(probabilities < 0):
        row = int(np.argmin(np.all(np.isfinite(probabilities) & (probabilities >= 0), axis=1)))
        raise InputError(
            f"{name}, row {row}: probabilities must be finite and not negative; given {probabilities[row]}."
        )
    totals = probabilities.sum(axis=1)
    if not np.allclose(totals, 1.0, rtol=0.0, atol=1e-6):
        row = int(np.argmax(np.abs(totals - 1.0)))
        raise InputError(
            f"{name}, row {row}: probabilities must sum to 1, these sum to {totals[row]:.6g}; divide by the sum."
        )
    cumulative = np.cumsum(probabilities, axis=1)
    rows: NDArray[np.float64] = cumulative / cumulative[:, -1:]
    return rows


def positive(name: str, value: int) -> int:
    """Return `value`; raise an `InputError` that names it if it is below one."""
    if value < 1:
        raise InputError(f"{name} must be at least 1; given {value}.")
    return value


def _cumulative_chain(initial: ArrayLike, transition: ArrayLike) -> NDArray[np.float64]:
    """Return the cumulative transition rows with the cumulative initial distribution as last row, (K + 1, K)."""
    first = np.asarray(initial, dtype=np.float64)
    rows = np.asarray(transition, dtype=np.float64)
    if first.ndim != 1 or rows.shape != (len(first), len(first)):
        raise InputError(
            "initial must have shape (n_states,) and transition (n_states, n_states); "
            f"given {first.shape} and {rows.shape}."
        )
    return np.vstack([cumulative_rows("transition", rows), cumulative_rows("initial", first[None])])


@compiled()
def first_above(cumulative: NDArray[np.float64], point: float) -> int:
    """Return the index of the first entry of a cumulative distribution that is greater than `point`."""
    low, high = 0, len(cumulative) - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > point:
            high = middle
        else:
            low = middle + 1
    return low


@compiled()
def _walk(
    cumulative: NDArray[np.float64],
    row: int,
    cuts: NDArray[np.int64],
    uniforms: NDArray[np.float64],
    states: NDArray[np.int32],
) -> None:
    """Write the paths between the cuts; the first one continues from state `row`, the others start new sequences."""
    for i in range(len(cuts) - 1):
        if i > 0:
            row = len(cumulative) - 1
        for t in range(cuts[i], cuts[i + 1]):
            row = first_above(cumulative[row], uniforms[t])
            states[t] = row
