"""Paths of all sequences drawn from their posterior, on all cores, in memory that does not grow with a chain's length.

The engine filters; this file walks back through each tile while its messages are at hand. Sequences of one piece are
drawn in one pass. Chains that were cut take two: in the first each piece finds out where it would be entered, whatever
follows it; once these maps are followed from the end, the second writes the paths. Draws depend on the seed, the path
and the position alone (see `propagation.backward_sampling`), so the two passes meet the same ones. Sequences that the
first pass has left to log space are drawn there, and the second pass does not visit them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.consumers import Compiled, Consumer, TileRun, suits
from subchain.engines.cpu.log_space import LogBlock, LogChain
from subchain.engines.cpu.messages import Messages
from subchain.engines.cpu.partition import Partition
from subchain.engines.cpu.passes import run_pass
from subchain.engines.cpu.workspace import Workers
from subchain.errors import InputError
from subchain.numerics.random import key_of
from subchain.propagation.backward_sampling import draw, draw_log, enter, follow, log_onward_of
from subchain.propagation.lanes.outcomes import Draws
from subchain.propagation.layout import Walks
from subchain.transitions.operators import Dense

Index = NDArray[np.int64]


class _Entries(NamedTuple):
    """Maps of some pieces: `first` (lanes, n, K) is the state that enters a piece, given the state that follows it."""

    pieces: Index
    is_last: NDArray[np.bool_]
    first: NDArray[Any]


def sample_paths(
    workers: Workers, messages: Messages, n: int, seed: np.random.SeedSequence, out: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Draw paths of all sequences from their distribution given all observations.

    Parameters
    ----------
    workers : threads that share the work
    messages : the model and the data
    n : number of paths
    seed : decides on the paths, whoever computes them; path i is the same for any `n`
    out : (n, N) array of integers, possibly memory-mapped; int32 in memory if not given

    Returns
    -------
    states : (n, N), each row a path of every sequence, end to end

    Raises
    ------
    ImpossibleSequenceError
        If a sequence has no path.
    """
    states = states_array(out, messages, (n,))
    with for_kernels(states) as drawn:
        survey = _Survey(messages, key_of(seed), drawn)
        results, scores = run_pass(workers, messages, survey)
        scores.checked()
        maps = [entries for group in results for entries in group]
        if maps:
            chosen = np.setdiff1d(np.arange(messages.data.n_sequences), survey.hard_sequences)
            run_pass(workers, messages, _Write(messages, survey.key, survey.states, _following(maps)), chosen)
    return states


class _Survey(Consumer[list[_Entries]]):
    """Draws sequences of one piece; finds out how the pieces of others are entered."""

    smooth = False

    def __init__(self, messages: Messages, key: NDArray[np.uint64], states: NDArray[Any]) -> None:
        self.messages, self.key, self.states = messages, key, states
        self.hard_sequences: list[int] = []

    @property
    def compiled(self) -> Compiled | None:
        return _drawn(self.messages, self.key, self.states, np.empty((0, len(self.states)), dtype=np.int64))

    def begin(self) -> list[_Entries]:
        return []

    def adopt(self, result: list[_Entries], cut: Partition, outputs: Draws) -> None:
        pieces = np.flatnonzero(~(cut.is_first & cut.is_last))
        if len(pieces):
            result.append(_Entries(pieces, cut.is_last[pieces], outputs.first[pieces]))

    def tile(self, result: list[_Entries], run: TileRun) -> None:
        alpha, into, is_last = run.filtered.alpha, self.messages.kernels.forms.into, _is_last(run, self.messages)
        whole, cut = np.flatnonzero(run.is_first & is_last), np.flatnonzero(~(run.is_first & is_last))
        nothing, n_states = np.full(len(whole), -1), len(alpha)
        first = np.empty((len(cut), len(self.states), n_states), dtype=_entry_type(n_states))
        for path, states in enumerate(self.states):
            draw(alpha, into, _walks(run, whole), nothing, self.key, path, states)
            enter(alpha, into, _walks(run, cut), is_last[cut], self.key, path, first[:, path])
        if len(cut):
            result.append(_Entries(run.filtered.tile.pieces[cut], is_last[cut], first))

    def hard(self, result: list[_Entries], sequence: int, block: LogBlock) -> None:
        if block.is_first:
            self.hard_sequences.append(sequence)
            _draw_hard(self.messages, sequence, self.key, self.states)


class _Write(Consumer[None]):
    """Draws the pieces of cut sequences, `following` (P, n) being the states after each piece."""

    smooth = False

    def __init__(self, messages: Messages, key: NDArray[np.uint64], states: NDArray[Any], following: Index) -> None:
        self.messages, self.key, self.states, self.following = messages, key, states, following

    @property
    def compiled(self) -> Compiled | None:
        return _drawn(self.messages, self.key, self.states, self.following)

    def begin(self) -> None:
        return None

    def tile(self, result: None, run: TileRun) -> None:
        alpha, into = run.filtered.alpha, self.messages.kernels.forms.into
        cut = np.flatnonzero(~(run.is_first & _is_last(run, self.messages)))
        walks, following = _walks(run, cut), self.following[run.filtered.tile.pieces[cut]]
        for path, states in enumerate(self.states):
            draw(alpha, into, walks, following[:, path], self.key, path, states)

    def hard(self, result: None, sequence: int, block: LogBlock) -> None:
        pass


def _drawn(messages: Messages, key: NDArray[np.uint64], states: NDArray[Any], following: Index) -> Compiled | None:
    """What compiled passes need to know to draw paths; None if they cannot write them."""
    operator = messages.operator
    if not suits(states, np.int32) or not isinstance(operator, Dense):
        return None
    n_states = messages.surrogate.n_states

    def outputs(cut: Partition) -> Draws:
        n_pieces = len(cut.start) if cut.is_cut and not len(following) else 0
        first = np.empty((n_pieces, len(states), n_states), dtype=_entry_type(n_states))
        return Draws(np.empty(0), np.empty((0, 4)), key, operator.transposed, states, first, following)

    return Compiled(outputs=outputs, allows_single=False)


def _entry_type(n_states: int) -> np.dtype[Any]:
    """The smallest type of numbers that can name all states."""
    return np.min_scalar_type(n_states - 1)


def _is_last(run: TileRun, messages: Messages) -> NDArray[np.bool_]:
    tile = run.filtered.tile
    is_last: NDArray[np.bool_] = tile.starts + tile.lengths == messages.data.offsets[run.sequences + 1]
    return is_last


def _walks(run: TileRun, lanes: Index) -> Walks:
    tile = run.filtered.tile
    return Walks(tile.lengths[lanes], lanes, tile.offsets, tile.starts[lanes])


def _following(maps: list[_Entries]) -> Index:
    """State after each piece (P, n), −1 where nothing follows."""
    pieces = np.concatenate([entries.pieces for entries in maps])
    n_pieces, (_, n, n_states) = int(pieces.max()) + 1, maps[0].first.shape
    first = np.zeros((n, n_pieces, n_states), dtype=maps[0].first.dtype)
    is_last = np.ones(n_pieces, dtype=np.bool_)
    for entries in maps:
        first[:, entries.pieces] = entries.first.swapaxes(0, 1)
        is_last[entries.pieces] = entries.is_last
    following = np.empty((n, n_pieces), dtype=np.int64)
    for path in range(n):
        follow(first[path], is_last, following[path])
    return np.ascontiguousarray(following.T)


def _draw_hard(messages: Messages, sequence: int, key: NDArray[np.uint64], states: NDArray[Any]) -> None:
    """Draw a sequence in log space, block by block from its end."""
    chain = LogChain.of(messages, sequence)
    log_into = messages.kernels.log_forms.into
    onward = np.zeros((len(states), len(chain.log_initial)))
    for block in range(len(chain.predicted) - 1, -1, -1):
        positions, joint = chain.joint(block)
        for path, row in enumerate(states):
            draw_log(joint, log_into, onward[path], positions[0], key, path, row)
            log_onward_of(log_into, row[positions[0]], onward[path])


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


@contextmanager
def for_kernels(states: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Give an array to write the states to: the same or, if its bytes are in another order, one that is copied back."""
    array = np.asarray(states)
    native = array if array.dtype.isnative else np.empty(array.shape, array.dtype.newbyteorder("="))
    yield native
    if native is not array:
        array[...] = native
