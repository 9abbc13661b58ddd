"""Smoothed marginals block by block, in the order of the data, for answers that are never kept as a whole.

The messages from both sides are carried to the borders of short pieces first, K numbers a border. A block is then a
few neighbouring pieces, run side by side, each between its own two messages. Sequences that underflow are run in log
space, in the same two steps.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.consumers import Consumer, TileRun
from subchain.engines.cpu.log_space import LogBlock
from subchain.engines.cpu.messages import Messages, Told
from subchain.engines.cpu.partition import Partition, Tile, partition
from subchain.engines.cpu.passes import run_pass
from subchain.engines.cpu.workspace import Workers, Workspace

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Pieces of a long sequence that make a block, and the least length of a piece: its messages are kept.
PIECES, LEAST_PIECE = 16, 4096


def smooth_in_order(workers: Workers, messages: Messages, size: int) -> Iterator[tuple[int, Array]]:
    """First position and marginals (n, K) of consecutive blocks; see `Engine.smooth_in_order`."""
    found, scores = run_pass(workers, messages, _HardSequences())
    scores.checked()
    return _Blocks(messages, max(size // PIECES, LEAST_PIECE), set().union(*found)).run(size)


class _HardSequences(Consumer[set[int]]):
    """Finds the sequences that underflow."""

    smooth = False

    def begin(self) -> set[int]:
        return set()

    def tile(self, result: set[int], run: TileRun) -> None:
        pass

    def hard(self, result: set[int], sequence: int, block: LogBlock) -> None:
        result.add(sequence)


class _Blocks:
    """All pieces of the data, with the messages at their borders."""

    def __init__(self, messages: Messages, piece: int, hard: set[int]) -> None:
        data, n_states = messages.data, messages.surrogate.n_states
        self.messages = messages
        self.cut: Partition = partition(data.offsets, np.arange(data.n_sequences), piece, n_states, 1)
        self.is_hard = np.isin(self.cut.sequence, list(hard))
        self.borders = Told(*np.empty((2, len(self.cut.start), n_states)))
        self.log_borders: dict[int, tuple[Array, Array]] = {}
        with np.errstate(divide="ignore"):
            self.log_initial = np.log(messages.surrogate.initial)
        for pieces in np.split(np.arange(len(self.cut.start)), np.flatnonzero(self.cut.is_first)[1:]):
            if self.is_hard[pieces[0]]:
                self._sweep_logs(pieces)
            elif len(pieces) > 1:
                self.borders.before[pieces] = messages.sweep_forward(pieces, self.cut)
                self.borders.after[pieces] = messages.sweep_backward(pieces, self.cut)

    def run(self, size: int) -> Iterator[tuple[int, Array]]:
        ends = self.cut.start + self.cut.length
        space, first = self.messages.workspace(), 0
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
            told = Told(self.borders.before[easy], self.borders.after[easy])
            _, smoothed = self.messages.run(tile, cut, told, space, smooth=True)
            assert smoothed is not None
            out[tile.positions - start] = smoothed.marginals.T
        for piece in pieces[self.is_hard[pieces]]:
            first = int(cut.start[piece]) - start
            out[first : first + int(cut.length[piece])] = self._log_marginals(piece)
        return out

    # ---- log space ---------------------------------------------------------------------------------------------------

    def _logs(self, piece: int) -> Array:
        return self.messages.log_likelihood(self.cut.start[piece] + np.arange(self.cut.length[piece]))[1]

    def _sweep_logs(self, pieces: Index) -> None:
        """Log messages at the borders of one sequence's pieces: predictions of first states, futures of last ones."""
        predicted, future = self.log_initial.copy(), np.zeros(len(self.log_initial))
        for piece in pieces:
            self.log_borders[piece] = (predicted.copy(), future)
            logs = self._logs(piece)
            self.messages.kernels.log_forward(logs, predicted, np.empty_like(logs))
        for piece in pieces[::-1]:
            self.log_borders[piece] = (self.log_borders[piece][0], future.copy())
            logs = self._logs(piece)
            self.messages.kernels.log_backward(logs, future, np.empty_like(logs))

    def _log_marginals(self, piece: int) -> Array:
        predicted, future = self.log_borders[piece]
        logs = self._logs(piece)
        joint, after = np.empty_like(logs), np.empty_like(logs)
        self.messages.kernels.log_forward(logs, predicted.copy(), joint)
        self.messages.kernels.log_backward(logs, future.copy(), after)
        joint += after
        return np.asarray(np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)))
