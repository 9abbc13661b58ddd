"""States that fall below the doubles and come back: nothing that matters is lost without notice."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest

from subchain import HMM, SVI, Categorical, Dirichlet
from subchain.propagation import forward_backward
from subchain.propagation.underflow import covering, reached

EMISSION = [[0.9, 0.1], [0.1, 0.9]]
CHAINS = {
    "identity": np.eye(2),
    "in step": np.array([[0.0, 1.0], [1.0, 0.0]]),
    "nearly apart": np.array([[1.0, 1e-295], [1e-295, 1.0]]),
    "nearly in step": np.array([[1e-200, 1.0], [1.0, 1e-200]]),
    "one way": np.array([[0.999, 0.001], [0.0, 1.0]]),
}


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


def test_who_covers_whom() -> None:
    assert covering(CHAINS["in step"]).tolist() == [[True, False], [False, True]]
    assert reached(CHAINS["in step"], np.array([True, False])).all()
    assert reached(CHAINS["one way"], np.array([False, True])).tolist() == [False, True]
    assert covering(CHAINS["one way"]).tolist() == [[True, True], [False, True]]
    assert covering(np.full((3, 3), 1 / 3)).all()
    three = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]])
    assert covering(three).all()


def test_subchains_notice_it_too() -> None:
    x = np.concatenate((np.zeros(400, dtype=np.int64), np.ones(600, dtype=np.int64)))
    prior = Dirichlet(mask=np.eye(2), initial=[0.5, 0.5])
    start = HMM.from_parameters([0.5, 0.5], np.eye(2), Categorical.from_parameters(EMISSION))
    fitted = HMM(2, "categorical", prior, SVI(length=None, batch=2, max_updates=1), init=start, random_state=0)
    fitted.fit([x, x[::-1].copy()])
    assert fitted.statistics_.pairs.sum() == pytest.approx(2 * 999)
