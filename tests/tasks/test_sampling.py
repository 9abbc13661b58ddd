"""Draws of sequences, continuations, paths and parameters."""

from __future__ import annotations

import warnings

import naive
import numpy as np
import pytest
from small_models import FAMILIES, draw, enumerated, model_of, sparse_model

from subchain import EM, HMM, Dirichlet
from subchain.errors import InputError


def within(share, expected, n, errors=5.0):
    return (np.abs(share - expected) <= errors * np.sqrt(expected * (1 - expected) / n) + 1e-12).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_long_draw_has_the_moves_and_means_of_the_model(family):
    model = model_of(family)
    observations, states = model.sample(20000, random_state=0)
    moves = np.zeros((3, 3))
    np.add.at(moves, (states[:-1], states[1:]), 1.0)
    visits = moves.sum(axis=1, keepdims=True)
    assert within(moves / visits, model.transition_, visits)
    if family != "product":
        table = np.eye(4)[observations] if family in ("categorical", "block_sparse") else observations
        for state in range(3):
            own = table[states == state]
            error = own.std(axis=0) / np.sqrt(len(own))
            assert (np.abs(own.mean(axis=0) - model.emission_.expectation()[state]) <= 5 * error + 1e-12).all()


def test_seeds_repeat_and_their_absence_does_not():
    model = model_of("gaussian")
    assert np.array_equal(model.sample(50, random_state=3).observations, model.sample(50, random_state=3).observations)
    assert not np.array_equal(model.sample(50).observations, model.sample(50).observations)
    rng = np.random.default_rng(0)
    assert not np.array_equal(model.sample(50, random_state=rng).states, model.sample(50, random_state=rng).states)


def test_a_continuation_begins_where_the_past_has_led():
    model = model_of("categorical", n_jobs=1)
    past = draw(model, 8)
    expected = model.forecast(past, steps=2)
    drawn = model.sample(2, given=[past] * 3000, random_state=0)
    states = np.array([sample.states for sample in drawn])
    symbols = np.array([sample.observations for sample in drawn])
    for step in range(2):
        assert within(np.bincount(states[:, step], minlength=3) / 3000, expected.states[step], 3000)
        assert within(np.bincount(symbols[:, step], minlength=4) / 3000, expected.probabilities[step], 3000)


def test_several_pasts_have_several_continuations():
    model = model_of("gaussian", n_jobs=1)
    found = model.sample(5, given=[draw(model, 3), draw(model, 4)], random_state=0)
    assert [sample.observations.shape for sample in found] == [(5, 2), (5, 2)]


def test_paths_are_drawn_from_their_posterior():
    model = sparse_model(n_jobs=1)
    x = [1, 1, 2, 0]
    paths = model.sample_paths(x, n=4000, random_state=0)
    logs = model.emission_.log_likelihood(np.array(x)).T
    all_paths, joint = naive.all_paths(logs, model.initial_, model.transition_)
    expected = np.exp(joint - enumerated(model, x).log_likelihood)
    codes = paths @ [27, 9, 3, 1]
    assert within(np.bincount(codes, minlength=81)[all_paths @ [27, 9, 3, 1]] / 4000, expected, 4000)


def test_paths_of_several_sequences_come_as_a_list_and_depend_on_the_seed_alone():
    model, again = model_of("categorical", n_jobs=1), model_of("categorical", n_jobs=2)
    x = [draw(model, 7), np.array([], dtype=int), draw(model, 3000)]
    paths = model.sample_paths(x, n=2, random_state=1)
    assert [part.shape for part in paths] == [(2, 7), (2, 0), (2, 3000)]
    for part, other in zip(paths, again.sample_paths(x, n=2, random_state=1), strict=True):
        assert np.array_equal(part, other)


class TestParameters:
    def fitted(self, **settings):
        x = draw(model_of("categorical"), 400)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return HMM(2, "categorical", random_state=0, n_jobs=1, **settings).fit(x), x

    def test_draws_have_the_mean_of_the_posterior(self):
        model, _ = self.fitted()
        draws = model.sample_parameters(2000, random_state=0)
        for name in ("initial", "transition"):
            table = np.array([getattr(point.chain, name) for point in draws])
            error = table.std(axis=0) / np.sqrt(len(table))
            assert (np.abs(table.mean(axis=0) - getattr(model.point_.chain, name)) <= 5 * error).all()

    def test_each_draw_is_a_model(self):
        model, x = self.fitted()
        for point in model.sample_parameters(3, random_state=0):
            drawn = HMM.from_parameters(point.chain.initial, point.chain.transition, point.emission)
            assert drawn.score(x) < model.score(x)

    def test_what_is_frozen_or_given_stays(self):
        start, _ = self.fitted()
        model, _ = self.fitted(transition=Dirichlet(frozen=True), init=start)
        first, second = model.sample_parameters(2, random_state=0)
        assert np.array_equal(first.chain.transition, start.transition_)
        assert not np.array_equal(first.emission.weights, second.emission.weights)
        given = model_of("gaussian")
        assert all(np.array_equal(point.emission.means, given.emission_.means) for point in given.sample_parameters(2))

    def test_em_has_a_posterior_too(self):
        model, _ = self.fitted(inference=EM(max_iter=5))
        assert len(model.sample_parameters(4)) == 4


def test_mistakes_are_explained():
    model = sparse_model()
    for call in (model.sample, model.sample_parameters, lambda n: model.sample_paths([0, 1], n)):
        with pytest.raises(InputError, match="n must be a whole number of at least 1"):
            call(0)
        with pytest.raises(InputError, match="n must be a whole number of at least 1"):
            call(1.5)
    with pytest.raises(InputError, match="random_state"):
        model.sample(3, random_state="seven")
