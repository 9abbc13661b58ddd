"""Subchains: stretches of sequences that are run by themselves, many at a time, between messages from outside.

A grid cuts every sequence into stretches of one length (the last may be shorter). A minibatch is a handful of them.
What lies beyond a stretch enters as two tables: the weights of its first states before anything in it is seen
(`start`), and the backward messages of its last positions (`stop`). Where these come from is the business of a
boundary.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.engine import CpuEngine
from subchain.engines.cpu.log_space import log_pass
from subchain.engines.cpu.messages import Messages, Workspace
from subchain.engines.cpu.partition import Tile, tile_lanes
from subchain.engines.statistics import HMMStatistics
from subchain.errors import impossible_error
from subchain.propagation.lanes import recursions as lanes
from subchain.propagation.layout import Walks
from subchain.propagation.occurrence.methods import absence_in, conditionals, expected_moves
from subchain.propagation.occurrence.pairs import add_surplus
from subchain.propagation.underflow import LEAST_SCALE, growth

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
        return _batch(starts, sequences, starts, lengths, self.offsets, weights, self._for_each, self._for_each_move)


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
    last position's filtered marginal, and the smoothed marginals of both."""

    first_message: Array
    last_message: Array
    first_marginal: Array
    last_marginal: Array


@dataclasses.dataclass
class MinibatchRun:
    """What a minibatch gave.

    Attributes
    ----------
    statistics : summed over the subchains
    log_totals : (M,) log normalisers
    ends : what the subchains tell their neighbours
    surplus : (K, K) what −log probabilities that moves never happen exceed their expected numbers by, if asked for
    """

    statistics: HMMStatistics
    log_totals: Array
    ends: Ends
    surplus: Array | None = None


#: Is handed flat positions (n,) and their smoothed marginals (K, n).
Keep = Callable[[Index, Array], None]


def run_minibatch(
    engine: CpuEngine, messages: Messages, batch: Minibatch, start: Array, stop: Array, keep: Keep | None = None,
    surplus: str | None = None,
) -> MinibatchRun:  # fmt: skip
    """Run all subchains of a minibatch.

    Parameters
    ----------
    start : (K, M) weights of the first positions' states before anything in the subchain is seen
    stop : (K, M) backward messages of the last positions, in any scale
    keep : what is to be done with the marginals of every position
    surplus : by which way to find out how probable it is that moves happen at all, if somebody wants to know
    """
    n_states = messages.surrogate.n_states
    wide = tile_lanes(int(batch.lengths[0]), n_states, batch.n_observations)
    slices = [slice(at, min(at + wide, batch.size)) for at in range(0, batch.size, wide)]
    runs = engine.map(lambda part: _Lanes(messages, batch, part, start, stop).run(keep, surplus), slices)
    if len(runs) == 1:
        return runs[0]
    total = runs[0].statistics
    for run in runs[1:]:
        total.absorb(run.statistics)
    ends = Ends(*(np.concatenate(tables, axis=1) for tables in zip(*(run.ends for run in runs), strict=True)))
    more = None if surplus is None else sum(run.surplus for run in runs)  # type: ignore[misc]
    return MinibatchRun(total, np.concatenate([run.log_totals for run in runs]), ends, more)  # type: ignore[arg-type]


class _Lanes:
    """Some subchains of a minibatch, side by side."""

    def __init__(self, messages: Messages, batch: Minibatch, part: slice, start: Array, stop: Array) -> None:
        self.messages = messages
        self.batch = batch
        self.part = part
        self.start, self.stop = (np.ascontiguousarray(table[:, part]) for table in (start, stop))
        self.tile = tile = Tile(np.arange(batch.size)[part], batch.starts[part], batch.lengths[part])
        self._space, n_states = Workspace(), messages.surrogate.n_states
        #: Likelihoods, which the backward pass turns into the messages that pair sums are made from.
        self.weighted = self._space.table("likelihood", n_states, tile.columns)
        self.alpha = self._space.table("alpha", n_states, tile.columns)
        self.marginals = self._space.table("marginals", n_states, tile.columns)
        self.scale = self._space.table("scale", 1, tile.columns)[0]
        self.log_totals = np.empty(tile.lanes)

    def run(self, keep: Keep | None, surplus: str | None) -> MinibatchRun:
        """HMMStatistics of the lanes, and what they tell their neighbours."""
        values, shift = self.messages.likelihood(self.tile.positions, self.weighted)
        is_hard = self._forward_backward(shift)
        n_lanes, last = self.tile.lanes, self.tile.last_columns
        ends = Ends(
            self.weighted[:, :n_lanes].copy(), self.alpha[:, last], self.marginals[:, :n_lanes].copy(),
            self.marginals[:, last],
        )  # fmt: skip
        hard_pairs = {int(lane): self._in_log_space(int(lane), ends) for lane in np.flatnonzero(is_hard)}
        if keep is not None:
            keep(self.tile.positions, self.marginals)
        initial = self._first_states()
        weights, pair_weights = (
            None if table is None else table[self.part] for table in (self.batch.weights, self.batch.pair_weights)
        )
        more = None if surplus is None else self._surplus(surplus, pair_weights)
        if weights is not None:
            lanes.weigh(self.marginals, self.tile.offsets, weights)
        sums = self.messages.surrogate.emission.zeros()
        self.messages.surrogate.emission.accumulate(values, self.marginals, sums)
        pairs = self._pairs(hard_pairs, pair_weights)
        statistics = HMMStatistics.of(initial, pairs, sums, float(self.log_totals.sum()), float(self.tile.columns))
        return MinibatchRun(statistics, self.log_totals, ends, more)

    def _surplus(self, way: str, weights: Array | None) -> Array:
        """See `propagation.occurrence`; lanes that were worked out in log space are left out."""
        transition, tile = np.ascontiguousarray(self.messages.transition), self.tile
        found = np.zeros_like(transition)
        each = np.ones(tile.lanes) if weights is None else weights
        if way == "pairs":
            add_surplus(self.alpha, self.weighted, transition, self.marginals, tile.offsets, each, found)
            return found
        for lane in range(tile.lanes):
            columns = tile.offsets[: tile.lengths[lane]] + lane
            moves = conditionals(self.weighted[:, columns].T, transition)
            if len(moves) and moves.any():
                first = self.marginals[:, lane]
                absent = absence_in(way, first, moves, key=(0, int(tile.starts[lane])))
                found += each[lane] * (absent - expected_moves(first, moves))
        return found

    def _forward_backward(self, shift: Array) -> NDArray[np.bool_]:
        """Fill the tables; say which lanes cannot be believed."""
        messages, kernels, tile = self.messages, self.messages.kernels, self.tile
        transition, transposed, offsets = messages.transition, messages.transposed, tile.offsets
        alpha, scale = self.alpha, self.scale
        if messages.every_way:
            kernels.forward_backward(
                self.weighted, transition, transposed, self.start, self.stop, offsets, shift, alpha, scale,
                self.marginals, self.log_totals,
            )  # fmt: skip
            is_hard = np.zeros(tile.lanes, dtype=np.bool_)
        else:
            kernels.forward(self.weighted, transition, self.start, offsets, alpha, scale)
            kernels.log_totals(scale, shift, offsets, self.log_totals)
            walks = Walks(tile.lengths, np.arange(tile.lanes), offsets, tile.starts)
            is_hard = growth(self.weighted, self.start, transition, messages.covers, walks, alpha, scale).matters()
            kernels.backward(self.weighted, transposed, self.stop, offsets, alpha, scale, self.marginals)
        is_hard |= ~np.isfinite(self.log_totals)
        if not scale.min() >= LEAST_SCALE:
            lane_of = np.arange(tile.columns) - np.repeat(offsets[:-1], np.diff(offsets))
            np.logical_or.at(is_hard, lane_of, scale < LEAST_SCALE)
        return is_hard

    def _first_states(self) -> Array:
        """Marginals of the states that sequences begin with, added up; users' weights count, others do not."""
        begins, given = self.batch.is_first[self.part], self.batch.user_weights
        weights = begins if given is None else begins * given[self.part]
        return np.asarray(self.marginals[:, : self.tile.lanes] @ weights)

    def _pairs(self, hard_pairs: dict[int, Array], weights: Array | None) -> Array:
        """Expected moves; those of lanes that were worked out in log space are given."""
        if weights is not None:
            lanes.weigh(self.weighted, self.tile.offsets, weights)
        pairs = np.zeros_like(self.messages.transition)
        self.messages.kernels.pair_sums(self.alpha, self.weighted, self.tile.offsets, pairs)
        pairs *= self.messages.transition
        for lane, found in hard_pairs.items():
            pairs += found if weights is None else weights[lane] * found
        return pairs

    def _in_log_space(self, lane: int, ends: Ends) -> Array:
        """Work a lane out anew: write its marginals in their place, keep it out of pair sums, return its own."""
        tile, messages = self.tile, self.messages
        positions = tile.starts[lane] + np.arange(tile.lengths[lane])
        columns = tile.offsets[: len(positions)] + lane
        _, logs = messages.log_likelihood(positions)
        found = log_pass(logs, messages.transition, self.start[:, lane], self.stop[:, lane])
        if found.impossible_at is not None:
            sequence = int(self.batch.sequences[tile.pieces[lane]])
            first = int(messages.data.offsets[sequence])
            raise impossible_error({sequence: int(positions[0]) - first + found.impossible_at})
        self.marginals[:, columns], self.weighted[:, columns] = found.marginals, 0.0
        self.log_totals[lane] = found.log_total
        ends.first_message[:, lane], ends.last_message[:, lane] = found.first_message, found.last_message
        ends.first_marginal[:, lane], ends.last_marginal[:, lane] = found.marginals[:, 0], found.marginals[:, -1]
        return found.pairs
