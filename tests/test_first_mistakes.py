"""What goes wrong first: data that hold nothing, names that no longer fit, states that are counted but not used."""

from __future__ import annotations

import numpy as np
import pytest

from subchain import CVI, HDP, HMM, Categorical
from subchain.datasets.published import four_state
from subchain.errors import InputError


@pytest.mark.parametrize("x", [np.full(50, np.nan), np.full((50, 2), np.nan), np.full(50, -1)])
def test_data_in_which_nothing_was_observed_are_refused(x: np.ndarray) -> None:
    with pytest.raises(InputError, match="all observations are missing"):
        HMM(2, "poisson" if x.dtype.kind == "i" else "gaussian").fit(x)


def test_states_that_are_known_can_be_learned_from_without_observations() -> None:
    states = np.repeat([0, 1, 0, 1], 25)
    with pytest.warns(UserWarning, match="column 0 is missing everywhere"):
        model = HMM(2, Categorical(n_categories=2), init="random").fit(np.full(100, -1), states=states)
    assert model.transition_[0, 0] > 0.8


def test_a_column_that_is_missing_everywhere_is_named() -> None:
    x = np.random.default_rng(0).normal(size=(100, 2))
    x[:, 1] = np.nan
    with pytest.warns(UserWarning, match="column 1 is missing everywhere"):
        HMM(2, "diagonal_gaussian", random_state=0).fit(x)


def test_numbers_that_stand_for_names_count_anew_when_states_are_put_in_order() -> None:
    emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
    model = HMM.from_parameters([0.5, 0.5], [[0.7, 0.3], [0.1, 0.9]], emission)
    named = HMM.from_parameters([0.5, 0.5], [[0.7, 0.3], [0.1, 0.9]], emission)
    named.state_names_ = ["short", "long"]
    assert model.order_states(by="dwell").state_names_ == ["0", "1"]
    assert named.order_states(by="dwell").state_names_ == ["long", "short"]


def test_states_that_are_not_used_have_no_parameters() -> None:
    data = four_state("positive", n_sequences=20, random_state=0).observations
    model = HMM(10, Categorical(1.0), HDP(), CVI(), random_state=0).fit(data)
    n_used = int((model.statistics_.pairs.sum(axis=0) > 0.5).sum())
    assert n_used < 10
    assert model.n_parameters_ == n_used**2 - 1 + n_used * 7
