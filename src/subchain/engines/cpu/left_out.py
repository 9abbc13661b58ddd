"""States and observations given the others of their sequence: all others, or the earlier ones alone.

Leaving one observation out needs no second pass. The states' cavity distribution at a position is what the past
predicts there times what the future says, without the position's own likelihood; the observation's probability is its
likelihood averaged over that. Evidence about the position's state belongs to the cavity distribution. The past's
prediction is the filtered marginal before, carried one step forward; the future's message is the weighted message after
it, carried one step back.

Sequences that underflow are run in log space, block by block.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.consumers import Consumer, TileRun
from subchain.engines.cpu.log_space import LogBlock, LogChain
from subchain.engines.cpu.messages import Messages
from subchain.engines.cpu.partition import Tile
from subchain.engines.cpu.passes import run_pass
from subchain.engines.cpu.workspace import Workers
from subchain.engines.results import Consume, MarginalBlock, Scores

Array = NDArray[np.float64]


def score_left_out(workers: Workers, messages: Messages) -> Array:
    """Log probability of each observation given all others of its sequence, (N,); 0 where it is missing."""
    out = np.empty(messages.data.n_observations)
    found, scores = run_pass(workers, messages, _ScoresGivenOthers(messages, out))
    scores.checked()
    for sequence in set().union(*found):
        for rows, logs, predicted, future in _log_messages(messages, sequence):
            values, known = messages.known(np.arange(rows.start, rows.stop))
            own = messages.surrogate.emission.log_likelihood(values).T if messages.evidence is not None else logs
            out[rows] = _log_mean(own, predicted + future + known.T)
    return out


def leave_out(workers: Workers, messages: Messages, consume: Consume) -> Scores:
    """Give the marginals of all positions, given all other observations of their sequences, to `consume`."""
    found, scores = run_pass(workers, messages, _StatesGivenOthers(messages, consume))
    for sequence in set().union(*found) - scores.impossible.keys():
        for rows, _, predicted, future in _log_messages(messages, sequence):
            _, known = messages.known(np.arange(rows.start, rows.stop))
            consume(_normalized_block(rows, predicted + future + known.T))
    return scores


def predict(workers: Workers, messages: Messages, consume: Consume) -> Scores:
    """Give the marginals of all positions, given the earlier observations of their sequences, to `consume`."""
    found, scores = run_pass(workers, messages, _StatesGivenPast(messages, consume))
    for sequence in set().union(*found) - scores.impossible.keys():
        for rows, _, predicted, _ in _log_messages(messages, sequence):
            consume(_normalized_block(rows, predicted))
    return scores


class _GivenOthers(Consumer[set[int]]):
    """Uses the states' distributions given other observations; the result is the sequences that underflow."""

    def __init__(self, messages: Messages) -> None:
        self.messages = messages

    def begin(self) -> set[int]:
        return set()

    def tile(self, result: set[int], run: TileRun) -> None:
        failed = self.use(run)
        tile = run.filtered.tile
        lane = np.arange(tile.columns) - np.repeat(tile.offsets[:-1], np.diff(tile.offsets))
        result.update(run.sequences[lane[failed]].tolist())

    def hard(self, result: set[int], sequence: int, block: LogBlock) -> None:
        result.add(sequence)

    @abstractmethod
    def use(self, run: TileRun) -> NDArray[np.bool_]:
        """Use the distributions of a tile's columns; return which columns underflow, (n,)."""

    def _cavity(self, run: TileRun) -> Array:
        """What all but a column's own observation says of its state, (K, n), in any scale."""
        cavity = self._predicted(run) * self._future(run)
        if self.messages.evidence is not None:
            _, known = self.messages.known(run.filtered.positions)
            cavity *= np.exp(known - known.max(axis=0))
        return np.asarray(cavity)

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


class _ScoresGivenOthers(_GivenOthers):
    """Writes the log probability of each observation given all others."""

    def __init__(self, messages: Messages, out: Array) -> None:
        super().__init__(messages)
        self.out = out

    def use(self, run: TileRun) -> NDArray[np.bool_]:
        positions, cavity = run.filtered.positions, self._cavity(run)
        likelihood = np.empty_like(cavity)
        if self.messages.evidence is None:
            _, shift = self.messages.likelihood(positions, likelihood)
        else:
            values, _ = self.messages.known(positions)
            shift = self.messages.surrogate.emission.scaled(values, likelihood)
        logs = np.log((cavity * likelihood).sum(axis=0) / cavity.sum(axis=0)) + shift
        self.out[positions] = logs
        return ~np.isfinite(logs)


class _StatesGivenOthers(_GivenOthers):
    """Passes on the states' distributions given all other observations."""

    def __init__(self, messages: Messages, consume: Consume) -> None:
        super().__init__(messages)
        self.consume = consume

    def use(self, run: TileRun) -> NDArray[np.bool_]:
        weights = self.weights(run)
        table = weights / weights.sum(axis=0)
        self.consume(MarginalBlock(run.filtered.positions, table))
        return ~np.isfinite(table[0])

    def weights(self, run: TileRun) -> Array:
        """Return the distributions of a tile's columns, (K, n), in any scale."""
        return self._cavity(run)


class _StatesGivenPast(_StatesGivenOthers):
    """Passes on the states' distributions given the earlier observations."""

    smooth = False

    def weights(self, run: TileRun) -> Array:
        return self._predicted(run)


def _normalized_block(rows: slice, log_weights: Array) -> MarginalBlock:
    """Return marginals of consecutive positions, given logarithms (n, K) in any scale."""
    table = np.exp(log_weights - np.logaddexp.reduce(log_weights, axis=1)[:, None])
    return MarginalBlock(np.arange(rows.start, rows.stop), np.ascontiguousarray(table.T))


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
