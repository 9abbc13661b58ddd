"""Searches over the number of states: what is found, what is left alone, and what a run is after a search."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brief import same
from examples import example

from subchain import CVI, HDP, HMM, SCVI, SVI, VI, Categorical, Gaussian
from subchain.core.hyperparameters import EARLY
from subchain.data import Sequences
from subchain.datasets.published import four_state
from subchain.engines.statistics import HMMStatistics
from subchain.inference.batch.passes import PassTrials
from subchain.inference.collapsed.visits import Visits
from subchain.inference.search.search import OneSearch, StateSearch, loosened
from subchain.inference.search.splitting import Splitter
from subchain.structures.chain.collapsed.ledger import ChainLedger


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


TABLE = np.array([[0.8, 0.1, 0.1, 0.0], [0.0, 0.8, 0.1, 0.1], [0.1, 0.0, 0.1, 0.8]])
MOVES = np.array([[0.8, 0.2, 0.0], [0.0, 0.7, 0.3], [0.4, 0.0, 0.6]])


def three_states(n: int = 20, length: int = 60, seed: int = 0) -> Sequences:
    truth = HMM.from_parameters([1 / 3] * 3, MOVES, Categorical.from_parameters(TABLE))
    parts = [truth.sample(length, random_state=seed + i).observations for i in range(n)]
    return Sequences(np.concatenate(parts), np.arange(0, n * length + 1, length))


def start(groups: list[list[int]], n_states: int) -> HMM:
    """A model in which each state stands for some of the three; those that are left over for next to nothing."""
    weight = np.full(n_states, 1e-9)
    table, moves = np.full((n_states, 4), 0.25), np.full((n_states, n_states), 1.0 / n_states)
    for state, group in enumerate(groups):
        table[state] = TABLE[group].mean(axis=0) + 1e-2
        weight[state] = 1.0
        for other, reached in enumerate(groups):
            moves[state, other] = 0.01 + sum(MOVES[group][:, k].mean() / sum(k in g for g in groups) for k in reached)
        moves[state, len(groups) :] = 1e-9
    normal = [array / array.sum(axis=-1, keepdims=True) for array in (weight, moves, table)]
    return HMM.from_parameters(normal[0], normal[1], Categorical.from_parameters(normal[2]))


def stochastic(kind: Any) -> Any:
    return kind(length=None, batch=10, max_updates=160, report_every=10)


ALGORITHMS: dict[str, Any] = {
    "vi": lambda: VI(max_iter=15, tolerance=0.0),
    "vi of states": lambda: VI(max_iter=15, tolerance=0.0, cluster="state"),
    "cvi": lambda: CVI(max_iter=15, tolerance=0.0),
    "svi": lambda: stochastic(SVI),
    "scvi": lambda: stochastic(SCVI),
}


def messages(model: HMM) -> str:
    return " ".join(event.message for event in model.trace_.events)


def model_of(inference: Any, init: Any, n_states: int = 5, **hierarchy: Any) -> HMM:
    return HMM(
        n_states, Categorical(0.5, n_categories=4), HDP(**hierarchy), inference, init=init, random_state=0, n_jobs=1
    )


@pytest.mark.parametrize("name", ALGORITHMS)
def test_two_states_that_do_the_work_of_one_become_one(name: str) -> None:
    fitted = model_of(ALGORITHMS[name](), start([[0], [1], [2], [2]], 5), splits=False).fit(three_states())
    assert "taken into" in messages(fitted)
    assert fitted.effective_states() == 3


@pytest.mark.parametrize("name", ALGORITHMS)
def test_without_merges_they_stay_two(name: str) -> None:
    inference = ALGORITHMS[name]()
    fitted = model_of(inference, start([[0], [1], [2], [2]], 5), splits=False, merges=False).fit(three_states())
    assert messages(fitted) == ""


@pytest.mark.parametrize("name", ALGORITHMS)
def test_three_states_are_found_from_two(name: str) -> None:
    fitted = model_of(ALGORITHMS[name](), start([[0], [1, 2]], 5)).fit(three_states())
    assert fitted.effective_states() == 3


@pytest.mark.parametrize("name", ["vi", "vi of states", "svi"])  # collapsed, unused states grow by themselves
def test_a_state_that_does_the_work_of_two_becomes_two(name: str) -> None:
    fitted = model_of(ALGORITHMS[name](), start([[0], [1, 2]], 5), merges=False).fit(three_states())
    assert "gave part of its work" in messages(fitted)
    assert fitted.effective_states() >= 3


@pytest.mark.parametrize("name", ALGORITHMS)
def test_nothing_is_tried_before_states_differ(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    improve = OneSearch.improve

    def remember(self: OneSearch, here: Any) -> Any:
        tried.append(here.prior.chain.hierarchy.n_updates)
        return improve(self, here)

    monkeypatch.setattr(OneSearch, "improve", remember)
    model_of(ALGORITHMS[name](), "exponential").fit(three_states(4, 30))
    assert min(tried, default=EARLY) >= EARLY


# ---- proposals that come to nothing ----------------------------------------------------------------------------------


FUTILE: dict[str, Any] = {
    "vi": (VI(max_iter=14, tolerance=0.0), "categorical", "many"),
    "vi of states": (VI(max_iter=14, tolerance=0.0, cluster="state"), "categorical", "many"),
    "cvi": (CVI(max_iter=14, tolerance=0.0), "categorical", "many"),
    "cvi, shuffled": (CVI(max_iter=14, tolerance=0.0, order="shuffled"), "categorical", "ragged"),
    "cvi, batch": (CVI(max_iter=14, tolerance=0.0, order="batch"), "categorical", "many"),
    "cvi of states": (CVI(max_iter=14, tolerance=0.0, cluster="state"), "categorical", "many"),
    "cvi of subchains": (CVI(max_iter=14, tolerance=0.0, cluster="subchain", length=5), "categorical", "many"),
    "cvi, holes": (CVI(max_iter=5, tolerance=0.0), "gaussian", "missing"),
    "cvi, reals": (CVI(max_iter=14, tolerance=0.0, cluster_size=2), "gaussian", "many"),
    "cvi, parts": (CVI(max_iter=14, tolerance=0.0), "product", "many"),
    "svi": (SVI(length=None, batch=4, max_updates=140, report_every=10), "categorical", "many"),
    "scvi": (SCVI(length=None, batch=4, max_updates=140, report_every=10, average=True), "categorical", "many"),
}


@pytest.mark.parametrize(
    ("name", "storage"), [(name, False) for name in FUTILE] + [("cvi", True), ("cvi, batch", True)]
)
def test_a_rejected_proposal_leaves_the_run_as_if_it_had_not_been_made(
    name: str, storage: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    inference, family, shape = FUTILE[name]
    if storage:
        inference = CVI(**(inference.get_params() | {"storage": tmp_path}))
    specification, data = example(family, shape)

    def fit() -> HMM:
        return HMM(4, specification, HDP(), inference, random_state=3, n_jobs=1).fit(data)

    tried: list[str] = []

    def refused(self: OneSearch, here: Any) -> Any:
        run, chains, algorithm = self.trials.attempt, self.search.chains, self.search.algorithm
        for into, gone in ((0, 1), (2, 0)):
            folded = here.statistics.fold(into, gone)
            run(here.prior.update_hyperparameters(folded), folded)
            tried.append("merge")
        splitter = Splitter(chains, algorithm, here.prior, here.statistics, np.random.default_rng(0))
        for split in map(splitter.split, splitter.by_size()):
            run(here.prior.update_hyperparameters(split.statistics), split.statistics)
        return here

    monkeypatch.setattr(StateSearch, "is_due", lambda self, trials, state, step: (state.iteration + 1) % 4 == 0)
    monkeypatch.setattr(OneSearch, "improve", lambda self, here: here)
    undisturbed = fit()
    monkeypatch.setattr(OneSearch, "improve", refused)
    disturbed = fit()
    assert tried
    assert undisturbed.trace_.objective == disturbed.trace_.objective
    for part in ("point_", "statistics_", "prior_"):
        one, other = getattr(undisturbed, part).arrays(), getattr(disturbed, part).arrays()
        assert all(np.array_equal(one[key], other[key]) for key in one), part
    if storage:
        assert not list(tmp_path.glob("*.copy")), "copies of trials are cleared away"


def assert_counts_are_the_shares(ledger: ChainLedger) -> None:
    before = ledger.current_prior.update(ledger.statistics).arrays()
    ledger.add_up()
    for key, array in ledger.current_prior.update(ledger.statistics).arrays().items():
        assert before[key] == pytest.approx(array, rel=1e-9, abs=1e-9), key


@pytest.mark.parametrize("name", ALGORITHMS)
def test_states_that_somebody_knows_may_do_the_same(name: str) -> None:
    """A merge of two of them makes the data impossible; that is no reason to give up the run."""
    emission, data = example("categorical", "many")
    rng = np.random.default_rng(0)
    names = 5 - rng.integers(0, 4, data.n_observations)
    known = np.where(rng.random(data.n_observations) < 0.5, names, -1).reshape(12, 20)
    fitted = HMM(6, emission, HDP(), ALGORITHMS[name](), random_state=0, n_jobs=1).fit(data, states=list(known))
    assert (np.stack(fitted.predict(data, states=list(known)))[known >= 0] == known[known >= 0]).all()


# ---- interruptions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["categorical", "gaussian"])
@pytest.mark.parametrize("order", ["incremental", "batch"])
@pytest.mark.parametrize("when", [1, 2, 3, 5])
def test_an_interruption_during_a_search_leaves_whole_results(
    order: str, family: str, when: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    specification, data = example(family, "missing" if family == "gaussian" else "many")

    def fit(**arguments: Any) -> HMM:
        algorithm = CVI(max_iter=5, tolerance=0.0, order=order)
        return HMM(4, specification, HDP(), algorithm, random_state=3, n_jobs=1).fit(data, **arguments)

    monkeypatch.setattr(StateSearch, "is_due", lambda self, trials, state, step: state.iteration == 2)
    straight = fit()
    calls, ledgers = 0, []
    visit_all, improve, made = Visits.visit_all, OneSearch.improve, ChainLedger.__init__
    searching = False

    def remember(self: ChainLedger, *arguments: Any) -> None:
        made(self, *arguments)
        ledgers.append(self)

    def counted(self: Visits, clusters: Any) -> None:
        nonlocal calls
        calls += searching
        if calls == when:
            os.kill(os.getpid(), signal.SIGINT)
        visit_all(self, clusters)

    def searched(self: OneSearch, *arguments: Any, **settings: Any) -> Any:
        nonlocal searching
        searching = True
        return improve(self, *arguments, **settings)

    monkeypatch.setattr(ChainLedger, "__init__", remember)
    monkeypatch.setattr(Visits, "visit_all", counted)
    monkeypatch.setattr(OneSearch, "improve", searched)
    cut = fit(checkpoint=tmp_path / "c")
    assert cut.status_ == "interrupted"
    assert len(cut.trace_) in (2, 3), "the iteration has not been, or it is done"
    assert_counts_are_the_shares(ledgers[0])
    resumed = fit(checkpoint=tmp_path / "c", resume=True)
    same(straight, resumed)
    assert resumed.trace_.objective == straight.trace_.objective
    assert resumed.trace_.events == straight.trace_.events


@pytest.mark.parametrize("cluster", ["sequence", "state"])
def test_an_interruption_during_a_search_of_batch_inference(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    specification, data = example("categorical", "many")

    run, calls = PassTrials._run, []

    def interrupted(self: PassTrials, prior: Any, statistics: Any) -> Any:
        calls.append(prior)
        if len(calls) == 1:  # a second interruption would abort the fit
            os.kill(os.getpid(), signal.SIGINT)
        return run(self, prior, statistics)

    monkeypatch.setattr(StateSearch, "is_due", lambda self, trials, state, step: state.iteration == 2)
    monkeypatch.setattr(PassTrials, "_run", interrupted)
    cut = HMM(4, specification, HDP(), VI(max_iter=9, tolerance=0.0, cluster=cluster), random_state=3).fit(data)
    assert cut.status_ == "interrupted"
    whole = cut.posterior_.mean()
    assert cut.transition_ == pytest.approx(whole.chain.transition)
    assert cut.statistics_.pairs.sum() == pytest.approx(np.maximum(data.lengths - 1, 0).sum())


def test_counts_that_are_loosened_keep_their_rows_and_leave_no_move_out() -> None:
    rng = np.random.default_rng(0)
    pairs = rng.poisson(0.5, (6, 6)).astype(float)
    pairs[:, 5] = pairs[5] = 0.0  # a state that is not used
    initial = np.array([3.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    sums = Categorical.from_parameters(np.full((6, 2), 0.5)).zeros()
    found = loosened(HMMStatistics.of(initial, pairs, sums))
    assert found.pairs.sum(axis=1) == pytest.approx(pairs.sum(axis=1))
    assert found.initial.sum() == pytest.approx(4.0)
    assert (found.initial[:5] > 0.0).all()
    assert (found.pairs[:5, :5] > 0.0).all()
    assert not found.pairs[:, 5].any()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("inference", "reached"), [(VI(), -4835.5), (CVI(), -4828.5)], ids=["vi", "cvi"])
def test_runs_with_learned_concentrations_come_to_the_same_end(inference: Any, reached: float, seed: int) -> None:
    data = four_state("positive", n_sequences=40, random_state=0).observations
    fitted = HMM(10, Categorical(1.0), HDP(), inference, random_state=seed).fit(data)
    assert fitted.status_ == "converged"
    assert fitted.effective_states() == 4
    assert fitted.trace_.objective[-1] > reached


@pytest.mark.parametrize("inference", [SVI(max_updates=600), SCVI(max_updates=600)], ids=["svi", "scvi"])
def test_one_long_chain_of_numbers_has_as_many_states_as_it_has_regimes(inference: Any) -> None:
    truth = HMM.from_parameters(
        [0.25] * 4, 0.01 + 0.96 * np.eye(4),
        Gaussian.from_parameters([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [4.0, 4.0]], [np.eye(2)] * 4),
    )  # fmt: skip
    numbers = truth.sample(60_000, random_state=0).observations
    model = HMM(20, "gaussian", HDP(), inference, random_state=0).fit(numbers)
    assert model.effective_states(0.995) == 4
    fresh = truth.sample(20_000, random_state=1).observations
    assert model.score(fresh) > truth.score(fresh) - 0.002 * len(fresh)


def test_states_of_symbols_that_come_at_random_are_one() -> None:
    rng = np.random.default_rng(0)
    symbols = [rng.integers(0, 5, 100) for _ in range(50)]
    for inference in (VI(), CVI()):
        assert HMM(6, "categorical", HDP(), inference, random_state=0).fit(symbols).effective_states() == 1


def test_a_run_that_settles_searches_once_more_and_ends() -> None:
    looked = []
    search_once = OneSearch.improve

    def improve(self: OneSearch, here: Any) -> Any:
        looked.append(self.seed[1])
        return search_once(self, here)

    data = four_state("positive", n_sequences=40, random_state=0).observations
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OneSearch, "improve", improve)
        for inference in (VI(), CVI()):
            looked.clear()
            model = HMM(10, Categorical(1.0), HDP(), inference, random_state=0).fit(data)
            assert model.status_ == "converged"
            assert looked[-1] == len(model.trace_)
            assert len(looked) <= 6
