"""`HDP(mask=…)`: forbidden transitions stay exact zeros while the parent of the rows is learned."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize

from subchain import CVI, HDP, HMM, SVI, VI, Beam
from subchain.datasets import sample_chain
from subchain.errors import InputError
from subchain.inference import SCVI
from subchain.transitions import cyclic, left_right
from subchain.transitions.sums import ChainSums


@pytest.fixture(scope="module")
def rounds():
    """A cycle of three states, in a model that has room for five."""
    transition = 0.8 * np.eye(3) + 0.2 * np.roll(np.eye(3), 1, axis=1)
    rng = np.random.default_rng(0)
    states = sample_chain([1.0, 0.0, 0.0], transition, 600, rng)
    return rng.normal(5.0 * states, 1.0)


ALGORITHMS = [VI(), SVI(max_updates=60), CVI(max_iter=20), SCVI(max_updates=60)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("inference", ALGORITHMS, ids=repr)
@pytest.mark.parametrize("stickiness", [0.0, 5.0])
def test_forbidden_transitions_stay_exact_zeros(inference, stickiness, rounds, tmp_path):
    mask = np.eye(5, dtype=bool) | (np.arange(5)[:, None] != (np.arange(5) + 1) % 5)
    mask[:, 4] &= np.arange(5) != 2
    prior = HDP(mask=mask, stickiness=stickiness)
    model = HMM(5, "gaussian", prior, inference, random_state=0, n_jobs=1).fit(rounds)
    assert (model.transition_[~mask] == 0.0).all()
    assert (model.transition_[mask] > 0.0).all()
    assert not any("merged" in event.message for event in model.trace_.events)
    model.save(tmp_path / "model.hmm")
    assert np.isclose(HMM.load(tmp_path / "model.hmm").score(rounds), model.score(rounds))


def test_the_bound_never_falls(rounds):
    model = HMM(6, "gaussian", HDP(mask=cyclic(6, 3)), VI(max_iter=400), random_state=0).fit(rounds)
    assert np.diff(model.trace_.objective).min() >= -1e-7


def test_the_parent_of_masked_rows_is_the_most_probable_one():
    """The update leads to the maximum that a general optimiser finds."""
    rng = np.random.default_rng(1)
    mask = np.array([[1, 1, 0, 0], [0, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 1]], dtype=bool)
    sums = ChainSums(np.array([3.0, 1.0, 0.0, 0.0]), 20.0 * rng.random((4, 4)) * mask)
    prior = HDP(2.0, 1.5, "direct", mask=mask).prior(4, flat=False)
    found = prior
    for _ in range(300):
        found = found.update_hyperparameters(sums)

    in_order = np.argsort(found.order)
    begin = np.log(found.top[in_order][:-1] / (1.0 - found.top[in_order][:-1]))

    def at(odds):
        sticks = found.top.copy()
        sticks[in_order[:-1]] = 1.0 / (1.0 + np.exp(-odds))
        return -dataclasses.replace(found, top=sticks).rebuilt()._objective(sums)

    best = minimize(at, begin, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 4000})
    assert np.isclose(-best.fun, found._objective(sums), rtol=1e-6)


def test_a_left_right_model_with_room_for_more_states_ends_in_the_last(rounds):
    rng = np.random.default_rng(0)
    x = [rng.normal(np.repeat([0.0, 4.0, 8.0], rng.integers(5, 15, size=3)), 1.0) for _ in range(20)]
    prior = HDP(mask=left_right(5), final=[4])
    model = HMM(5, "gaussian", prior, VI(max_iter=500), random_state=0)
    model.fit(x)
    assert (np.tril(model.transition_, -1) == 0.0).all()
    assert all(path[-1] == 4 for path in model.predict(x))


@pytest.mark.parametrize("settings", [{"inference": Beam()}, {"transition": HDP(construction="sticks", mask=cyclic)}])
def test_constructions_without_a_fixed_set_of_states_refuse_a_mask(settings, rounds):
    with pytest.raises(InputError, match="'direct' or 'collapsed'"):
        HMM(**({"n_states": 4, "emission": "gaussian", "transition": HDP(mask=cyclic)} | settings)).fit(rounds)


def test_a_mask_of_the_wrong_size_or_with_an_empty_row_is_named(rounds):
    with pytest.raises(InputError, match="mask has shape"):
        HMM(4, "gaussian", HDP(mask=cyclic(3))).fit(rounds)
    with pytest.raises(InputError, match="no transition from state 1"):
        HMM(2, "gaussian", HDP(mask=[[1, 1], [0, 0]])).fit(rounds)
