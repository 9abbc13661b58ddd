"""Stochastic updates in one compiled call: the same numbers as update by update, and used wherever they can be."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stochastic_examples import BOUNDARIES

from subchain import (
    EM,
    HMM,
    SCVI,
    SVI,
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Dirichlet,
    Gaussian,
    GrowBuffer,
    Guards,
    Poisson,
)  # fmt: skip
from subchain.data.sequences import Sequences
from subchain.engines.cpu import updates
from subchain.engines.cpu.update_kernels import Progress
from subchain.numerics.special import digamma_of
from subchain.structures.chain.fused_updates import FusedUpdates

RNG = np.random.default_rng(5)
N = 6000
STATES = np.repeat(RNG.integers(0, 3, N // 10), 10)
MEANS = np.array([[0.0, 1.0, -1.0], [3.0, -2.0, 0.0], [-3.0, 0.0, 2.0]])
REAL = MEANS[STATES] + RNG.normal(size=(N, 3))
WORDS = (STATES * 3 + RNG.integers(0, 5, N)).astype(np.int32)  # as codes of a vocabulary are
COUNTS = RNG.poisson(np.exp(0.5 * MEANS[STATES] + 1.0))
FAMILIES: dict[str, tuple[Any, Any]] = {
    "symbols": (Categorical(), WORDS),
    "Gaussian": (Gaussian(), REAL),
    "diagonal Gaussian": (DiagonalGaussian(), REAL),
    "counts": (Poisson(), COUNTS),
    "large counts": (Poisson(), 100 * COUNTS),
    "flags": (Bernoulli(), (RNG.random((N, 5)) < 0.2 + 0.3 * STATES[:, None]).astype(np.int64)),
}
SHAPES = {
    "one chain": np.array([0, N]),
    "ragged": np.concatenate(([0, 0], np.sort(RNG.choice(N - 1, 150, replace=False)) + 1, [N])),
}
UPDATES = 40


@pytest.fixture(autouse=True)
def _small_data_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "LARGE", 0)


def fit(name: str, shape: str, inference: Any, **settings: Any) -> HMM:
    family, values = FAMILIES[name]
    weights = settings.pop("sample_weight", None)
    settings = {"init": "exponential" if name == "symbols" else "kmeans", "random_state": 1, "n_jobs": 1} | settings
    model = HMM(3, family, inference=inference, **settings)
    data = Sequences(settings.pop("values", values), SHAPES[shape])
    return model.fit(data) if weights is None else model.fit(data, sample_weight=weights)


def check(monkeypatch: pytest.MonkeyPatch, *case: Any, done: int | None = UPDATES, **settings: Any) -> None:
    """Compare the two methods; `done` is how many updates are expected of the compiled one, None for any number."""
    counted: list[int] = []
    run = FusedUpdates.run
    with monkeypatch.context() as patch:
        patch.setattr(FusedUpdates, "run", lambda *given: counted.append(run(*given)) or counted[-1])
        ours = fit(*case, **settings)
        patch.setattr(FusedUpdates, "_can_run", lambda self, batches: False)
        theirs = fit(*case, **settings)
    assert done is None or sum(counted) == done
    for key, array in ours.statistics_.arrays().items():
        expected = theirs.statistics_.arrays()[key]
        np.testing.assert_allclose(array, expected, rtol=1e-10, atol=1e-11 * np.abs(expected).max(), err_msg=key)
    np.testing.assert_allclose(ours.trace_.objective, theirs.trace_.objective, rtol=1e-11)
    if "growth" in theirs.trace_.measures:
        np.testing.assert_allclose(ours.trace_.measures["growth"], theirs.trace_.measures["growth"], rtol=1e-12)


def algorithm(kind: Any, boundary: Any, **settings: Any) -> Any:
    settings = {"length": 8, "batch": 20, "max_updates": UPDATES, "report_every": 20, "search": False} | settings
    return kind(boundary=boundary, **settings)


#: Guards hold messages, which do not depend on the family, but a kernel for them is compiled for each: two are enough.
PAIRS = [
    (name, boundary)
    for name in FAMILIES
    for boundary in BOUNDARIES
    if name in ("symbols", "Gaussian") or not isinstance(BOUNDARIES[boundary], Guards)
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", [SVI, SCVI, EM])
@pytest.mark.parametrize(("name", "boundary"), PAIRS)
def test_many_updates_at_one_go_are_the_same_updates(
    name: str, kind: Any, boundary: str, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(monkeypatch, name, shape, algorithm(kind, BOUNDARIES[boundary]))


CIRCLE = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool)
IN_STEP = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool)


@pytest.mark.parametrize("kind", [SVI, SCVI, EM])
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("mask", [CIRCLE, IN_STEP], ids=["circle", "in step"])
def test_forbidden_transitions(kind: Any, boundary: str, mask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check(monkeypatch, "symbols", "ragged", algorithm(kind, BOUNDARIES[boundary]), transition=Dirichlet(mask=mask))


@pytest.mark.parametrize("kind", [SVI, SCVI])
def test_chains_that_never_return(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    inference = algorithm(kind, BOUNDARIES["buffer"], length=None)
    transition = Dirichlet(mask=np.triu(np.ones((3, 3), dtype=bool)))
    check(monkeypatch, "symbols", "ragged", inference, transition=transition, init="parts")


@pytest.mark.parametrize("settings", [{"length": None}, {"starts": "anywhere", "length": 5}])
def test_whole_sequences_and_subchains_anywhere(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = "ragged" if settings["length"] is None else "one chain"
    check(monkeypatch, "symbols", shape, algorithm(SVI, BOUNDARIES["buffer"], **settings))


@pytest.mark.parametrize("kind", [SVI, SCVI])
def test_large_minibatches_give_the_same_bits_on_any_number_of_threads(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updates, "SHARED", 0)
    monkeypatch.setattr(updates, "LEAST_COLUMNS", 64)
    for name in ("symbols", "Gaussian"):
        inference = algorithm(kind, Guards(), batch=150)
        check(monkeypatch, name, "ragged", inference)
        ours = [fit(name, "ragged", inference, n_jobs=jobs) for jobs in (1, 2, 3, 16)]
        for other in ours[1:]:
            for key, array in ours[0].statistics_.arrays().items():
                np.testing.assert_array_equal(array, other.statistics_.arrays()[key], err_msg=key)


@pytest.mark.parametrize("name", ["Gaussian", "symbols"])
def test_what_is_out_of_the_ordinary_is_left_to_the_general_method(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = FAMILIES[name][1].copy()
    values[1000:1010] = np.nan if name == "Gaussian" else -1
    if name == "Gaussian":
        values[3000:3004] += 1e4  # each state all but excludes these
    monkeypatch.setitem(FAMILIES, name, (FAMILIES[name][0], values))
    check(monkeypatch, name, "one chain", algorithm(SVI, Guards(), batch=30), done=None)


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("store", ["messages", "marginals"])
def test_an_update_of_which_one_tile_fails_leaves_no_guards_behind(
    store: str, n_jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updates, "SHARED", 0)
    monkeypatch.setattr(updates, "LEAST_COLUMNS", 64)
    values = FAMILIES["Gaussian"][1].copy()
    values[1000:1010] = np.nan
    monkeypatch.setitem(FAMILIES, "Gaussian", (Gaussian(), values))
    check(monkeypatch, "Gaussian", "one chain", algorithm(SCVI, Guards(store), batch=150), done=None, n_jobs=n_jobs)


def test_the_leader_does_not_wait_for_a_thread_that_has_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "SHARED", 0)
    monkeypatch.setattr(updates, "LEAST_COLUMNS", 64)
    kernel_for = updates.kernel_for

    def beside_a_broken_thread(*given: Any) -> Any:
        def run(*arguments: Any) -> None:
            (progress,) = (argument for argument in arguments if isinstance(argument, Progress))
            progress.claimed[0] = progress.broken[0] = 1  # another thread claimed a tile, and ended with an exception
            kernel_for(*given)(*arguments)

        return run

    monkeypatch.setattr(updates, "kernel_for", beside_a_broken_thread)
    check(monkeypatch, "symbols", "ragged", algorithm(SCVI, Guards(), batch=150), done=0)


def test_helpers_that_find_nothing_for_long_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each helper looks once, takes a nap, and is back in the compiled call until the leader is done."""
    calls, kernel_for = [], updates.kernel_for

    def counted(*given: Any) -> Any:
        run = kernel_for(*given)

        def counting(*arguments: Any) -> None:
            (progress,) = (argument for argument in arguments if isinstance(argument, Progress))
            if len(calls) < 3:  # the first to come are helpers, and there is no leader yet
                calls.append(int(progress.over[0]))
                return
            run(*arguments)

        return counting

    monkeypatch.setattr(updates, "kernel_for", counted)
    check(monkeypatch, "symbols", "one chain", algorithm(SCVI, Guards(), batch=150))
    assert calls == [0, 0, 0]


def test_a_run_goes_on_in_the_same_bits(tmp_path: Path) -> None:
    def inference(limit: int) -> Any:
        return algorithm(SCVI, Guards(), max_updates=limit, report_every=10)

    for name in ("Gaussian", "symbols"):
        family, values = FAMILIES[name]
        settings: Any = {"init": "exponential", "random_state": 1}
        whole = HMM(3, family, inference=inference(60), **settings).fit(values)
        HMM(3, family, inference=inference(30), **settings).fit(values, checkpoint=tmp_path / name)
        resumed = HMM(3, family, inference=inference(60), **settings).fit(
            values, checkpoint=tmp_path / name, resume=True
        )
        assert np.array_equal(whole.transition_, resumed.transition_)


def test_what_buffers_leave_to_the_general_method_does_not_depend_on_where_calls_begin(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Buffers that grow to hundreds of positions, in runs that are stopped where some updates need more room."""
    monkeypatch.setattr(updates, "LARGE", 0)
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(0, 2, 50), 400)
    values = (rng.random(20_000) < np.where(states, 0.502, 0.498)).astype(np.int32)

    def fitted(limit: int, **settings: Any) -> HMM:
        boundary = GrowBuffer(1e-4, limit=3000)
        inference = SVI(boundary=boundary, length=4, batch=2, max_updates=limit, report_every=40, search=False)
        given: Any = {"transition": Dirichlet(stickiness=1e4), "init": "exponential", "random_state": 0, "n_jobs": 1}
        return HMM(2, "categorical", inference=inference, **given).fit(values, **settings)

    whole = fitted(40).statistics_.arrays()
    for cut in (19, 21, 23):
        fitted(cut, checkpoint=tmp_path / str(cut))
        resumed = fitted(40, checkpoint=tmp_path / str(cut), resume=True).statistics_.arrays()
        assert all(np.array_equal(whole[name], resumed[name]) for name in whole), cut


def test_digamma_of_one_number_is_that_of_scipy() -> None:
    from scipy.special import digamma

    x = np.geomspace(1e-3, 1e6, 200)
    np.testing.assert_allclose([digamma_of(value) for value in x], digamma(x), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_minibatches_with_sequences_far_longer_than_usual(n_jobs: int) -> None:
    """Tiles of the longest sequences of a minibatch do not fit into the usual room; others are done in one go."""
    lengths = np.where(np.arange(20_000) % 50 == 0, 500, 5)
    np.random.default_rng(0).shuffle(lengths)
    x = np.random.default_rng(1).integers(0, 4, lengths.sum())
    inference = SVI(length=None, batch=4096, max_updates=2, search=False)
    model = HMM(2, "categorical", inference=inference, random_state=0, n_jobs=n_jobs, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit((x, lengths))
    assert np.isfinite(model.score((x, lengths)))
