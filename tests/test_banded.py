"""Models whose transitions form a band: everything is as if they were a matrix, at the cost of the band."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest

from subchain import CVI, EM, HMM, SCVI, SVI, VI, Categorical, Dirichlet, Gibbs, banded, cyclic, left_right
from subchain.errors import ConvergenceWarning, InputError
from subchain.transitions import layout
from subchain.transitions.banded_rows import BandedDirichletChain

STATES = 12
MASKS = {"left to right": left_right(STATES, 2), "band": banded(STATES, 1), "circle": cyclic(STATES, 1)}
ALGORITHMS = {
    "em": lambda: EM(max_iter=5, tolerance=0.0),
    "online em": lambda: EM(batch=3, length=None, max_updates=5, report_every=1),
    "vi": lambda: VI(max_iter=5, tolerance=0.0),
    "buffers": lambda: SVI(length=7, batch=4, max_updates=5, report_every=1, boundary="buffer"),
    "guards": lambda: SCVI(length=7, batch=4, max_updates=5, report_every=1, boundary="guards"),
    "growing": lambda: SVI(length=7, batch=4, max_updates=3, report_every=1, boundary="growing"),
    "cvi": lambda: CVI(max_iter=3, tolerance=0.0),
    "gibbs": lambda: Gibbs(n_samples=3, burn_in=1, n_chains=1),
}


def sequences() -> list[Any]:
    rng = np.random.default_rng(0)
    paths = [np.repeat(np.arange(8), rng.integers(1, 5, 8)) % 5 for _ in range(15)]
    return [np.where(rng.random(len(path)) < 0.2, rng.integers(0, 5, len(path)), path) for path in paths]


def fit(mask: Any, algorithm: Any, x: Any, **settings: Any) -> HMM:
    model = HMM(len(mask), Categorical(n_categories=5), Dirichlet(mask=mask), algorithm, random_state=1, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(x)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Fits with a band, however few states there are."""

    def fit_narrow(*arguments: Any, **settings: Any) -> HMM:
        with monkeypatch.context() as patch:
            patch.setattr(layout, "FEWEST_STATES", 1)
            patch.setattr(layout, "MOST_OF_ROW", 1.0)
            return fit(*arguments, **settings)

    return fit_narrow


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("mask", MASKS)
def test_a_band_learns_what_a_matrix_learns(narrow: Any, mask: str, algorithm: str):
    x = sequences()
    data = np.concatenate(x) if algorithm in ("buffers", "guards", "growing") else x
    wide, found = (how(MASKS[mask], ALGORITHMS[algorithm](), data) for how in (fit, narrow))
    assert isinstance(found.prior_.chain, BandedDirichletChain) == (algorithm not in ("cvi", "gibbs"))
    np.testing.assert_allclose(found.initial_, wide.initial_, atol=1e-9)
    np.testing.assert_allclose(found.transition_, wide.transition_, atol=1e-9)
    np.testing.assert_allclose(found.emission_.probabilities, wide.emission_.probabilities, atol=1e-9)
    inside = MASKS[mask]
    np.testing.assert_allclose(found.statistics_.pairs[inside], wide.statistics_.pairs[inside], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.trace_.objective, wide.trace_.objective, rtol=1e-9)


def streamed(model: HMM) -> Any:
    stream = model.stream(lag=2)
    for symbol in sequences()[0]:
        stream.update(int(symbol))
    return np.concatenate((stream.probabilities, stream.predicted, stream.smoothed, [stream.log_likelihood]))


@pytest.mark.parametrize("mask", MASKS)
def test_a_band_answers_what_a_matrix_answers(narrow: Any, mask: str, tmp_path: Any):
    x = sequences()
    wide, found = (how(MASKS[mask], EM(max_iter=4, tolerance=0.0), x) for how in (fit, narrow))
    found.save(tmp_path / "model")
    for model in (found, HMM.load(tmp_path / "model")):
        for ask in (
            lambda model: model.score(x),
            lambda model: np.concatenate(model.predict_proba(x)),
            lambda model: np.concatenate(model.filter(x)),
            lambda model: np.concatenate(model.predict(x, decoding="viterbi")),
            lambda model: np.concatenate(model.sample_paths(x, 2, random_state=3), axis=-1),
            lambda model: np.concatenate(model.score_samples(x)),
            lambda model: model.forecast(x[0], 3).states,
            lambda model: model.sample(30, random_state=2).states,
            lambda model: model.sample(20, given=x[0], random_state=2).states,
            streamed,
            lambda model: model.dwell_times_[model.dwell_times_ < 1e6],
            lambda model: model.state_occupancy_,
            lambda model: model.expected_statistics(x).pairs,
            lambda model: model.bic(x),
        ):
            np.testing.assert_allclose(ask(model), ask(wide), rtol=1e-7, atol=1e-8)
    order = np.arange(STATES)[::-1]
    np.testing.assert_allclose(found.point_.chain.take(order).transition, wide.transition_[::-1, ::-1], atol=1e-8)


def test_a_long_chain_is_cut_and_put_together(narrow: Any):
    rng = np.random.default_rng(1)
    x = np.where(rng.random(5000) < 0.3, rng.integers(0, 5, 5000), np.arange(5000) // 40 % 5)
    for mask in MASKS.values():
        wide, found = (how(mask, VI(max_iter=2, tolerance=0.0), x) for how in (fit, narrow))
        np.testing.assert_allclose(found.statistics_.pairs[mask], wide.statistics_.pairs[mask], rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(found.predict(x, decoding="viterbi"), wide.predict(x, decoding="viterbi"))


def test_a_run_of_a_band_that_is_resumed_ends_in_the_same_bits(tmp_path: Any):
    x, mask = sequences(), left_right(80, 2)
    whole = fit(mask, VI(max_iter=4, tolerance=0.0), x)
    first = HMM(80, Categorical(n_categories=5), Dirichlet(mask=mask), VI(max_iter=2, tolerance=0.0), random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first.fit(x, checkpoint=tmp_path / "run")
        first.set_params(inference=VI(max_iter=4, tolerance=0.0)).fit(x, checkpoint=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(first.transition_, whole.transition_)
    assert first.trace_.objective == whole.trace_.objective


def test_large_masks_go_into_files_and_come_back(tmp_path: Any):
    mask = left_right(400, 1)
    fit(mask, EM(max_iter=1), [np.arange(9) % 5]).save(tmp_path / "model")
    assert (tmp_path / "model").stat().st_size < 500_000
    np.testing.assert_array_equal(HMM.load(tmp_path / "model").transition.mask, mask)


@pytest.mark.parametrize("mask", [left_right(3000, 1), banded(3000, 1)])
def test_thousands_of_states_take_the_room_of_their_band(mask: Any):
    """A matrix of 3,000 states has 72 megabytes; nothing of that kind is made."""
    x = [np.arange(12) % 5, np.arange(7) % 5]
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HMM(3000, Categorical(n_categories=5), Dirichlet(mask=mask), EM(max_iter=2), random_state=0).fit(x)
    model.score(x)
    model.predict(x, decoding="viterbi")
    model.predict_proba(x)
    model.sample_paths(x, 1, random_state=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.statistics_.chain.pairs.shape[1] <= 3
    assert peak < 60e6


def test_algorithms_that_need_the_matrix_say_so():
    with pytest.raises(InputError, match="CVI needs the whole transition matrix"):
        fit(left_right(1100, 1), CVI(max_iter=1), [np.arange(9) % 5])
