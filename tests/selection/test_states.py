"""How many states: the criteria, their folds, and what comes back."""

from __future__ import annotations

import numpy as np
import pytest
from small_models import draw, model_of

from subchain import EM, HMM, VI, Categorical, DiagonalGaussian, Gaussian, Poisson, Product
from subchain.datasets import gaussian_chain
from subchain.errors import InputError
from subchain.selection import select_states

pytestmark = pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")

CRITERIA = ["bic", "aic", "held_out", "bound"]


def data(n=400, **settings):
    return gaussian_chain(n, n_states=3, n_features=2, stickiness=0.8, separation=6.0, random_state=4, **settings)


def choose(x, criterion="bic", model=None, **settings):
    model = HMM(emission="diagonal_gaussian", inference=VI(max_iter=30), n_jobs=1) if model is None else model
    settings = {"states": [1, 3, 5], "n_init": 2, "cv": 3, "random_state": 0} | settings
    return select_states(x, criterion=criterion, model=model, **settings)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("lengths", [None, [80, 120, 60, 140]])
def test_the_true_number_of_states_is_found(criterion, lengths):
    x = (data() if lengths is None else data(None, lengths=lengths)).observations
    found = choose(x, criterion, n_init=4)
    assert found.n_states == 3
    assert found.effective == 3
    assert found.best_.n_states_ == 3
    assert found.best_.n_sequences_ == x.n_sequences
    assert [row.n_states for row in found.table] == [1, 3, 5]
    for row in found.table:
        values = found.values[row.n_states]
        assert len(values) == (3 if criterion == "held_out" else 4)
        assert row.mean == pytest.approx(np.mean(values))
        assert row.spread == pytest.approx(np.std(values))


def test_criteria_are_those_of_the_model():
    x = data().observations
    found = choose(x, "bic")
    assert found.best_.bic(x) == min(found.values[found.n_states])


@pytest.mark.filterwarnings("ignore:select_states")
def test_seeds_repeat():
    x = data(150).observations
    first, second = (choose(x, "bound", states=[2, 4]) for _ in range(2))
    assert first.values == second.values


def test_the_model_that_was_given_is_left_alone():
    model = HMM(7, "diagonal_gaussian", inference=VI(max_iter=3), n_jobs=1)
    choose(data(100).observations, model=model, states=[2])
    assert model.n_states == 7
    assert not hasattr(model, "point_")


@pytest.mark.parametrize("lengths", [[200], [30] * 7])
def test_rare_symbols_that_a_fold_does_not_show_are_no_trouble(lengths):
    rng = np.random.default_rng(0)
    x = [rng.integers(0, 3, n).astype(np.uint8) for n in lengths]
    x[0][0] = 9
    model = HMM(emission="categorical", inference=VI(max_iter=3), n_jobs=1)
    found = choose(x if len(x) > 1 else x[0], "held_out", model, states=[1, 2])
    assert all(np.isfinite(found.values[2]))
    assert found.best_.emission.n_categories == 10


def test_held_out_blocks_of_whole_numbers_are_missing_for_real_families_too():
    x = np.random.default_rng(0).integers(-3, 3, 200)
    model = HMM(emission=DiagonalGaussian(), inference=VI(max_iter=5), n_jobs=1)
    whole, floating = (choose(values, "held_out", model, states=[2]) for values in (x, x.astype(float)))
    assert whole.values == floating.values
    table = np.column_stack([x, np.abs(x)])
    parts = Product(a=Gaussian(columns=0), b=Poisson(columns=1))
    found = choose(table, "held_out", HMM(emission=parts, inference=VI(max_iter=3), n_jobs=1), states=[2])
    assert all(np.isfinite(found.values[2]))


def test_a_held_out_block_is_scored_by_what_was_not_hidden():
    x = draw(model_of("categorical"), 120)
    model = HMM(emission=Categorical(n_categories=4), inference=VI(max_iter=1), n_jobs=1)
    found = choose(x, "held_out", model, states=[1], cv=2, n_init=1)
    fold = np.arange(120) // 6 % 2 == 0
    counts = np.bincount(x[~fold], minlength=4) + 0.1
    assert found.values[1][0] == pytest.approx(np.log(counts / counts.sum())[x[fold]].mean())


def test_mistakes_are_explained():
    x = data(50).observations
    with pytest.raises(InputError, match="unknown criterion 'bick'.*Did you mean 'bic'"):
        choose(x, "bick")
    with pytest.raises(InputError, match="needs variational inference"):
        choose(x, "bound", HMM(emission="gaussian", inference=EM()))
    for states in ([], [0, 1], [2, 2]):
        with pytest.raises(InputError, match="different numbers of at least 1"):
            choose(x, states=states)
    with pytest.raises(InputError, match="cv must be a whole number of at least 2"):
        choose(x, "held_out", cv=1)
    with pytest.raises(InputError, match="n_init must be a whole number of at least 1"):
        choose(x, n_init=0)


@pytest.mark.parametrize(("sizes", "edge"), [([2, 3], "largest"), ([3, 4], "smallest")])
def test_a_choice_at_the_edge_of_the_range_is_a_warning(sizes: list[int], edge: str) -> None:
    data = gaussian_chain(300, n_states=3, stickiness=0.8, random_state=1).observations
    with pytest.warns(UserWarning, match=f"3, is the {edge} that was tried"):
        select_states(data, states=sizes, model=HMM(emission="gaussian"), random_state=0)
