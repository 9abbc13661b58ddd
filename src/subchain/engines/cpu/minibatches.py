"""The subchains of a minibatch, side by side as lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.fused import Rows, compiled_family, tables_in, takes_matrix, ways_of
from subchain.engines.cpu.log_space import log_pass
from subchain.engines.cpu.messages import Messages
from subchain.engines.cpu.partition import Tile, group_bounds, tile_lanes
from subchain.engines.cpu.workspace import Workers
from subchain.engines.results import Keep
from subchain.engines.statistics import HMMStatistics
from subchain.engines.subchains import Ends, Minibatch, MinibatchRun
from subchain.errors import impossible_error
from subchain.numerics.subnormals import subnormals_after_errors
from subchain.propagation import lanes
from subchain.propagation.lanes.groups import Claims
from subchain.propagation.lanes.subchains import Subchains, Told, run_subchains
from subchain.propagation.layout import Walks
from subchain.propagation.occurrence.methods import absence_in, conditionals, expected_transitions
from subchain.propagation.occurrence.pairs import add_surplus
from subchain.propagation.underflow import LEAST_MARGINAL, LEAST_SCALE
from subchain.propagation.verbs import kernel_for

Array = NDArray[np.float64]


def run_minibatch(
    workers: Workers, messages: Messages, batch: Minibatch, start: Array, stop: Array, keep: Keep | None,
    surplus: str | None,
) -> MinibatchRun:  # fmt: skip
    """Run all subchains of a minibatch between messages from outside; see `Engine.minibatch`."""
    n_states = messages.surrogate.n_states
    wide = tile_lanes(int(batch.lengths[0]), n_states, batch.n_observations, messages.kernels.is_wide)
    slices = [slice(at, min(at + wide, batch.size)) for at in range(0, batch.size, wide)]
    if keep is None and surplus is None and takes_matrix(messages):
        family = compiled_family(messages)
        if family is not None:
            return _run_compiled(workers, messages, family, batch, slices, start, stop)
    runs = workers.map(lambda part: _Lanes(messages, batch, part, start, stop).run(keep, surplus), slices)
    if len(runs) == 1:
        return runs[0]
    total, more = runs[0].statistics, runs[0].surplus
    for run in runs[1:]:
        total.absorb(run.statistics)
        if more is not None and run.surplus is not None:
            more += run.surplus
    ends = Ends(*(np.concatenate(tables, axis=1) for tables in zip(*(run.ends for run in runs), strict=True)))
    return MinibatchRun(total, np.concatenate([run.log_totals for run in runs]), ends, more)


def _run_compiled(
    workers: Workers, messages: Messages, family: Any, batch: Minibatch, slices: list[slice], start: Array, stop: Array
) -> MinibatchRun:
    """Run all subchains in one compiled call of each thread, and what that leaves over tile by tile."""
    surrogate, n_states = messages.surrogate, messages.surrogate.n_states
    statistics = HMMStatistics(surrogate.transition.zeros(), surrogate.emission.zeros())
    lanes, none = _lanes(batch, slices, start, stop), np.empty((n_states, batch.size))
    columns = np.add.reduceat(batch.lengths, lanes.tiles[:-1])
    bounds = group_bounds(columns, n_states, sum(array.nbytes for array in statistics.summed_parts()), least=1)
    rows = Rows(messages.cuts, len(bounds) - 1, statistics.summed_parts())
    told = Told(np.empty(batch.size), none, np.empty_like(none), np.empty_like(none), np.empty_like(none))
    claims = Claims(bounds, np.arange(len(bounds) - 1), np.zeros(1, dtype=np.int64))
    ways, done = ways_of(messages), np.empty(len(slices), dtype=np.bool_)
    run = kernel_for(run_subchains, family)

    def work() -> None:
        space = messages.workspace()
        tables = tables_in(space, n_states, int(columns.max()))
        with subnormals_after_errors():
            run(family, lanes, claims, ways, tables, told, rows.table, done)

    workers.share(work, len(bounds) - 1)
    rows.add_up(workers)
    statistics.chain.pairs *= ways.transition
    for part in (part for part, is_done in zip(slices, done, strict=True) if not is_done):
        other = _Lanes(messages, batch, part, start, stop).run(None, None)
        statistics.absorb(other.statistics)
        for whole, own in zip(told, (other.log_totals, *other.ends), strict=True):
            whole[..., part] = own
    statistics.log_normalizer, statistics.n_observations = float(told.totals.sum()), float(batch.n_observations)
    return MinibatchRun(statistics, told.totals, Ends(*told[1:]))


def _lanes(batch: Minibatch, slices: list[slice], start: Array, stop: Array) -> Subchains:
    """The subchains as the kernel takes them."""
    tiles = np.array([0, *(part.stop for part in slices)])
    begins = batch.is_first.astype(np.float64)
    first_weights = begins if batch.user_weights is None else begins * batch.user_weights
    weights, pair_weights = (np.empty(0) if own is None else own for own in (batch.weights, batch.pair_weights))
    start, stop = np.ascontiguousarray(start), np.ascontiguousarray(stop)
    return Subchains(tiles, batch.starts, batch.lengths, start, stop, first_weights, weights, pair_weights)


class _Lanes:
    """Some subchains of a minibatch, side by side."""

    def __init__(self, messages: Messages, batch: Minibatch, part: slice, start: Array, stop: Array) -> None:
        self.messages = messages
        self.batch = batch
        self.part = part
        self.start, self.stop = (np.ascontiguousarray(table[:, part]) for table in (start, stop))
        self.tile = tile = Tile(np.arange(batch.size)[part], batch.starts[part], batch.lengths[part])
        self._space, n_states = messages.workspace(), messages.surrogate.n_states
        #: Likelihoods, which the backward pass turns into the messages that pair sums are made from.
        self.weighted = self._space.table("likelihood", n_states, tile.columns)
        self.alpha = self._space.table("alpha", n_states, tile.columns)
        self.marginals = self._space.table("marginals", n_states, tile.columns)
        self.scale = self._space.table("scale", 1, tile.columns)[0]
        self.log_totals = np.empty(tile.lanes)

    def run(self, keep: Keep | None, surplus: str | None) -> MinibatchRun:
        """Statistics of the lanes, and what they tell their neighbours."""
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
        chain = self.messages.operator.sums(initial, pairs)
        total, columns = float(self.log_totals.sum()), float(self.tile.columns)
        statistics = HMMStatistics(chain, sums, log_normalizer=total, n_observations=columns)
        return MinibatchRun(statistics, self.log_totals, ends, more)

    def _surplus(self, method: str, weights: Array | None) -> Array:
        """See `propagation.occurrence`; lanes that were run in log space are left out."""
        transition, tile = self.messages.operator.dense(), self.tile
        found = np.zeros_like(transition)
        each = np.ones(tile.lanes) if weights is None else weights
        if method == "pairs":
            add_surplus(self.alpha, self.weighted, transition, self.marginals, tile.offsets, each, found)
            return found
        for lane in range(tile.lanes):
            columns = tile.offsets[: tile.lengths[lane]] + lane
            moves = conditionals(self.weighted[:, columns].T, transition)
            if len(moves) and moves.any():
                first = self.marginals[:, lane]
                absent = absence_in(method, first, moves, key=(0, int(tile.starts[lane])))
                found += each[lane] * (absent - expected_transitions(first, moves))
        return found

    def _forward_backward(self, shift: Array) -> NDArray[np.bool_]:
        """Fill the tables; say which lanes underflow."""
        messages, kernels, tile = self.messages, self.messages.kernels, self.tile
        alpha, scale, offsets, last = self.alpha, self.scale, tile.offsets, tile.last_columns
        if messages.every_way:
            kernels.forward_backward(
                self.weighted, self.start, self.stop, offsets, shift, alpha, scale, self.marginals, self.log_totals
            )  # fmt: skip
            is_hard = np.zeros(tile.lanes, dtype=np.bool_)
        else:
            kernels.forward(self.weighted, self.start, offsets, alpha, scale)
            kernels.log_totals(scale, shift, offsets, self.log_totals)
            walks = Walks(tile.lengths, np.arange(tile.lanes), offsets, tile.starts)
            lost = kernels.growth(self.weighted, self.start, walks, alpha, scale)
            is_hard = lost.matters_before(alpha[:, last], self.stop)
            kernels.backward(self.weighted, self.stop, offsets, alpha, scale, self.marginals)
        is_hard |= ~np.isfinite(self.log_totals)
        is_hard |= ~((alpha[:, last] * self.stop).sum(axis=0) * scale[last] >= LEAST_MARGINAL)
        if not scale.min() >= LEAST_SCALE:
            lane_of = np.arange(tile.columns) - np.repeat(offsets[:-1], np.diff(offsets))
            np.logical_or.at(is_hard, lane_of, scale < LEAST_SCALE)
        return is_hard

    def _first_states(self) -> Array:
        """Marginals of the states that sequences begin with, added up; users' weights count, others do not."""
        begins, given = self.batch.is_first[self.part], self.batch.user_weights
        weights = begins.astype(np.float64) if given is None else begins * given[self.part]
        return np.asarray(self.marginals[:, : self.tile.lanes] @ weights)

    def _pairs(self, hard_pairs: dict[int, Array], weights: Array | None) -> Array:
        """Expected transitions; those of lanes that were worked out in log space are given."""
        if weights is not None:
            lanes.weigh(self.weighted, self.tile.offsets, weights)
        transition = self.messages.operator.weights
        pairs = np.zeros(transition.shape)
        self.messages.kernels.pair_sums(self.alpha, self.weighted, self.tile.offsets, pairs)
        pairs *= transition
        for lane, found in hard_pairs.items():
            pairs += found if weights is None else weights[lane] * found
        return pairs

    def _in_log_space(self, lane: int, ends: Ends) -> Array:
        """Work a lane out anew: write its marginals in their place, keep it out of pair sums, return its own."""
        tile, messages = self.tile, self.messages
        positions = tile.starts[lane] + np.arange(tile.lengths[lane])
        columns = tile.offsets[: len(positions)] + lane
        _, logs = messages.log_likelihood(positions)
        found = log_pass(logs, messages.kernels, self.start[:, lane], self.stop[:, lane])
        if found.impossible_at is not None:
            sequence = int(self.batch.sequences[tile.pieces[lane]])
            first = int(messages.data.offsets[sequence])
            raise impossible_error({sequence: int(positions[0]) - first + found.impossible_at})
        self.marginals[:, columns] = found.marginals
        self.alpha[:, columns] = self.weighted[:, columns] = 0.0  # they may be nan, which zeros would not hide
        self.log_totals[lane] = found.log_total
        ends.first_message[:, lane], ends.last_message[:, lane] = found.first_message, found.last_message
        ends.first_marginal[:, lane], ends.last_marginal[:, lane] = found.marginals[:, 0], found.marginals[:, -1]
        return found.pairs
