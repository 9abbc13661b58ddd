"""States that fall below the doubles and come back: nothing that matters is lost without notice."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from naive_engine import NaiveEngine

from subchain import EM, HMM, SVI, VI, Buffer, Categorical, DiagonalGaussian, Dirichlet, GrowBuffer
from subchain.data import Sequences
from subchain.engines import Cpu, Part, Surrogate
from subchain.engines.cpu import fused, updates
from subchain.engines.subchains import Minibatch
from subchain.propagation import forward_backward
from subchain.propagation.underflow import reached
from subchain.transitions import layout
from subchain.transitions.banded_rows import BandedDirichletChain

EMISSION = [[0.9, 0.1], [0.1, 0.9]]
CHAINS = {
    "identity": np.eye(2),
    "in step": np.array([[0.0, 1.0], [1.0, 0.0]]),
    "nearly apart": np.array([[1.0, 1e-295], [1e-295, 1.0]]),
    "nearly in step": np.array([[1e-200, 1.0], [1.0, 1e-200]]),
    "one way": np.array([[0.999, 0.001], [0.0, 1.0]]),
}


@pytest.fixture(autouse=True, params=["tile by tile", "in one call"])
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled passes are for large data; here for all, or for none."""
    for module in (fused, updates):
        monkeypatch.setattr(module, "LARGE", 0 if request.param == "in one call" else 1 << 60)


def hard_sequence(name: str, n: int, more: int) -> Any:
    """First one state explains everything, then the other."""
    if "step" in name:
        return np.concatenate((np.arange(n) % 2, (np.arange(n, n + more) + 1) % 2))
    return np.concatenate((np.zeros(n, dtype=np.int64), np.ones(more, dtype=np.int64)))


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("n", [100, 303, 305, 314, 324, 331, 338, 345, 400])
@pytest.mark.parametrize("more", [30, 600])
def test_all_that_is_asked_of_a_model_is_right(name: str, n: int, more: int) -> None:
    model = HMM.from_parameters([0.5, 0.5], CHAINS[name], Categorical.from_parameters(EMISSION))
    x = hard_sequence(name, n, more)
    logs = model.emission_.log_likelihood(x).T
    expected = naive.marginals(logs, model.initial_, model.transition_)
    assert model.score(x) == pytest.approx(expected.log_likelihood, rel=1e-10)
    np.testing.assert_allclose(model.predict_proba(x), expected.smoothed, atol=1e-9)
    np.testing.assert_allclose(model.filter(x), expected.filtered, atol=1e-9)
    np.testing.assert_allclose(model.expected_statistics(x).pairs, expected.pairs, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        forward_backward(logs, model.initial_, model.transition_).marginals, expected.smoothed, atol=1e-9
    )


@pytest.mark.parametrize("name", ["identity", "in step"])
@pytest.mark.parametrize("n", [3000, 4090, 4110])
def test_so_is_a_chain_that_is_cut(name: str, n: int) -> None:
    """Weight that is lost in one piece and comes back in another."""
    model = HMM.from_parameters([0.5, 0.5], CHAINS[name], Categorical.from_parameters([[0.6, 0.4], [0.4, 0.6]]))
    x = hard_sequence(name, n, n + 300)
    expected = naive.marginals(model.emission_.log_likelihood(x).T, model.initial_, model.transition_)
    assert model.score(x) == pytest.approx(expected.log_likelihood, rel=1e-10)
    np.testing.assert_allclose(model.predict_proba(x), expected.smoothed, atol=1e-7)
    np.testing.assert_allclose(model.filter(x), expected.filtered, atol=1e-7)


def on_the_way(kind: str, n_states: int, separation: float) -> HMM:
    """A chain whose first and last state explain the data; those on the way from one to the other are most unlikely."""
    transition = 0.5 * np.eye(n_states) + 0.5 * np.eye(n_states, k=1)
    transition[-1] = np.eye(n_states)[-1] if kind == "left to right" else 0.5 * transition[-1]
    transition[-1, 0] += 0.0 if kind == "left to right" else 1.0 - transition[-1].sum()
    means = np.zeros((n_states, 2))
    means[:, 1] = separation
    means[0], means[-1] = (0.0, 0.0), (12.0, 0.0)
    emission = DiagonalGaussian.from_parameters(means, np.ones((n_states, 2)))
    return HMM.from_parameters(np.full(n_states, 1 / n_states), transition, emission)


@pytest.mark.parametrize("kind", ["left to right", "circle"])
@pytest.mark.parametrize("n", [5, 10, 11, 12, 17])
def test_states_on_the_way_may_be_most_unlikely(kind: str, n: int) -> None:
    """The first state leads to all that the last one leads to; the way there costs more than the doubles hold."""
    model = on_the_way(kind, 12, 15.0)
    x = np.concatenate((np.zeros((n, 2)), np.tile([12.0, 0.0], (n + 10, 1))))
    logs = model.emission_.log_likelihood(x).T
    expected = naive.marginals(logs, model.initial_, model.transition_)
    assert model.score(x) == pytest.approx(expected.log_likelihood, rel=1e-10)
    np.testing.assert_allclose(model.predict_proba(x), expected.smoothed, atol=1e-9)
    np.testing.assert_allclose(model.filter(x), expected.filtered, atol=1e-9)
    np.testing.assert_allclose(model.expected_statistics(x).pairs, expected.pairs, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        forward_backward(logs, model.initial_, model.transition_).marginals, expected.smoothed, atol=1e-9
    )


@pytest.mark.parametrize("distance", [20.0, 38.0, 45.0, 80.0])
def test_one_observation_may_be_more_unlikely_than_the_doubles_hold(distance: float) -> None:
    """The first one speaks for one of two chains by up to 3,200 nats, the others for the other by less each."""
    emission = DiagonalGaussian.from_parameters([[0.0], [distance]], np.ones((2, 1)))
    model = HMM.from_parameters([0.5, 0.5], np.eye(2), emission)
    x = np.array([0.0] + [distance / 2 + 50.0 / distance] * 70)[:, None]
    expected = naive.marginals(emission.log_likelihood(x).T, model.initial_, model.transition_)
    assert model.score(x) == pytest.approx(expected.log_likelihood, rel=1e-10)
    np.testing.assert_allclose(model.predict_proba(x), expected.smoothed, atol=1e-9)
    np.testing.assert_allclose(model.filter(x), expected.filtered, atol=1e-9)


def nearly_apart(rng: np.random.Generator) -> tuple[HMM, Any]:
    """A chain whose states hardly lead to each other, and data that do not suit it."""
    n_states, n = int(rng.integers(2, 6)), int(rng.choice([40, 80]))
    transition = np.eye(n_states) + 0.1 * np.triu(rng.random((n_states, n_states)), 1) * (
        rng.random((n_states, n_states)) < 0.25
    )
    if rng.random() < 0.3:
        transition = np.roll(np.eye(n_states), 1, 1) * rng.random() + 0.5 * rng.integers(2) * np.eye(n_states)
    transition *= np.where(rng.random((n_states, n_states)) < 0.15, 10.0 ** -rng.integers(10, 250), 1.0)
    initial = rng.random(n_states) * (rng.random(n_states) < 0.7) + 0.1 * np.eye(n_states)[0]
    spread = rng.choice([3.0, 10.0, 20.0, 40.0, 60.0])
    means = spread * rng.normal(size=(n_states, 1))
    x = means.mean() + rng.choice([3.0, 10.0, 30.0]) / spread * rng.normal(size=(n, 1))
    x += 1.5 * spread * (rng.random((n, 1)) < 0.05) * rng.normal(size=(n, 1))
    emission = DiagonalGaussian.from_parameters(means, np.ones((n_states, 1)))
    transition /= transition.sum(axis=1, keepdims=True)
    return HMM.from_parameters(initial / initial.sum(), transition, emission), x


def test_chains_that_are_nearly_apart() -> None:
    for seed in range(200):
        model, x = nearly_apart(np.random.default_rng([7, seed]))
        logs = model.emission_.log_likelihood(x).T
        with np.errstate(divide="ignore"):
            joint = np.log(model.initial_) + logs[0]
            for row in logs[1:]:
                joint = row + np.logaddexp.reduce(joint[:, None] + np.log(model.transition_), axis=0)
        expected = np.logaddexp.reduce(joint)
        if expected > -np.inf:
            found = forward_backward(logs, model.initial_, model.transition_).log_likelihood
            assert np.sum(found) == pytest.approx(expected, rel=1e-9), seed
            assert model.score(x) == pytest.approx(expected, rel=1e-9), seed


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
@pytest.mark.parametrize("inference", [EM(max_iter=1), VI(max_iter=1), SVI(length=None, batch=2, max_updates=1)])
@pytest.mark.parametrize("is_banded", [False, True])
def test_fits_notice_it(inference: Any, is_banded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_banded:
        monkeypatch.setattr(layout, "FEWEST_STATES", 1)
        monkeypatch.setattr(layout, "MOST_OF_ROW", 1.0)
    start, rng = on_the_way("left to right", 8, 18.0), np.random.default_rng(0)
    ends = np.concatenate((np.zeros((12, 2)), np.tile([12.0, 0.0], (25, 1))))
    x = [ends + 0.3 * rng.normal(size=ends.shape) for _ in range(3)]
    settings: Any = {"transition": Dirichlet(mask=start.transition_ > 0.0), "init": start, "random_state": 0}
    ours, plain = (
        HMM(8, "diagonal_gaussian", inference=inference.set_params(search=False), engine=engine, **settings).fit(x)
        for engine in (Cpu(), NaiveEngine())
    )
    assert ours.trace_.objective == pytest.approx(plain.trace_.objective, rel=1e-10)
    assert isinstance(ours.prior_.chain, BandedDirichletChain) == is_banded


def test_what_can_be_reached() -> None:
    assert reached(CHAINS["in step"], np.array([True, False])).all()
    assert reached(CHAINS["one way"], np.array([False, True])).tolist() == [False, True]


def test_subchains_notice_it_too() -> None:
    x = np.concatenate((np.zeros(400, dtype=np.int64), np.ones(600, dtype=np.int64)))
    prior = Dirichlet(mask=np.eye(2), initial=[0.5, 0.5])
    start = HMM.from_parameters([0.5, 0.5], np.eye(2), Categorical.from_parameters(EMISSION))
    fitted = HMM(2, "categorical", prior, SVI(length=None, batch=2, max_updates=1), init=start, random_state=0)
    fitted.fit([x, x[::-1].copy()])
    assert fitted.statistics_.pairs.sum() == pytest.approx(2 * 999)


# ---- subchains -------------------------------------------------------------------------------------------------------


def stretch(n_left: int, inner: list[tuple[int, int]], n_right: int = 0) -> tuple[Any, Part, Minibatch]:
    """Two chains that never meet, and one subchain of them: each observation tells one state from the other by a nat.

    Left of the subchain `n_left` of them favour state 0, right of it `n_right` do; inside it, runs of symbols.
    """
    inside = np.concatenate([np.full(n, symbol) for symbol, n in inner])
    x = np.concatenate([np.zeros(n_left, dtype=np.int64), inside, np.zeros(n_right, dtype=np.int64)])
    likely = np.e / (1.0 + np.e)
    emission = Categorical.from_parameters([[likely, 1.0 - likely], [1.0 - likely, likely]])
    data, one = Sequences(x), np.zeros(1, dtype=np.int64)
    flags = np.array([n_left == 0]), np.array([n_right == 0])
    batch = Minibatch(one + n_left, one, one + n_left, one + len(inside), *flags, None, None, None)
    return Surrogate(np.full(2, 0.5), np.eye(2), emission), Part(data), batch


@pytest.mark.parametrize(("inner", "favoured"), [([(0, 760), (1, 600)], 1), ([(0, 720), (1, 560)], 0)])
def test_the_message_from_the_right_may_favour_a_state_that_was_lost(
    inner: list[tuple[int, int]], favoured: int
) -> None:
    """Inside the subchain 160 observations more are for state 0, but what comes after them favours state 1 by 200."""
    surrogate, part, batch = stretch(0, inner)
    favour = np.exp(-200.0) if favoured else 1.0
    stop = np.array([[favour], [1.0 if favoured else np.exp(-200.0)]])
    found = Cpu(1).minibatch(surrogate, part, batch, np.full((2, 1), 0.5), stop)
    expected = NaiveEngine().minibatch(surrogate, part, batch, np.full((2, 1), 0.5), stop)
    np.testing.assert_allclose(found.statistics.chain.pairs, expected.statistics.chain.pairs, atol=1e-8)
    assert expected.statistics.chain.pairs[favoured, favoured] > 1000.0


@pytest.mark.parametrize("n_left", [600, 690])
def test_a_state_that_a_buffer_nearly_rules_out_may_be_the_right_one(n_left: int) -> None:
    surrogate, part, batch = stretch(n_left, [(1, 800)], 0)
    engines, nothing = (Cpu(1), NaiveEngine()), np.array([0])
    for engine in engines:
        entered = engine.approach(surrogate, part, batch, np.full(2, 0.5), np.array([n_left]), nothing)
        found = engine.minibatch(surrogate, part, batch, entered.start, entered.stop)
        np.testing.assert_allclose(found.statistics.chain.pairs, [[0.0, 0.0], [0.0, 799.0]], atol=1e-8)


@pytest.mark.parametrize("grows", [False, True])
def test_no_buffer_makes_impossible_what_is_possible(grows: bool) -> None:
    """All that is before the subchain, and all behind it, is for state 0, which cannot emit the last symbol at all."""
    x = np.concatenate([np.zeros(1000), np.full(50, 2), np.zeros(950)]).astype(np.int64)
    emission = Categorical.from_parameters([[0.8, 0.2, 0.0], [0.2, 0.3, 0.5]])
    start = HMM.from_parameters([0.5, 0.5], np.eye(2), emission)
    boundary = GrowBuffer(tolerance=1e-9, limit=1000) if grows else Buffer(1000)
    inference = SVI(length=1010, batch=1, boundary=boundary, max_updates=2)
    frozen = {"emission": Categorical(n_categories=3, frozen=True), "transition": Dirichlet(frozen=True)}
    for seed in (0, 1):
        found = [
            HMM(2, inference=inference, init=start, random_state=seed, engine=engine, **frozen).fit(x).statistics_.pairs
            for engine in (Cpu(1), NaiveEngine())
        ]
        np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_stochastic_fits_are_those_of_a_plain_engine(seed: int) -> None:
    """800 observations for one of two chains that never meet, after 760 for the other."""
    surrogate, part, _ = stretch(760, [(1, 800)])
    start = HMM.from_parameters([0.5, 0.5], np.eye(2), surrogate.emission)
    frozen = {"emission": Categorical(n_categories=2, frozen=True), "transition": Dirichlet(frozen=True)}
    found = []
    for engine in (Cpu(1), NaiveEngine()):
        inference = SVI(length=1360, batch=1, boundary=Buffer(200), max_updates=1)
        model = HMM(2, inference=inference, init=start, random_state=seed, engine=engine, **frozen)
        found.append(model.fit(part.data.values).statistics_.pairs)
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9)
