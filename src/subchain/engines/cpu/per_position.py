"""What is believed about each position, written where the caller wants it: marginals, best states, predictive scores.

Each answer is a consumer of the engine's pass: it takes the messages of a tile and writes the rows of the tile's
positions into an array of the size of the data, which may be a file (`numpy.memmap`) of single or double precision.
Nothing else grows with the data. A pass may run a tile more than once; the last time counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from subchain.engines.cpu.consumers import LegalConsumer, TileRun
from subchain.engines.cpu.engine import CpuEngine
from subchain.engines.cpu.listed import LegalRun
from subchain.engines.cpu.log_space import LogBlock, LogChain
from subchain.engines.cpu.messages import Messages
from subchain.errors import InputError, impossible_error
from subchain.propagation import serial
from subchain.propagation.listed import passes as legal

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@njit(nogil=True, cache=True)
def _write_rows(table, positions, out):  # type: ignore[no-untyped-def]
    for column in range(positions.shape[0]):
        for k in range(table.shape[0]):
            out[positions[column], k] = table[k, column]


class _Writer(LegalConsumer[None]):
    """A consumer that writes rows of `out`, (N, ...), and returns nothing."""

    def __init__(self, out: NDArray[Any]) -> None:
        self.out = np.asarray(out)

    def begin(self) -> None:
        return None


class SmoothedBeliefs(_Writer):
    """Probability of each state given the whole sequence, (N, K)."""

    def tile(self, result: None, run: TileRun) -> None:
        _write_rows(run.marginals, run.filtered.positions, self.out)

    def block(self, result: None, run: LegalRun) -> None:
        legal.spread(run.marginals, run.block.lists, self.out[run.block.positions])

    def hard(self, result: None, sequence: int, block: LogBlock) -> None:
        _write_rows(block.marginals, block.positions, self.out)


class FilteredBeliefs(_Writer):
    """Probability of each state given the sequence up to the position, (N, K)."""

    smooth = False

    def tile(self, result: None, run: TileRun) -> None:
        _write_rows(run.filtered.alpha, run.filtered.positions, self.out)

    def block(self, result: None, run: LegalRun) -> None:
        legal.spread(run.alpha, run.block.lists, self.out[run.block.positions])

    def hard(self, result: None, sequence: int, block: LogBlock) -> None:
        _write_rows(block.alpha, block.positions, self.out)


class BestStates(_Writer):
    """The most probable state of each position given the whole sequence, (N,); the lowest among equals."""

    def tile(self, result: None, run: TileRun) -> None:
        self.out[run.filtered.positions] = run.marginals.argmax(axis=0)

    def block(self, result: None, run: LegalRun) -> None:
        legal.best_states(run.marginals, run.block.lists, self.out[run.block.positions])

    def hard(self, result: None, sequence: int, block: LogBlock) -> None:
        self.out[block.positions] = block.marginals.argmax(axis=0)


class BeliefsOfStates(_Writer):
    """Probability of one given state of each position given the whole sequence, (N,)."""

    def __init__(self, out: NDArray[Any], states: NDArray[Any]) -> None:
        super().__init__(out)
        self.states = states

    def tile(self, result: None, run: TileRun) -> None:
        self._choose(run.filtered.positions, run.marginals)

    def block(self, result: None, run: LegalRun) -> None:
        positions = run.block.positions
        legal.entries_of(run.marginals, run.block.lists, self.states[positions], self.out[positions])

    def hard(self, result: None, sequence: int, block: LogBlock) -> None:
        self._choose(block.positions, block.marginals)

    def _choose(self, positions: Index, marginals: Array) -> None:
        self.out[positions] = marginals[self.states[positions], np.arange(len(positions))]


class LogIncrements(_Writer):
    """Log probability of each observation given those before it in its sequence, (N,)."""

    smooth = False

    def __init__(self, out: NDArray[Any], messages: Messages) -> None:
        super().__init__(out)
        self.messages = messages

    def tile(self, result: None, run: TileRun) -> None:
        with np.errstate(divide="ignore"):  # sequences that end here are done again in log space
            self.out[run.filtered.positions] = np.log(run.filtered.scale) + run.filtered.shift

    def block(self, result: None, run: LegalRun) -> None:
        with np.errstate(divide="ignore"):
            self.out[run.block.positions] = np.log(run.scale) + run.shift

    def hard(self, result: None, sequence: int, block: LogBlock) -> None:
        if not block.is_first:  # blocks come from the end; the sums that are needed come from the beginning
            return
        chain, before = log_chain(self.messages, sequence), 0.0
        for number in range(len(chain.predicted)):
            positions, joint = log_joint(chain, number)
            so_far = np.logaddexp.reduce(joint, axis=1)
            self.out[positions] = np.diff(so_far, prepend=before)
            before = so_far[-1]


def smooth(engine: CpuEngine, messages: Messages, out: NDArray[Any]) -> Array:
    """Write the smoothed marginals of all positions into `out` (N, K); return each sequence's log likelihood."""
    return _run(engine, messages, SmoothedBeliefs(out))


def filter(engine: CpuEngine, messages: Messages, out: NDArray[Any]) -> Array:
    """Write the filtered marginals of all positions into `out` (N, K); return each sequence's log likelihood."""
    return _run(engine, messages, FilteredBeliefs(out))


def best_states(engine: CpuEngine, messages: Messages, out: NDArray[Any]) -> Array:
    """Write the most probable state of each position into `out` (N,); return each sequence's log likelihood."""
    return _run(engine, messages, BestStates(states_array(out, messages, ())))


def marginals_of_states(engine: CpuEngine, messages: Messages, states: NDArray[Any], out: NDArray[Any]) -> Array:
    """Write the probability of each position's given state into `out` (N,); return each sequence's log likelihood."""
    return _run(engine, messages, BeliefsOfStates(out, states))


def log_increments(engine: CpuEngine, messages: Messages, out: NDArray[Any]) -> Array:
    """Write each observation's log probability given those before it into `out` (N,); return the sequences' sums."""
    return _run(engine, messages, LogIncrements(out, messages))


def states_array(out: NDArray[Any] | None, messages: Messages, shape: tuple[int, ...]) -> NDArray[Any]:
    """An array for the states of all positions, `shape` + (N,): new, or the given one if it can hold them."""
    n_states, wanted = messages.surrogate.n_states, (*shape, messages.data.n_observations)
    if out is None:
        return np.empty(wanted, dtype=np.int32)
    if out.shape != wanted or out.dtype.kind not in "iu" or np.iinfo(out.dtype).max < n_states - 1:
        raise InputError(
            f"out is {out.dtype} of shape {out.shape}, but the states need the shape {wanted} and integers up to "
            f"{n_states - 1}."
        )
    return out


def log_chain(messages: Messages, sequence: int) -> LogChain:
    """A sequence that was run in log space, ready to be run again."""
    start, stop = messages.data.offsets[sequence : sequence + 2].tolist()
    return LogChain(messages, start, stop)


def log_joint(chain: LogChain, block: int) -> tuple[Index, Array]:
    """Positions of one block of such a sequence, and the log joint probability (n, K) of state and past."""
    positions = np.arange(chain.edges[block], chain.edges[block + 1])
    _, logs = chain.messages.log_likelihood(positions)
    joint = np.empty_like(logs)
    serial.log_forward(logs, chain.log_transition, chain.predicted[block].copy(), joint)
    return positions, joint


def _run(engine: CpuEngine, messages: Messages, consumer: _Writer) -> Array:
    _, totals, impossible = engine.run(messages, consumer)
    if impossible:
        raise impossible_error(impossible)
    return totals
