"""How well each observation is predicted by all others of its sequence.

Leaving one observation out needs no second pass. The states' cavity distribution at a position is what the past
predicts there times what the future says, without the position's own likelihood; the observation's probability is its
likelihood averaged over that. Evidence about the position's state belongs to the cavity distribution. The past's
prediction is the filtered marginal before, carried one step forward; the future's message is the weighted message after
it, carried one step back.

Sequences that underflow are run in log space, block by block.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.consumers import Consumer, TileRun
from subchain.engines.cpu.log_space import LogBlock, LogChain
from subchain.engines.cpu.messages import Messages
from subchain.engines.cpu.partition import Tile
from subchain.engines.cpu.passes import run_pass
from subchain.engines.cpu.workspace import Workers

Array = NDArray[np.float64]


def score_left_out(workers: Workers, messages: Messages) -> Array:
    """Log probability of each observation given all others of its sequence, (N,); 0 where it is missing."""
    out = np.empty(messages.data.n_observations)
    found, scores = run_pass(workers, messages, _GivenOthers(messages, out))
    scores.checked()
    for sequence in set().union(*found):
        for rows, logs, predicted, future in _log_messages(messages, sequence):
            values, known = messages.known(np.arange(rows.start, rows.stop))
            own = messages.surrogate.emission.log_likelihood(values).T if messages.evidence is not None else logs
            out[rows] = _log_mean(own, predicted + future + known.T)
    return out


class _GivenOthers(Consumer[set[int]]):
    """Writes what cavity distributions make of the observations; the result is the sequences that underflow."""

    def __init__(self, messages: Messages, out: Array) -> None:
        self.messages = messages
        self.out = out

    def begin(self) -> set[int]:
        return set()

    def tile(self, result: set[int], run: TileRun) -> None:
        tile, positions = run.filtered.tile, run.filtered.positions
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # whatever is not finite is done again
            cavity = self._predicted(run) * self._future(run)
            likelihood = np.empty_like(cavity)
            if self.messages.evidence is None:
                _, shift = self.messages.likelihood(positions, likelihood)
            else:
                values, known = self.messages.known(positions)
                cavity *= np.exp(known - known.max(axis=0))
                shift = self.messages.surrogate.emission.scaled(values, likelihood)
            logs = np.log((cavity * likelihood).sum(axis=0) / cavity.sum(axis=0)) + shift
        self.out[positions] = logs
        lane = np.arange(tile.columns) - np.repeat(tile.offsets[:-1], np.diff(tile.offsets))
        result.update(run.sequences[lane[~np.isfinite(logs)]].tolist())

    def hard(self, result: set[int], sequence: int, block: LogBlock) -> None:
        result.add(sequence)

    def _predicted(self, run: TileRun) -> Array:
        """What the past says of each column's state."""
        tile, alpha = run.filtered.tile, run.filtered.alpha
        predicted = np.empty_like(alpha)
        predicted[:, : tile.lanes] = self.messages.surrogate.initial[:, None]
        if run.before is not None:
            inner = np.flatnonzero(~run.is_first)
            predicted[:, inner] = self.messages.operator.apply(run.before[inner].T)
        predicted[:, tile.lanes :] = self.messages.operator.apply(alpha[:, _columns_before(tile)])
        return predicted

    def _future(self, run: TileRun) -> Array:
        """What the future says of each column's state, in any scale."""
        tile, weighted = run.filtered.tile, run.smoothed.weighted
        future = np.empty_like(weighted)
        future[:, _columns_before(tile)] = self.messages.operator.apply_transposed(weighted[:, tile.lanes :])
        future[:, tile.last_columns] = 1.0
        if run.after is not None:
            inner = np.flatnonzero(tile.starts + tile.lengths < self.messages.data.offsets[run.sequences + 1])
            future[:, tile.last_columns[inner]] = run.after[inner].T
        return future


def _columns_before(tile: Tile) -> NDArray[np.int64]:
    """For every column of a tile but those of its first step: the column of the same lane one step before."""
    lanes = np.diff(tile.offsets)
    return np.asarray(np.arange(tile.lanes, tile.columns) - np.repeat(lanes[:-1], lanes[1:]))


def _log_messages(messages: Messages, sequence: int) -> Iterator[tuple[slice, Array, Array, Array]]:
    """Blocks of one sequence, last to first: rows, log likelihoods, logs of past and future messages, all (n, K)."""
    chain = LogChain.of(messages, sequence)
    beta = np.zeros(messages.surrogate.n_states)
    for block in range(len(chain.edges) - 2, -1, -1):
        rows = slice(chain.edges[block], chain.edges[block + 1])
        _, logs = messages.log_likelihood(np.arange(rows.start, rows.stop))
        predicted, future = np.empty_like(logs), np.empty_like(logs)
        messages.kernels.log_predictions(logs, chain.predicted[block], predicted)
        messages.kernels.log_backward(logs, beta, future)
        yield rows, logs, predicted, future


def _log_mean(logs: Array, log_weights: Array) -> Array:
    """Logarithm of the mean of exp(logs) under weights that need not sum to one."""
    mean = np.logaddexp.reduce(logs + log_weights, axis=1) - np.logaddexp.reduce(log_weights, axis=1)
    return np.asarray(mean)
