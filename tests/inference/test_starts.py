"""Starts agree with what is known of the states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from subchain import HMM, Categorical, Dirichlet, Gaussian, left_right
from subchain.data import Evidence, as_sequences
from subchain.errors import InputError
from subchain.inference.start.starts import start_statistics
from subchain.transitions.sums import ChainSums

MOVES = np.full((3, 3), 0.05) + 0.85 * np.eye(3)
NUMBERS = Gaussian.from_parameters(means=[[0.0], [4.0], [8.0]], covariances=[np.eye(1)] * 3)
SYMBOLS = Categorical.from_parameters(0.1 + 0.7 * np.eye(3))


def drawn(emission: Any) -> Any:
    return HMM.from_parameters([1 / 3] * 3, MOVES, emission).sample(2000, random_state=0)


def hints(states: Any, weight: float) -> Any:
    """Log weights that speak for the true states."""
    told = np.full((len(states), 3), np.log(0.5 - 0.5 * weight))
    told[np.arange(len(states)), states] = np.log(weight)
    return told


@pytest.mark.parametrize("weight", [0.4, 0.6, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_hints_give_clusters_their_numbers(weight: float, seed: int) -> None:
    chain = drawn(NUMBERS)
    model = HMM(3, "gaussian", random_state=seed).fit(chain.observations, evidence=hints(chain.states, weight))
    assert (model.predict(chain.observations) == chain.states).mean() > 0.98


def test_states_that_are_excluded_give_clusters_their_numbers() -> None:
    chain = drawn(NUMBERS)
    allowed = np.ones((2000, 3), dtype=bool)
    allowed[chain.states == 0, 2] = allowed[chain.states == 2, 0] = False
    model = HMM(3, "gaussian", random_state=0).fit(chain.observations, allowed=allowed)
    assert (model.predict(chain.observations) == chain.states).mean() > 0.98


def test_exponential_starts_lean_towards_hints() -> None:
    chain = drawn(SYMBOLS)
    data, emission = as_sequences(chain.observations), Categorical(1.0)
    reference = emission.prior(data, 3, flat=False).mean()
    evidence = Evidence.build(data, 3, evidence=hints(chain.states, 0.8))
    rng = np.random.default_rng(0)
    with_hints = start_statistics(
        data, emission, reference, "exponential", rng, ChainSums(np.zeros(3), np.zeros((3, 3))), evidence
    )
    assert (with_hints.emission.counts.argmax(axis=1) == [0, 1, 2]).all()


FIXED = np.array([[1.0, 0.0, 0.0], [np.nan] * 3, [np.nan] * 3])


@pytest.mark.parametrize("settings", [{"mask": left_right}, {"initial": [1, 0, 0]}, {"fixed": FIXED}])
@pytest.mark.parametrize("algorithm", ["em", "cvi"])
def test_states_are_not_drawn_one_by_one_where_paths_may_be_impossible(settings: Any, algorithm: str) -> None:
    model = HMM(3, "categorical", Dirichlet(**settings), algorithm, init="states", random_state=0, n_jobs=1)
    with pytest.raises(InputError, match="init='states' draws every state by itself.*init='posteriors'"):
        model.fit([[0, 1, 2, 0], [1, 1, 0], [2]])
