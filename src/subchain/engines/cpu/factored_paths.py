"""Most probable paths of low-rank chains whose transition matrix is too large to keep.

The path is exact: the best one over states, with the features summed out of each transition. Rows of the matrix are
made in blocks, at each position anew, and serve all sequences that run side by side; a position costs O(K² f) for all
of them, and O(K²) for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.messages import Messages
from subchain.engines.cpu.paths import for_kernels, states_array
from subchain.errors import InputError, impossible_error
from subchain.transitions.operators import Factored

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Bytes of a block of rows, and of the choices of sequences that run side by side.
BLOCK_BYTES, CHOICE_BYTES = 1 << 25, 1 << 28
#: Most bytes of the choices of one sequence.
MOST_BYTES = 1 << 33
#: Most sequences side by side.
MOST_LANES = 64


def viterbi(messages: Messages, out: NDArray[Any] | None = None) -> tuple[NDArray[Any], Array]:
    """Find the most probable path of every sequence; see `decode.viterbi`."""
    states = states_array(out, messages, ())
    with for_kernels(states) as decoded:
        return states, _best_paths(messages, decoded)


def _best_paths(messages: Messages, states: NDArray[Any]) -> Array:
    """Write the most probable path of every sequence into `states`, (N,); return their log probabilities."""
    data, n_states = messages.data, messages.surrogate.n_states
    needed = 4 * n_states * int(data.lengths.max(initial=0))
    if needed > MOST_BYTES:
        raise InputError(
            f"the most probable path of a sequence of {data.lengths.max()} positions through {n_states} states needs "
            f"{needed / 2**30:.1f} GiB of memory, above {MOST_BYTES / 2**30:.0f} GiB; decode shorter sequences, or use "
            "decoding='posterior'."
        )
    found = np.zeros(data.n_sequences)
    order = np.argsort(-data.lengths, kind="stable")
    impossible: dict[int, int] = {}
    first = 0
    while first < len(order) and data.lengths[order[first]] > 0:
        longest = int(data.lengths[order[first]])
        lanes = max(1, min(MOST_LANES, CHOICE_BYTES // (4 * n_states * longest)))
        chosen = order[first : first + lanes]
        chosen = chosen[data.lengths[chosen] > 0]
        _decode(messages, chosen, states, found, impossible)
        first += lanes
    if impossible:
        raise impossible_error(dict(sorted(impossible.items())))
    return found


def _decode(
    messages: Messages, sequences: Index, states: NDArray[Any], found: Array, impossible: dict[int, int]
) -> None:
    """Decode sequences side by side, the longest first."""
    starts, lengths = messages.data.offsets[sequences], messages.data.lengths[sequences]
    with np.errstate(divide="ignore"):
        logs = np.repeat(np.log(messages.surrogate.initial)[None], len(sequences), axis=0)
    assert isinstance(messages.operator, Factored)
    choices = []
    for step in range(int(lengths[0])):
        running = int(np.count_nonzero(lengths > step))
        if step:
            best, choice = _step(messages.operator, logs[:running])
            logs[:running] = best
            choices.append(choice)
        logs[:running] += messages.log_likelihood(starts[:running] + step)[1]
        dead = np.flatnonzero(~(logs[:running] > -np.inf).any(axis=1))
        for lane in dead.tolist():
            impossible.setdefault(int(sequences[lane]), step)
    found[sequences] = logs.max(axis=1)
    for lane, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        state = int(logs[lane].argmax())
        states[start + length - 1] = state
        for step in range(int(length) - 2, -1, -1):
            state = int(choices[step][lane, state])
            states[start + step] = state


def _step(operator: Factored, logs: Array) -> tuple[Array, NDArray[np.int32]]:
    """Return δ of the next position before its observation, and the best states before it, (n, K) both.

    Among equals the lowest state wins.
    """
    n_lanes, n_states = logs.shape
    best, choice = np.full(logs.shape, -np.inf), np.zeros(logs.shape, dtype=np.int32)
    rows = max(1, BLOCK_BYTES // (8 * n_states))
    for first in range(0, n_states, rows):
        block = np.log(operator.rows(slice(first, first + rows)))
        for lane in range(n_lanes):
            arriving = block + logs[lane, first : first + rows, None]
            here = arriving.argmax(axis=0)
            value = arriving[here, np.arange(n_states)]
            better = value > best[lane]
            best[lane, better] = value[better]
            choice[lane, better] = here[better] + first
    return best, choice
