"""How long subchains are if nobody says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from subchain import HMM, SVI, Buffer, Guards
from subchain.datasets import gaussian_chain, reversed_cycles
from subchain.models.fitting import FitCall


def chosen(x: Any, **settings: Any) -> int:
    model = HMM(4, "gaussian", inference=SVI(length="auto", **settings), random_state=0)
    call = FitCall(model, x)
    call.measure()
    length = call.problem.structure.subchain_length
    assert length is not None
    return length


def test_chains_that_forget_slowly_get_longer_subchains() -> None:
    quick, slow = (
        gaussian_chain(20_000, n_states=4, n_features=1, separation=1.5, stickiness=s, random_state=0).observations
        for s in (0.0, 0.97)
    )
    assert chosen(quick) < chosen(slow)


@pytest.mark.parametrize("boundary", [Buffer(10), Guards()])
def test_knowledge_of_the_rest_lets_them_be_shorter(boundary: Any) -> None:
    x = gaussian_chain(20_000, n_states=4, n_features=1, stickiness=0.97, separation=1.5, random_state=0).observations
    assert chosen(x, boundary=boundary) < chosen(x)


def test_short_sequences_are_taken_whole() -> None:
    x = gaussian_chain(None, n_states=3, lengths=[200] * 20, random_state=0).observations
    fitted = HMM(3, "gaussian", inference=SVI(max_updates=10), random_state=0).fit(x)
    assert fitted.point_.not_finite() is None


@pytest.mark.parametrize("covariance", [20.0, 300.0])
def test_the_choice_is_nearly_as_good_as_the_best(covariance: float) -> None:
    chain = reversed_cycles(20_000, covariance=covariance, random_state=1)

    def score(length: Any) -> float:
        inference = SVI(length=length, batch=None, boundary="stationary", forgetting=0.5, max_updates=100)
        scores = [
            HMM(8, "gaussian", inference=inference, init="kmeans", random_state=seed)
            .fit(chain.observations)
            .score(chain.observations)
            for seed in range(3)
        ]
        return float(np.median(scores)) / 20_000

    fixed = [score(length) for length in (10, 30, 100, 300, 1000)]
    assert score("auto") > max(fixed) - 0.02
