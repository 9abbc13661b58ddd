"""Subchains, their boundaries, and the statistics that minibatches stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import draw, model_of

from subchain.data.sequences import Sequences
from subchain.engines import CpuEngine
from subchain.engines.base import BufferGrowth
from subchain.engines.part import Part
from subchain.engines.statistics import HMMStatistics
from subchain.engines.subchains import Anywhere, Grid, Minibatch, MinibatchRun
from subchain.structures.chain.boundaries import Boundary, Buffer, OpenBoundary, Stationary
from subchain.structures.chain.growing_buffer import GrowBuffer
from subchain.structures.chain.guards import Guards
from subchain.structures.chain.structure import Chains
from subchain.transitions.incremental import IncrementalChain

ENGINE = CpuEngine(1)
FAMILIES = ["categorical", "gaussian", "poisson", "bernoulli"]


class Frozen(IncrementalChain):
    """A chain that stays, for boundaries that want to know its stationary distribution."""

    def __init__(self, transition: np.ndarray[Any, Any]) -> None:
        from subchain.numerics.stationary import stationary_distribution

        self._stationary = stationary_distribution(transition)

    def stationary(self) -> np.ndarray[Any, Any]:
        return self._stationary


class Case:
    """A model, data drawn from it, and exact marginals."""

    def __init__(self, family: str = "categorical", lengths: tuple[int, ...] = (61,), seed: int = 0) -> None:
        model = model_of(family)
        parts = [draw(model, n, seed=seed + i) for i, n in enumerate(lengths)]
        self.data = Sequences(np.concatenate(parts), np.concatenate(([0], np.cumsum(lengths))))
        self.point = model.point_
        self.surrogate = self.point.surrogate()
        self.chains = Chains(self.data, engine=ENGINE)
        self.chain = Frozen(self.point.chain.transition)
        marginals = model.predict_proba(list(parts))
        self.marginals = np.concatenate(marginals).T

    def run(self, batch: Minibatch, boundary: OpenBoundary) -> MinibatchRun:
        start, stop = boundary.enter(self.chains, self.surrogate, batch, self.chain)
        run = ENGINE.minibatch(self.surrogate, self.chains, batch, start, stop)
        boundary.leave(batch, run)
        return run


def open_for(case: Case, boundary: Boundary, grid: Any) -> OpenBoundary:
    return boundary.open(grid, case.surrogate.n_states, case.data.fingerprint())


@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=8).filter(any),
    length=st.one_of(st.none(), st.integers(2, 12)),
)
@settings(max_examples=60, deadline=None)
def test_a_grid_covers_every_position_once(lengths: list[int], length: int | None) -> None:
    grid = Grid(np.concatenate(([0], np.cumsum(lengths))), length)
    batch = grid.batch(np.arange(grid.size))
    covered = np.concatenate([s + np.arange(n) for s, n in zip(batch.starts, batch.lengths, strict=True)])
    np.testing.assert_array_equal(np.sort(covered), np.arange(sum(lengths)))
    assert (np.diff(batch.lengths) <= 0).all()
    assert batch.is_first.sum() == batch.is_last.sum() == np.count_nonzero(lengths)
    assert batch.lengths.max() <= (length or max(lengths))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lengths", [(61,), (40, 3, 17, 1)])
@pytest.mark.parametrize("boundary", [Buffer(39), GrowBuffer(tolerance=1e-12)])
def test_with_all_the_rest_in_sight_subchains_are_exact(family: str, lengths: Any, boundary: Boundary) -> None:
    case = Case(family, lengths)
    grid = Grid(case.data.offsets, 5)
    batch = grid.batch(np.arange(grid.size))
    run = case.run(batch, open_for(case, boundary, grid))
    np.testing.assert_allclose(run.ends.first_marginal, case.marginals[:, batch.starts], atol=1e-9)
    np.testing.assert_allclose(run.ends.last_marginal, case.marginals[:, batch.starts + batch.lengths - 1], atol=1e-9)


def _batch_statistics(case: Case) -> HMMStatistics:
    return ENGINE.statistics(case.surrogate, Part(case.data))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lengths", [(60,), (40, 3, 17, 1)])
def test_the_pieces_of_a_grid_stand_for_all_the_data(family: str, lengths: Any) -> None:
    """Scaled statistics, averaged over all minibatches, are those of all the data, but for the moves between pieces."""
    case = Case(family, lengths)
    grid = Grid(case.data.offsets, 5)
    whole = _batch_statistics(case)
    gains = grid.gains(1)
    mean: Any = None
    for piece in range(grid.size):
        found = case.run(grid.batch(np.array([piece])), open_for(case, Buffer(39), grid)).statistics
        mean = found if mean is None else mean + found
    scale = gains.emission / grid.size
    assert scale == 1.0
    np.testing.assert_allclose(mean.initial, whole.initial, atol=1e-9)
    for name, array in whole.emission.arrays().items():
        if "origin" not in name:
            np.testing.assert_allclose(mean.emission.arrays()[name], array, rtol=1e-8, atol=1e-8)
    assert mean.pairs.sum() * gains.pairs / grid.size == pytest.approx(whole.pairs.sum())


def test_subchains_that_begin_anywhere_stand_for_all_but_the_ends() -> None:
    case = Case("categorical", (60,))
    length = 7
    anywhere = Anywhere(case.data.offsets, length)
    assert anywhere.size == 60 - length + 1
    gains = anywhere.gains(anywhere.size)
    run = case.run(anywhere.batch(np.arange(anywhere.size)), open_for(case, Buffer(39), anywhere))
    coverage = np.minimum(np.minimum(np.arange(60) + 1, 60 - np.arange(60)), length) / length
    expected = np.zeros((case.marginals.shape[0], 1 + int(case.data.values.max())))
    np.add.at(expected.T, case.data.values, (case.marginals * coverage).T)
    counts = run.statistics.emission.arrays()["counts"] * gains.emission
    np.testing.assert_allclose(counts[: expected.shape[1]].T, expected * 60 / anywhere.size, rtol=1e-7)
    assert run.statistics.pairs.sum() * gains.pairs == pytest.approx(59)


@pytest.mark.parametrize("kind", [Grid, Anywhere])
@pytest.mark.parametrize("weights", [None, np.array([2.0, 0.5, 1.0])])
def test_every_sequence_counts_as_much_as_it_should(kind: Any, weights: Any) -> None:
    """Sequences of very different lengths: observations and moves of each are counted in full."""
    lengths = np.array([60, 9, 7])
    case = Case("categorical", tuple(lengths))
    subchains = kind(case.data.offsets, 7)
    pieces = np.arange(subchains.size)
    gains = subchains.gains(len(pieces))
    of_each = np.ones(3) if weights is None else weights
    for sequence in range(3):
        mine = pieces[np.searchsorted(subchains.firsts, pieces, side="right") - 1 == sequence]
        found = case.run(subchains.batch(mine, weights), open_for(case, Stationary(), subchains)).statistics
        counts = found.emission.arrays()["counts"].sum() * gains.emission
        assert counts == pytest.approx(of_each[sequence] * lengths[sequence])
        assert found.pairs.sum() * gains.pairs == pytest.approx(of_each[sequence] * (lengths[sequence] - 1))
        assert found.initial.sum() * gains.initial == pytest.approx(of_each[sequence])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lengths", [(61,), (40, 3, 17, 1)])
def test_guards_that_were_carried_to_and_fro_are_exact(family: str, lengths: Any) -> None:
    """Messages from left to right, then from right to left, are a forward-backward pass."""
    case = Case(family, lengths)
    grid = Grid(case.data.offsets, 4)
    guards = open_for(case, Guards("messages"), grid)
    guards.firsts, guards.lasts = (np.zeros(table.shape) for table in (guards.firsts, guards.lasts))  # type: ignore[attr-defined]
    for piece in [*range(grid.size), *range(grid.size)[::-1]]:
        run = case.run(grid.batch(np.array([piece])), guards)
    batch = grid.batch(np.arange(grid.size))
    run = case.run(batch, guards)
    np.testing.assert_allclose(run.ends.first_marginal, case.marginals[:, batch.starts], atol=1e-12)


def test_guards_of_neighbours_that_were_never_visited_say_nothing() -> None:
    case = Case("categorical", (40,))
    grid = Grid(case.data.offsets, 4)
    batch = grid.batch(np.array([3, 0, 9]))
    alone = case.run(batch, open_for(case, Stationary(), grid))
    guarded = case.run(batch, open_for(case, Guards(), grid))
    np.testing.assert_allclose(guarded.ends.first_marginal, alone.ends.first_marginal, rtol=1e-12)


def test_marginals_are_what_guards_keep_if_they_are_told_to() -> None:
    case = Case("categorical", (40,))
    grid = Grid(case.data.offsets, 4)
    guards: Any = open_for(case, Guards("marginals"), grid)
    run = case.run(grid.batch(np.array([5])), guards)
    np.testing.assert_allclose(guards.firsts[5], run.ends.first_marginal[:, 0], rtol=1e-6)
    np.testing.assert_allclose(guards.lasts[5], run.ends.last_marginal[:, 0], rtol=1e-6)
    run = case.run(grid.batch(np.array([6])), guards)
    start, _ = guards.enter(case.chains, case.surrogate, grid.batch(np.array([6])), case.chain)
    np.testing.assert_allclose(start[:, 0], guards.lasts[5].astype(float) @ case.point.chain.transition, rtol=1e-6)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("family", FAMILIES)
def test_grown_buffers_find_the_beliefs_of_the_whole_chain(family: str, tolerance: float) -> None:
    case = Case(family, (300,))
    grid = Grid(case.data.offsets, 3)
    batch = grid.batch(np.arange(grid.size))
    growth = BufferGrowth(tolerance, 2, 1000)
    start, stop, grown = ENGINE.grow(case.surrogate, case.chains, batch, case.chain.stationary(), growth)
    run = ENGINE.minibatch(case.surrogate, case.chains, batch, start, stop)
    for found, at in (
        (run.ends.first_marginal, batch.starts),
        (run.ends.last_marginal, batch.starts + batch.lengths - 1),
    ):
        assert 0.5 * np.abs(found - case.marginals[:, at]).sum(axis=0).max() <= tolerance
    assert grown.max() < 100


def test_smaller_tolerances_look_further() -> None:
    case = Case("gaussian", (300,))
    grid = Grid(case.data.offsets, 3)
    batch = grid.batch(np.arange(grid.size))
    means = []
    for tolerance in (0.1, 1e-3, 1e-9):
        growth = BufferGrowth(tolerance, 1, 1000)
        found = ENGINE.grow(case.surrogate, case.chains, batch, case.chain.stationary(), growth)
        means.append(found.reach.mean())
    assert means[0] < means[1] < means[2]


def test_many_tiles_are_one_minibatch(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("gaussian", (997,))
    grid = Grid(case.data.offsets, 10)
    batch = grid.batch(np.random.default_rng(0).integers(grid.size, size=80))
    boundary = open_for(case, Stationary(), grid)
    one = case.run(batch, boundary)
    from subchain.engines.cpu import minibatches

    monkeypatch.setattr(minibatches, "tile_lanes", lambda *_: 16)
    many = case.run(batch, boundary)
    np.testing.assert_allclose(many.statistics.pairs, one.statistics.pairs, rtol=1e-12)
    np.testing.assert_allclose(many.log_totals, one.log_totals)
    for ours, theirs in zip(many.ends, one.ends, strict=True):
        np.testing.assert_allclose(ours, theirs)


def test_a_subchain_that_defeats_scaled_probabilities_is_worked_out_in_logarithms() -> None:
    case = Case("gaussian", (12,))
    values = case.data.values.copy()
    values[5] += 1e4  # a state that is very improbable there
    data = Sequences(values)
    surrogate = case.point.surrogate()
    blocked = surrogate.replace(transition=np.diag([1.0, 1.0, 1.0]), initial=np.array([1.0, 1e-300, 1e-300]))
    chains = Chains(data, engine=ENGINE)
    grid = Grid(data.offsets, None)
    start, stop = OpenBoundary().enter(chains, blocked, grid.batch(np.array([0])), Frozen(np.full((3, 3), 1 / 3)))
    run = ENGINE.minibatch(blocked, chains, grid.batch(np.array([0])), start, stop)
    assert np.isfinite(run.log_totals).all()
    np.testing.assert_allclose(run.statistics.pairs.sum(), 11)
