"""What goes wrong first: data that hold nothing, names that no longer fit, states that are counted but not used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from subchain import (
    CVI,
    EM,
    HDP,
    HMM,
    SVI,
    BlockSparse,
    Categorical,
    DiagonalGaussian,
    GrowBuffer,
    Guards,
    LowRank,
    Poisson,
)
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


HUGE, RAGGED = 10**400, [[1.0, [2.0]]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"emission": Poisson(shape=[HUGE])}, "shape must be a number or a rectangular array of numbers"),
        ({"emission": DiagonalGaussian(mean=RAGGED)}, "mean must be a number or a rectangular array"),
        ({"emission": Categorical(columns=np.array(3))}, "columns must be a flat list of names or numbers"),
        ({"emission": BlockSparse(groups=np.full(200, 2**64 - 1, np.uint64))}, "there cannot be more groups than"),
        ({"emission": BlockSparse(groups=RAGGED)}, "groups must be a vector with one whole number"),
        ({"transition": LowRank(2, concentration="abc")}, "concentration must be a number or a rectangular array"),
        ({"transition": LowRank(2, initial=b"ab")}, "initial must be a number or a rectangular array"),
        ({"n_init": 10**30}, "n_init must be a whole number from 1 to 1,000,000"),
        ({"inference": SVI(boundary=GrowBuffer(tolerance=None))}, "tolerance must be a number"),
        ({"inference": SVI(boundary=GrowBuffer(step=10**30))}, "step is 10*; it may be"),
        ({"inference": SVI(boundary=Guards(store=np.zeros(2)))}, "unknown store of Guards"),
    ],
)
def test_settings_that_cannot_be_meant_are_named(settings: dict[str, Any], message: str) -> None:
    x = np.random.default_rng(0).integers(0, 4, 200)
    with pytest.raises(InputError, match=message):
        HMM(2, **({"emission": "categorical"} | settings)).fit(x)


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
@pytest.mark.parametrize("path", [True, 1, np.nan, 10**30])
def test_what_is_no_path_is_refused_as_one(path: Any) -> None:
    x = np.random.default_rng(0).integers(0, 4, 50)
    model = HMM(2, "categorical", inference=EM(max_iter=2), random_state=0)
    with pytest.raises(InputError, match="checkpoint must be the path of a file"):
        model.fit(x, checkpoint=path)
    with pytest.raises(InputError, match="out must be the path of a file"):
        model.fit(x).predict(x, out=path)
    with pytest.raises(InputError, match="align_to needs a fitted model"):
        model.align_to(path)


def test_a_growing_buffer_looks_no_further_than_there_are_observations() -> None:
    x = np.random.default_rng(0).integers(0, 4, 200)
    inference = SVI(length=20, batch=2, max_updates=2, boundary=GrowBuffer(step=2**31))
    assert HMM(2, "categorical", inference=inference, random_state=0).fit(x).emission_.probabilities.shape == (2, 4)


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning", "ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("family", ["categorical", "poisson", "bernoulli"])
def test_a_numpy_matrix_is_an_array(family: str) -> None:
    x = np.random.default_rng(0).integers(0, 2, (100, 1))
    fits = [HMM(2, family, inference=EM(max_iter=2), random_state=0).fit(given) for given in (x, np.matrix(x))]
    assert fits[0].score(np.matrix(x)) == fits[1].score(x)
