"""Subchains: stretches of sequences that are run by themselves, many at a time, between messages from outside.

A grid cuts every sequence into stretches of one length (the last may be shorter). A minibatch is a handful of them.
What lies beyond a stretch enters as two tables: the weights of its first states before anything in it is seen
(`start`), and the backward messages of its last positions (`stop`). Where these come from is the business of a
boundary.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu import CpuEngine
from subchain.engines.hard import log_pass
from subchain.engines.messages import Messages, Workspace
from subchain.engines.partition import Tile, tile_lanes
from subchain.errors import impossible_error
from subchain.propagation import lanes
from subchain.propagation.layout import Walks
from subchain.propagation.underflow import LEAST_SCALE, growth
from subchain.statistics import Statistics

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Minibatch(NamedTuple):
    """Subchains that are run together, the longest first.

    Attributes
    ----------
    pieces : (M,) number of each in its grid (or, without a grid, its first position)
    sequences : (M,) sequence that each belongs to
    starts, lengths : (M,) first flat position and number of positions
    is_first, is_last : (M,) whether it begins or ends its sequence
    user_weights : (M,) how often the sequence of each counts, or None
    weights, pair_weights : (M,) how often the observations and the moves of each count, or None
    """

    pieces: Index
    sequences: Index
    starts: Index
    lengths: Index
    is_first: NDArray[np.bool_]
    is_last: NDArray[np.bool_]
    user_weights: Array | None
    weights: Array | None
    pair_weights: Array | None

    @property
    def size(self) -> int:
        return len(self.starts)

    @property
    def n_observations(self) -> int:
        return int(self.lengths.sum())


class Gains(NamedTuple):
    """How often what a minibatch of some size has seen is to be counted, to stand for all the data."""

    initial: float
    pairs: float
    emission: float


class Subchains(Protocol):
    """All subchains that can be drawn."""

    offsets: Index
    size: int
    length: int

    def gains(self, size: int) -> Gains: ...
    def batch(self, pieces: Index, weights: Array | None = None) -> Minibatch: ...


class Grid:
    """All stretches of `length` positions into which sequences are cut; the last of a sequence may be shorter.

    Without a length every sequence is one stretch.
    """

    def __init__(self, offsets: Index, length: int | None) -> None:
        self.offsets = offsets
        lengths = np.diff(offsets)
        self.length = int(length) if length is not None else max(int(lengths.max(initial=1)), 1)
        self.firsts = np.concatenate(([0], np.cumsum(-(-lengths // self.length))))
        self.size = int(self.firsts[-1])
        #: Moves between stretches are seen by none of them; those inside stand for them, each for so many.
        self._for_each_move = _ratio(lengths - 1, lengths - np.diff(self.firsts))

    def gains(self, size: int) -> Gains:
        scale = self.size / size
        return Gains(scale, scale * _common(self._for_each_move), scale)

    def batch(self, pieces: Index, weights: Array | None = None) -> Minibatch:
        """The stretches with these numbers; `weights` (n_sequences,) says how often each sequence counts."""
        sequences = np.searchsorted(self.firsts, pieces, side="right") - 1 if len(self.offsets) > 2 else 0 * pieces
        starts = self.offsets[sequences] + (pieces - self.firsts[sequences]) * self.length
        lengths = np.minimum(self.offsets[sequences + 1] - starts, self.length)
        return _batch(pieces, sequences, starts, lengths, self.offsets, weights, None, self._for_each_move)


class Anywhere:
    """All stretches of `length` positions, wherever they begin; no sequence is shorter.

    A position belongs to several of them, so each counts the less; how much less depends on the length of the sequence.
    Those near the ends of a sequence belong to fewer, which is the one thing that is not made up for.
    """

    def __init__(self, offsets: Index, length: int) -> None:
        self.offsets = offsets
        self.length = length
        lengths = np.diff(offsets)
        starts = np.maximum(lengths - length + 1, 0)
        self.firsts = np.concatenate(([0], np.cumsum(starts)))
        self.size = int(self.firsts[-1])
        self._for_each = _ratio(lengths, length * starts)
        self._for_each_move = _ratio(lengths - 1, (length - 1) * starts)

    def gains(self, size: int) -> Gains:
        scale = self.size / size
        return Gains(scale, scale * _common(self._for_each_move), scale * _common(self._for_each))

    def batch(self, pieces: Index, weights: Array | None = None) -> Minibatch:
        sequences = np.searchsorted(self.firsts, pieces, side="right") - 1
        starts = self.offsets[sequences] + pieces - self.firsts[sequences]
        lengths = np.full(len(starts), self.length)
        return _batch(
            starts, sequences, starts, lengths, self.offsets, weights, self._for_each, self._for_each_move
        )


def _ratio(wanted: Index, there: Index) -> Array:
    """For how many each one that is there has to stand; one where there is none."""
    return np.divide(wanted, there, out=np.ones(len(wanted)), where=there > 0)


def _common(ratios: Array) -> float:
    """What all sequences have in common; one where they differ, and single ones are weighed."""
    return float(ratios[0]) if len(ratios) and (ratios == ratios[0]).all() else 1.0


def _weighed(weights: Array | None, ratios: Array | None, sequences: Index) -> Array | None:
    """The users' weights times the sequences' ratios, where these differ; None if all is one."""
    differ = ratios is not None and bool((ratios != ratios[0]).any())
    if not differ:
        return None if weights is None else weights[sequences]
    assert ratios is not None
    return ratios[sequences] if weights is None else (ratios * weights)[sequences]


def _batch(
    pieces: Index,
    sequences: Index,
    starts: Index,
    lengths: Index,
    offsets: Index,
    weights: Array | None,
    ratios: Array | None,
    pair_ratios: Array | None,
) -> Minibatch:
    if len(lengths) and lengths.min() != lengths.max():
        order = np.argsort(-lengths, kind="stable")
        pieces, sequences, starts, lengths = pieces[order], sequences[order], starts[order], lengths[order]
    is_first = starts == offsets[sequences]
    is_last = starts + lengths == offsets[sequences + 1]
    own, of_pairs = _weighed(weights, ratios, sequences), _weighed(weights, pair_ratios, sequences)
    given = None if weights is None else weights[sequences]
    return Minibatch(pieces, sequences, starts, lengths, is_first, is_last, given, own, of_pairs)


class Ends(NamedTuple):
    """What subchains tell their neighbours, all (K, M): the first position's backward message times its likelihood, the
    last position's filtered belief, and the smoothed beliefs of both."""

    first_message: Array
    last_message: Array
    first_belief: Array
    last_belief: Array


@dataclasses.dataclass
class MinibatchRun:
    """What a minibatch gave: summed statistics, each subchain's log normaliser, and what it tells its neighbours."""

    statistics: Statistics
    log_totals: Array
    ends: Ends


def run_minibatch(engine: CpuEngine, messages: Messages, batch: Minibatch, start: Array, stop: Array) -> MinibatchRun:
    """Run all subchains of a minibatch.

    Parameters
    ----------
    start : (K, M) weights of the first positions' states before anything in the subchain is seen
    stop : (K, M) backward messages of the last positions, in any scale
    """
    n_states = messages.surrogate.n_states
    wide = tile_lanes(int(batch.lengths[0]), n_states, batch.n_observations)
    if batch.size <= wide:
        return _run_tile(messages, batch, slice(0, batch.size), start, stop)
    slices = [slice(at, min(at + wide, batch.size)) for at in range(0, batch.size, wide)]
    runs = engine.map(lambda part: _run_tile(messages, batch, part, start, stop), slices)
    total = runs[0].statistics
    for run in runs[1:]:
        total.absorb(run.statistics)
    ends = Ends(*(np.concatenate(tables, axis=1) for tables in zip(*(run.ends for run in runs), strict=True)))
    return MinibatchRun(total, np.concatenate([run.log_totals for run in runs]), ends)


def _run_tile(messages: Messages, batch: Minibatch, part: slice, start: Array, stop: Array) -> MinibatchRun:
    space, surrogate, kernels = Workspace(), messages.surrogate, messages.kernels
    n_states = surrogate.n_states
    tile = Tile(np.arange(batch.size)[part], batch.starts[part], batch.lengths[part])
    columns, offsets = tile.columns, tile.offsets
    weighted, alpha, beliefs = (space.table(name, n_states, columns) for name in ("likelihood", "alpha", "beliefs"))
    scale, totals = space.table("scale", 1, columns)[0], np.empty(tile.lanes)
    values, shift = messages.likelihood(tile.positions, weighted)
    if tile.lanes < batch.size:
        start, stop = np.ascontiguousarray(start[:, part]), np.ascontiguousarray(stop[:, part])
    is_lost = None
    if messages.every_way:
        kernels.forward_backward(
            weighted, messages.transition, messages.transposed, start, stop, offsets, shift, alpha, scale, beliefs,
            totals,
        )  # fmt: skip
    else:
        kernels.forward(weighted, messages.transition, start, offsets, alpha, scale)
        kernels.log_totals(scale, shift, offsets, totals)
        walks = Walks(tile.lengths, np.arange(tile.lanes), offsets, tile.starts)
        is_lost = growth(weighted, start, messages.transition, messages.covers, walks, alpha, scale).matters()
        kernels.backward(weighted, messages.transposed, stop, offsets, alpha, scale, beliefs)
    pairs = np.zeros((n_states, n_states))
    last = tile.last_columns
    ends = Ends(weighted[:, : tile.lanes].copy(), alpha[:, last], beliefs[:, : tile.lanes].copy(), beliefs[:, last])
    is_hard = ~np.isfinite(totals)
    if not scale.min() >= LEAST_SCALE:
        np.logical_or.at(is_hard, np.arange(columns) - np.repeat(offsets[:-1], np.diff(offsets)), scale < LEAST_SCALE)
    hard = np.flatnonzero(is_hard if is_lost is None else is_hard | is_lost)
    hard_pairs = [
        _run_hard(messages, tile, int(lane), start, stop, batch, beliefs, weighted, totals, ends) for lane in hard
    ]
    initial = _first_states(beliefs, batch, part, tile.lanes)
    weights, pair_weights = (None if w is None else w[part] for w in (batch.weights, batch.pair_weights))
    if weights is not None:
        lanes.weigh(beliefs, offsets, weights)
    if pair_weights is not None:
        lanes.weigh(weighted, offsets, pair_weights)
    kernels.pair_sums(alpha, weighted, offsets, pairs)
    pairs *= messages.transition
    for lane, found in zip(hard, hard_pairs, strict=True):
        pairs += found if pair_weights is None else pair_weights[lane] * found
    sums = surrogate.emission.zeros()
    surrogate.emission.accumulate(values, beliefs, sums)
    statistics = Statistics(initial, pairs, sums, float(totals.sum()), float(columns))
    return MinibatchRun(statistics, totals, ends)


def _first_states(beliefs: Array, batch: Minibatch, part: slice, n_lanes: int) -> Array:
    """Beliefs of the states that sequences begin with, added up; users' weights count, others do not."""
    begins = batch.is_first[part]
    weights = begins if batch.user_weights is None else begins * batch.user_weights[part]
    return np.asarray(beliefs[:, :n_lanes] @ weights)


def _run_hard(
    messages: Messages,
    tile: Tile,
    lane: int,
    start: Array,
    stop: Array,
    batch: Minibatch,
    beliefs: Array,
    weighted: Array,
    totals: Array,
    ends: Ends,
) -> Array:
    """Work a subchain out in logarithms: write its beliefs in their place, keep it out of pair sums, return its own."""
    positions = tile.starts[lane] + np.arange(tile.lengths[lane])
    columns = tile.offsets[: len(positions)] + lane
    _, logs = messages.log_likelihood(positions)
    found = log_pass(logs, messages.transition, start[:, lane], stop[:, lane])
    if found.impossible_at is not None:
        sequence = int(batch.sequences[tile.pieces[lane]])
        first = int(messages.data.offsets[sequence])
        raise impossible_error({sequence: int(positions[0]) - first + found.impossible_at})
    beliefs[:, columns], weighted[:, columns] = found.beliefs, 0.0
    totals[lane] = found.log_total
    ends.first_message[:, lane], ends.last_message[:, lane] = found.first_message, found.last_message
    ends.first_belief[:, lane], ends.last_belief[:, lane] = found.beliefs[:, 0], found.beliefs[:, -1]
    return found.pairs
