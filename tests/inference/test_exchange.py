"""Searches at a fixed number of states: a merge and a split together lead out of poor local optima."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from subchain import CVI, EM, HDP, HMM, SVI, VI, Dirichlet, Gaussian, left_right
from subchain.errors import InputError
from subchain.structures.chain.structure import Chains

pytestmark = pytest.mark.filterwarnings("ignore")


def regimes(n: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """One wide regime, which k-means cuts in two, and two narrow ones close to each other, which it takes for one."""
    rng = np.random.default_rng(0)
    path = np.repeat(rng.integers(3, size=n // 20), 20)
    means, widths = np.array([0.0, 12.0, 13.0]), np.array([4.0, 0.2, 0.2])
    return (means[path] + widths[path] * rng.normal(size=n))[:, None], path


def agreement(model: HMM, x: np.ndarray, path: np.ndarray) -> float:
    """Share of the positions whose regime is the most frequent one of their state."""
    table = np.zeros((model.n_states_, 3))
    np.add.at(table, (model.predict(x), path), 1.0)
    return float(table.max(axis=1).sum() / len(path))


ALGORITHMS = [EM(), VI(), CVI(), SVI(max_updates=600, report_every=50), EM(batch=20, max_updates=600, report_every=50)]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda given: given.name)
def test_the_search_finds_what_a_poor_start_hides(algorithm: Any) -> None:
    x, path = regimes()
    found = {}
    for search in (False, True):
        inference = type(algorithm)(**algorithm.get_params(deep=False) | {"search": search})
        model = HMM(3, "gaussian", inference=inference, init="kmeans", random_state=0, n_jobs=1).fit(x)
        found[search] = agreement(model, x, path)
    assert found[True] > 0.95
    assert found[True] >= found[False]


def test_without_a_search_the_start_is_indeed_poor() -> None:
    x, path = regimes()
    assert (
        agreement(HMM(3, "gaussian", inference=EM(search=False), init="kmeans", random_state=0).fit(x), x, path) < 0.8
    )


@pytest.mark.parametrize("algorithm", [EM, VI])
def test_the_objective_rises_and_the_trace_says_what_was_tried(algorithm: Any) -> None:
    x, _ = regimes()
    model = HMM(3, "gaussian", inference=algorithm(), init="kmeans", random_state=0).fit(x)
    assert np.diff(model.trace_.objective).min() >= -1e-6
    messages = [event.message for event in model.trace_.events]
    assert any("was taken into state" in message and "gave part of its work" in message for message in messages)
    assert messages[-1].startswith("search after iteration ")
    assert model.status_ == "converged"


def test_a_state_that_is_not_used_splits_another_without_a_merge() -> None:
    x, path = regimes()
    model = HMM(6, "gaussian", inference=VI(), random_state=0, init="random").fit(x)
    assert agreement(model, x, path) > 0.95


def never_searched() -> dict[str, tuple[HMM, dict[str, Any]]]:
    x, path = regimes(400)
    given = HMM.from_parameters(np.ones(3) / 3, np.ones((3, 3)) / 3, Gaussian.from_parameters(x[:3], [np.eye(1)] * 3))
    settings: dict[str, Any] = {"inference": EM(), "random_state": 0}
    return {
        "a given start": (HMM(3, "gaussian", init=given, **settings), {}),
        "a mask": (HMM(3, "gaussian", Dirichlet(mask=left_right), **settings), {}),
        "a row of concentrations": (HMM(3, "gaussian", Dirichlet(concentration=1.0 + np.eye(3)), **settings), {}),
        "known states": (HMM(3, "gaussian", **settings), {"states": np.where(np.arange(400) % 9, -1, path)}),
        "one state": (HMM(1, "gaussian", **settings), {}),
    }


@pytest.mark.parametrize("what", never_searched())
def test_states_with_meanings_of_their_own_are_not_exchanged(what: str) -> None:
    model, known = never_searched()[what]
    model.fit(regimes(400)[0], **known)
    assert not any("search" in event.message for event in model.trace_.events)


def test_no_search_leaves_the_number_of_states_of_an_infinite_model_alone() -> None:
    x, _ = regimes(1000)
    model = HMM(10, "gaussian", HDP(), VI(search=False, max_iter=50), random_state=0).fit(x)
    assert not any("taken into" in event.message or "gave part" in event.message for event in model.trace_.events)


def test_a_resumed_run_with_searches_ends_in_the_same_bits(tmp_path: Any) -> None:
    x, _ = regimes(1000)
    settings: dict[str, Any] = {"init": "kmeans", "random_state": 0, "n_jobs": 1}
    whole = HMM(3, "gaussian", inference=EM(), **settings).fit(x)
    assert any("taken into" in event.message for event in whole.trace_.events)
    for stop in (3, 8, len(whole.trace_.objective) - 2):
        path = tmp_path / str(stop)
        HMM(3, "gaussian", inference=EM(max_iter=stop), **settings).fit(x, checkpoint=path)
        resumed = HMM(3, "gaussian", inference=EM(), **settings).fit(x, checkpoint=path, resume=True)
        assert resumed.trace_.objective == whole.trace_.objective
        assert resumed.trace_.events == whole.trace_.events
        assert (resumed.emission_.means == whole.emission_.means).all()


@pytest.mark.parametrize("value", ["yes", 2, None])
def test_whether_to_search_is_true_or_false(value: Any) -> None:
    with pytest.raises(InputError, match="search must be True or False"):
        HMM(3, "gaussian", inference=EM(search=value)).fit(regimes(100)[0])


def passes_over_the_data(monkeypatch: pytest.MonkeyPatch, inference: Any, x: np.ndarray, n_states: int) -> float:
    """Passes of a run and of its searches, as a multiple of the iterations."""
    passes = []
    whole = Chains.statistics
    monkeypatch.setattr(Chains, "statistics", lambda *given: passes.append(1) or whole(*given))
    model = HMM(n_states, "gaussian", inference=inference, random_state=0).fit(x)
    monkeypatch.undo()
    return len(passes) / len(model.trace_.objective)


def test_searches_among_many_states_cost_no_more_than_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(2.0 * np.repeat(rng.integers(60, size=150), 20))
    assert passes_over_the_data(monkeypatch, EM(max_iter=80), x, 60) < 1.7


def test_collapsed_visits_in_python_are_not_taken_for_cheap() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(5.0 * np.repeat(rng.integers(3, size=10), 10)[:, None], 1.0, (100, 3))
    x[rng.random(x.shape) < 0.4] = np.nan
    model = HMM(7, "gaussian", inference=CVI(max_iter=20), random_state=0).fit(x)
    notes = [event.message for event in model.trace_.events if event.message.startswith("search after")]
    tried = [int(note.partition(": ")[2].split()[0]) for note in notes]
    assert len(tried) > 0
    assert sum(tried) <= 12  # 80 visits in Python for each
