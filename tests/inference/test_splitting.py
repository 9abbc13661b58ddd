"""Splits: what the two states begin with, and what they share out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import FAMILIES, example

from subchain import HDP, HMM, VI
from subchain.data import Sequences
from subchain.engines import resolve_engine
from subchain.engines.part import Part
from subchain.engines.statistics import HMMStatistics
from subchain.inference.run.chains import ChainProblem
from subchain.inference.search.splitting import FREE, LARGE, Splitter, has_free_state
from subchain.propagation.occurrence.methods import METHODS
from subchain.structures.chain.excerpts import Excerpt
from subchain.structures.chain.model import HMMPosterior
from subchain.structures.chain.structure import Chains

pytestmark = pytest.mark.filterwarnings("ignore")
STATES = 4


def fitted(family: str, shape: str = "many", weights: Any = None) -> tuple[ChainProblem, HMMPosterior, HMMStatistics]:
    """A problem, and a prior and statistics in which the last state is not used."""
    specification, data = example(family, shape)
    model = HMM(STATES, specification, HDP(merges=False, splits=False), VI(max_iter=4), random_state=0).fit(data)
    data = specification.prepare(data)
    problem = ChainProblem(Chains(data, None, weights, engine=resolve_engine("cpu", 1)), model.prior_)
    statistics = problem.structure.statistics(model.posterior_.expected_log()).fold(0, STATES - 1)
    return problem, model.prior_.update_hyperparameters(statistics), statistics


@pytest.mark.parametrize("family", FAMILIES)
def test_only_the_two_states_change(family: str) -> None:
    problem, prior, statistics = fitted(family)
    splitter = Splitter(problem.structure, VI(), prior, statistics, np.random.default_rng(0))
    seeds = [*splitter.by_size(), *splitter.by_misfit()]
    assert len(seeds) >= 2
    for split in map(splitter.split, seeds):
        assert split.free == STATES - 1
        others = np.array([k for k in range(STATES) if k not in (split.state, split.free)])
        assert split.statistics.pairs[np.ix_(others, others)] == pytest.approx(statistics.pairs[np.ix_(others, others)])
        assert split.statistics.initial[others] == pytest.approx(statistics.initial[others])
        before = prior.emission.update(statistics.emission).mean().take(others).arrays()
        after = prior.emission.update(split.statistics.emission).mean().take(others).arrays()
        for name, array in before.items():
            assert after[name] == pytest.approx(array, rel=1e-8, abs=1e-8), name
        assert split.statistics.not_finite() is None
        assert (split.statistics.pairs >= 0.0).all()


def test_there_is_none_where_no_state_is_free_or_none_is_large() -> None:
    problem, prior, statistics = fitted("categorical")
    assert has_free_state(statistics)
    assert not has_free_state(HMMStatistics.of(statistics.initial, statistics.pairs + FREE, statistics.emission))
    small = statistics.scale(0.9 * LARGE / (statistics.initial + statistics.pairs.sum(axis=0)).max())
    splitter = Splitter(problem.structure, VI(), prior, small, np.random.default_rng(0))
    assert not list(splitter.by_size())
    assert not splitter.by_misfit()


def test_the_state_that_does_the_work_of_two_is_first_by_misfit() -> None:
    rng = np.random.default_rng(0)
    path = np.repeat(rng.integers(4, size=200), 20)
    x = np.array([-5.0, 0.0, 5.0, 6.5])[path][:, None] + 0.3 * rng.normal(size=(len(path), 1))
    chains = Chains(Sequences(x), engine=resolve_engine("cpu", 1))
    model = HMM(4, "gaussian", random_state=0).fit(x, states=np.minimum(path, 2))
    splitter = Splitter(chains, VI(), model.prior_, model.statistics_, rng)
    first = splitter.by_misfit()[0]
    assert (first.state, splitter.free) == (2, 3)
    means = model.prior_.emission.update(splitter.split(first).statistics.emission).mean().means.ravel()
    assert np.sort(means[2:]) == pytest.approx([5.0, 6.5], abs=0.1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_an_excerpt_of_everything_is_everything(family: str, weighted: bool) -> None:
    weights = np.linspace(0.5, 2.0, 12) if weighted else None
    problem, prior, statistics = fitted(family, weights=weights)
    surrogate = prior.update(statistics).expected_log()
    excerpt = Excerpt(problem.structure, 1000, 1000, np.random.default_rng(0))
    found, whole = excerpt.statistics(surrogate), problem.structure.statistics(surrogate)
    assert found.pairs == pytest.approx(whole.pairs)
    assert found.initial == pytest.approx(whole.initial)
    assert found.log_normalizer == pytest.approx(whole.log_normalizer)
    for name, array in prior.emission.update(found.emission).mean().arrays().items():
        assert array == pytest.approx(prior.emission.update(whole.emission).mean().arrays()[name]), name
    visits = whole.initial + whole.pairs.sum(axis=0)
    if not weighted:
        assert np.hstack(excerpt.marginals(surrogate)).sum(axis=1) == pytest.approx(visits)


def test_a_stretch_has_the_statistics_of_its_positions() -> None:
    problem, prior, statistics = fitted("categorical")
    surrogate = prior.update(statistics).expected_log()
    excerpt = Excerpt(problem.structure, 20, 5, np.random.default_rng(1))
    occupancy = np.array([table.sum(axis=1) for table in excerpt.marginals(surrogate)])
    assert occupancy.shape == (5, STATES)
    assert occupancy.sum(axis=1) == pytest.approx(np.full(5, 20.0))
    for stretch in range(5):
        own = excerpt.statistics_of(surrogate, stretch)
        start = int(excerpt.batch.starts[stretch])
        part = Sequences(problem.structure.data.values[start : start + 20])
        assert own.pairs == pytest.approx(problem.structure.engine.statistics(surrogate.surrogate(), Part(part)).pairs)
        assert occupancy[stretch] == pytest.approx(own.initial + own.pairs.sum(axis=0))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_surplus_of_an_excerpt_of_everything_is_that_of_the_data(weighted: bool, method: str) -> None:
    weights = np.linspace(0.5, 2.0, 12) if weighted else None
    problem, prior, statistics = fitted("categorical", weights=weights)
    surrogate, whole = prior.update(statistics).predictive(), problem.structure
    found = problem.structure.engine.occurrence(surrogate.surrogate(), whole, method)
    expected = whole.statistics(surrogate)
    first, moves = Excerpt(problem.structure, 1000, 1000, np.random.default_rng(0)).surplus(surrogate, method)
    assert first == pytest.approx(found.first - expected.initial, rel=1e-9, abs=1e-9)
    assert moves == pytest.approx(found.moves - expected.pairs, rel=1e-9, abs=1e-9)
