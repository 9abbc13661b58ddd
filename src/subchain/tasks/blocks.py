"""Probabilities of the states block by block, in the order of the data, for answers that are never kept as a whole.

The messages from both sides are carried to the borders of short pieces first, K numbers a border. A block is then a
few neighbouring pieces, worked out side by side, each between its own two messages. Sequences that scaled probabilities
cannot hold are done in log space, in the same two steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.borders import Borders
from subchain.engines.cpu.consumers import Consumer, TileRun
from subchain.engines.cpu.log_space import LogBlock
from subchain.engines.cpu.messages import Workspace
from subchain.engines.cpu.partition import Partition, Tile, partition
from subchain.errors import InputError
from subchain.inference.run.training import TrainingMarginals
from subchain.propagation import serial
from subchain.tasks.question import Question

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Pieces of a long sequence that make a block, and the least length of a piece: its messages are kept.
PIECES, LEAST_PIECE = 16, 4096


def smoothed_blocks(question: Question, size: int) -> Iterator[tuple[int, Array]]:
    """First position and probabilities (n, K) of consecutive blocks of at most `size` positions."""
    if not isinstance(size, (int, np.integer)) or size < 1:
        raise InputError(f"block must be a whole number of at least 1, not {size!r}.")
    if question.stored is not None:
        return _stored_blocks(question, question.stored, int(size))
    hard = set().union(*question.run(question.messages(), _HardSequences()))
    return _Blocks(question, max(int(size) // PIECES, LEAST_PIECE), hard).run(int(size))


def _stored_blocks(question: Question, stored: TrainingMarginals, size: int) -> Iterator[tuple[int, Array]]:
    """The same from marginals that are there already."""
    for start, stop in pairwise(question.data.offsets.tolist()):
        for first in range(start, stop, size):
            yield first, np.ascontiguousarray(stored.table(first, min(first + size, stop)).T)


class _HardSequences(Consumer[set[int]]):
    """Finds the sequences that need logarithms."""

    smooth = False

    def begin(self) -> set[int]:
        return set()

    def tile(self, result: set[int], run: TileRun) -> None:
        pass

    def hard(self, result: set[int], sequence: int, block: LogBlock) -> None:
        result.add(sequence)


class _Blocks:
    """All pieces of the data, with the messages at their borders."""

    def __init__(self, question: Question, piece: int, hard: set[int]) -> None:
        data, n_states = question.data, question.n_states
        self.messages = question.messages()
        self.cut: Partition = partition(data.offsets, np.arange(data.n_sequences), piece, n_states, 1)
        self.is_hard = np.isin(self.cut.sequence, list(hard))
        self.borders = Borders.unknown(len(self.cut.start), n_states)
        self.log_borders: dict[int, tuple[Array, Array]] = {}
        with np.errstate(divide="ignore"):
            self.log_initial, self.log_transition = (
                np.log(table) for table in (self.messages.surrogate.initial, self.messages.transition)
            )
        for pieces in np.split(np.arange(len(self.cut.start)), np.flatnonzero(self.cut.is_first)[1:]):
            if self.is_hard[pieces[0]]:
                self._sweep_logs(pieces)
            elif len(pieces) > 1:
                self.messages.sweep_forward(pieces, self.cut, self.borders)
                self.messages.sweep_backward(pieces, self.cut, self.borders)

    def run(self, size: int) -> Iterator[tuple[int, Array]]:
        ends = self.cut.start + self.cut.length
        space, first = Workspace(), 0
        while first < len(ends):
            start = int(self.cut.start[first])
            stop = max(int(np.searchsorted(ends, start + size, side="right")), first + 1)
            marginals = self._block(np.arange(first, stop), space)
            for offset in range(0, len(marginals), size):
                yield start + offset, marginals[offset : offset + size]
            first = stop

    def _block(self, pieces: Index, space: Workspace) -> Array:
        cut = self.cut
        start = int(cut.start[pieces[0]])
        out = np.empty((int(cut.length[pieces].sum()), self.messages.surrogate.n_states))
        easy = pieces[~self.is_hard[pieces]]
        if len(easy):
            easy = easy[np.argsort(-cut.length[easy], kind="stable")]
            tile = Tile(easy, cut.start[easy], cut.length[easy])
            _, smoothed = self.messages.run(tile, cut, self.borders, space, smooth=True)
            assert smoothed is not None
            out[tile.positions - start] = smoothed.marginals.T
        for piece in pieces[self.is_hard[pieces]]:
            first = int(cut.start[piece]) - start
            out[first : first + int(cut.length[piece])] = self._log_marginals(piece)
        return out

    # ---- logarithms --------------------------------------------------------------------------------------------------

    def _logs(self, piece: int) -> Array:
        return self.messages.log_likelihood(self.cut.start[piece] + np.arange(self.cut.length[piece]))[1]

    def _sweep_logs(self, pieces: Index) -> None:
        """Log messages at the borders of one sequence's pieces: predictions of first states, futures of last ones."""
        predicted, future = self.log_initial.copy(), np.zeros(len(self.log_initial))
        for piece in pieces:
            self.log_borders[piece] = (predicted.copy(), future)
            logs = self._logs(piece)
            serial.log_forward(logs, self.log_transition, predicted, np.empty_like(logs))
        for piece in pieces[::-1]:
            self.log_borders[piece] = (self.log_borders[piece][0], future.copy())
            logs = self._logs(piece)
            serial.log_backward(logs, self.log_transition, future, np.empty_like(logs))

    def _log_marginals(self, piece: int) -> Array:
        predicted, future = self.log_borders[piece]
        logs = self._logs(piece)
        joint, after = np.empty_like(logs), np.empty_like(logs)
        serial.log_forward(logs, self.log_transition, predicted.copy(), joint)
        serial.log_backward(logs, self.log_transition, future.copy(), after)
        joint += after
        return np.asarray(np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)))
