"""How well single observations are foretold: by their past, by all other observations, or by those left unmasked.

Leaving one observation out needs no second pass. The states' cavity distribution at a position is what the past predicts
there times what the future says, without the position's own likelihood; the observation's probability is its likelihood
averaged over that. The past's prediction is the filtered belief before, moved one step; the future's message is the
weighted message after it, moved one step back.

Sequences whose probabilities differ by more than a double can hold are worked out in logarithms, block by block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data import Sequences
from subchain.data.dtypes import signed
from subchain.emissions.base import Likelihood
from subchain.engines.cpu import Consumer, TileRun
from subchain.engines.hard import LogBlock, LogChain
from subchain.engines.messages import Messages
from subchain.engines.partition import Tile
from subchain.errors import InputError
from subchain.propagation import serial
from subchain.tasks.question import Question

Array = NDArray[np.float64]


def score_steps(question: Question) -> Array:
    """Log probability of each observation given those before it, (N,); a sequence's sum is its log likelihood."""
    out = np.empty(question.data.n_observations)
    for sequence in set().union(*question.run(_GivenPast(out))):
        for rows, logs, predicted, _ in _log_messages(question, sequence):
            out[rows] = _log_mean(logs, predicted)
    return out


def score_left_out(question: Question) -> Array:
    """Log probability of each observation given all others of its sequence, (N,); 0 where it is missing."""
    out = np.empty(question.data.n_observations)
    messages = question.messages()
    for sequence in set().union(*question.run(_GivenOthers(messages, out))):
        for rows, logs, predicted, future in _log_messages(question, sequence):
            out[rows] = _log_mean(logs, predicted + future)
    return out


def score_masked(question: Question, whole: Sequences) -> Array:
    """Log probability of what `whole` holds and the question's data do not, at each position given these data, (N,)."""
    out = np.zeros(whole.n_observations)
    question.run(_Hidden(question.point.emission, whole.values, out))
    return out


def mask_out(data: Sequences, mask: Any) -> Sequences:
    """The data with the masked entries missing.

    Parameters
    ----------
    mask : booleans, (N,) or (N, D), or a list with one such array a sequence
    """
    flat = np.concatenate([np.asarray(part) for part in mask]) if isinstance(mask, (list, tuple)) else np.asarray(mask)
    if flat.dtype != np.bool_ or flat.shape not in ((data.n_observations,), data.values.shape):
        raise InputError(
            f"mask must hold True or False for each of {data.n_observations} positions"
            + (f", or for each entry of {data.values.shape}" if data.values.ndim == 2 else "")
            + f"; it is {flat.dtype} of shape {flat.shape}."
        )
    kind = data.values.dtype
    values = np.array(data.values, dtype=kind if kind.kind == "f" else signed(kind))
    values[flat] = np.nan if values.dtype.kind == "f" else -1
    return Sequences(values, data.offsets, columns=data.columns, names=data.names, vocabulary=data.vocabularies)


class _GivenPast(Consumer[set[int]]):
    """Writes the logarithms of the normalisers; the result is the sequences that need logarithms."""

    smooth = False

    def __init__(self, out: Array) -> None:
        self.out = out

    def begin(self) -> set[int]:
        return set()

    def tile(self, result: set[int], run: TileRun) -> None:
        with np.errstate(divide="ignore"):
            self.out[run.filtered.positions] = np.log(run.filtered.scale) + run.filtered.shift

    def hard(self, result: set[int], sequence: int, block: LogBlock) -> None:
        result.add(sequence)


class _GivenOthers(Consumer[set[int]]):
    """Writes what the cavity distributions make of the observations; the result is the sequences that need logarithms."""

    def __init__(self, messages: Messages, out: Array) -> None:
        self.messages = messages
        self.out = out

    def begin(self) -> set[int]:
        return set()

    def tile(self, result: set[int], run: TileRun) -> None:
        tile, positions = run.filtered.tile, run.filtered.positions
        cavity = self._predicted(run) * self._future(run)
        likelihood = np.empty_like(cavity)
        _, shift = self.messages.likelihood(positions, likelihood)
        with np.errstate(divide="ignore", invalid="ignore"):
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
            predicted[:, inner] = self.messages.transposed @ run.before[inner].T
        predicted[:, tile.lanes :] = self.messages.transposed @ alpha[:, _columns_before(tile)]
        return predicted

    def _future(self, run: TileRun) -> Array:
        """What the future says of each column's state, in any scale."""
        tile, weighted = run.filtered.tile, run.filtered.likelihood
        future = np.empty_like(weighted)
        future[:, _columns_before(tile)] = self.messages.transition @ weighted[:, tile.lanes :]
        future[:, tile.last_columns] = 1.0
        if run.after is not None:
            inner = np.flatnonzero(tile.starts + tile.lengths < self.messages.data.offsets[run.sequences + 1])
            future[:, tile.last_columns[inner]] = run.after[inner].T
        return future


def _columns_before(tile: Tile) -> NDArray[np.int64]:
    """For every column of a tile but those of its first step: the column of the same lane one step before."""
    lanes = np.diff(tile.offsets)
    return np.arange(tile.lanes, tile.columns) - np.repeat(lanes[:-1], lanes[1:])


class _Hidden(Consumer[None]):
    """Writes how probable hidden entries are under the beliefs that the others lead to."""

    def __init__(self, emission: Likelihood, whole: NDArray[Any], out: Array) -> None:
        self.emission = emission
        self.whole = whole
        self.out = out

    def begin(self) -> None:
        return None

    def tile(self, result: None, run: TileRun) -> None:
        self._write(run.filtered.positions, run.filtered.values, run.beliefs)

    def hard(self, result: None, sequence: int, block: LogBlock) -> None:
        self._write(block.positions, block.values, block.beliefs)

    def _write(self, positions: NDArray[np.int64], seen: NDArray[Any], beliefs: Array) -> None:
        whole = np.take(self.whole, positions, axis=0)
        differ = (whole != seen) & ~((whole != whole) & (seen != seen))
        hidden = np.flatnonzero(differ if differ.ndim == 1 else differ.any(axis=1))
        gain, weights = self.emission.log_likelihood(whole[hidden]), beliefs[:, hidden]
        possible = weights > 0.0
        gain -= np.where(possible, self.emission.log_likelihood(seen[hidden]), 0.0)
        with np.errstate(divide="ignore"):
            terms = np.where(possible, np.log(weights) + gain, -np.inf)
        self.out[positions[hidden]] = np.logaddexp.reduce(terms, axis=0)


def _log_messages(question: Question, sequence: int) -> Iterator[tuple[slice, Array, Array, Array]]:
    """Blocks of one sequence, last to first: rows, log likelihoods, and the logs of past and future messages, (n, K).

    A prediction obeys the recursion of a backward message, run from left to right over the transposed matrix.
    """
    messages = question.messages()
    chain = LogChain(messages, *(int(edge) for edge in question.data.offsets[sequence : sequence + 2]))
    log_transposed = np.ascontiguousarray(chain.log_transition.T)
    beta = np.zeros(question.n_states)
    for block in range(len(chain.edges) - 2, -1, -1):
        rows = slice(chain.edges[block], chain.edges[block + 1])
        _, logs = messages.log_likelihood(np.arange(rows.start, rows.stop))
        predicted, future = np.empty_like(logs), np.empty_like(logs)
        serial.log_backward(logs[::-1].copy(), log_transposed, chain.predicted[block].copy(), predicted)
        serial.log_backward(logs, chain.log_transition, beta, future)
        yield rows, logs, predicted[::-1], future


def _log_mean(logs: Array, log_weights: Array) -> Array:
    """Logarithm of the mean of exp(logs) under weights that need not sum to one."""
    mean = np.logaddexp.reduce(logs + log_weights, axis=1) - np.logaddexp.reduce(log_weights, axis=1)
    return np.asarray(mean)
