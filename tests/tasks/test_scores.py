"""Log likelihoods of sequences, and criteria made of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from small_models import FAMILIES, draw, enumerated, model_of, sparse_model, with_holes

from subchain import HMM, Dirichlet, Gaussian, Product
from subchain.emissions import Categorical


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_sum_the_probability_of_all_paths(family):
    model = model_of(family, n_jobs=1)
    x = [with_holes(draw(model, n, seed=n)) for n in (6, 1, 4)]
    expected = [enumerated(model, part).log_likelihood for part in x]
    np.testing.assert_allclose(model.score_sequences(x), expected, rtol=1e-9)
    assert model.score(x) == pytest.approx(sum(expected))
    assert isinstance(model.score(x), float)


def test_an_empty_sequence_has_probability_one():
    model = model_of("categorical", n_jobs=1)
    assert model.score_sequences([np.array([0, 1]), np.array([], dtype=int)])[1] == 0.0


def test_impossible_sequences_score_minus_infinity_with_one_warning_that_says_where():
    model, x = sparse_model(n_jobs=1), [[0, 1], [2, 1, 0, 1], [2, 1, 0, 1]]
    with pytest.warns(UserWarning, match=r"sequence 1 \(and 1 more\) has probability zero.*position 3") as caught:
        scores = model.score_sequences(x)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert np.isfinite(scores[0])
    assert (scores[1:] == -np.inf).all()
    with pytest.warns(UserWarning, match="sequence 1"):
        assert model.score(x) == -np.inf


def test_a_possible_sequence_is_scored_in_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sparse_model(n_jobs=1).score([0, 1])


class TestCriteria:
    def fitted(self, **settings):
        x = [draw(model_of("categorical"), 100, seed=seed) for seed in range(3)]
        settings = {"n_states": 3, "emission": "categorical", "random_state": 0, "n_jobs": 1} | settings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return HMM(**settings).fit(x), x

    def test_they_weigh_the_likelihood_against_the_number_of_parameters(self):
        model, x = self.fitted()
        free = 2 + 3 * 2 + 3 * 3
        assert model.n_parameters_ == free
        assert model.aic(x) == pytest.approx(2 * free - 2 * model.score(x))
        assert model.bic(x) == pytest.approx(np.log(300) * free - 2 * model.score(x))

    def test_missing_positions_are_no_observations(self):
        model, x = self.fitted()
        x[0][:10] = -1
        assert model.bic(x) == pytest.approx(np.log(290) * model.n_parameters_ - 2 * model.score(x))

    def test_forbidden_moves_and_frozen_parts_are_not_counted(self):
        mask = np.triu(np.ones((3, 3), dtype=bool))
        model, _ = self.fitted(transition=Dirichlet(mask=mask, initial=[1, 0, 0]))
        assert model.n_parameters_ == 0 + 3 + 9
        start, _ = self.fitted()
        model, _ = self.fitted(emission=Categorical(frozen=True), init=start)
        assert model.n_parameters_ == 2 + 6

    def test_a_frozen_part_of_a_product_is_not_counted(self):
        x = draw(model_of("product"), 60)
        emission = Product(a=Gaussian(columns=[0, 2]), b=Categorical(columns=1, n_categories=4, frozen=True))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = HMM(3, emission, init=model_of("product"), n_jobs=1).fit(x)
        assert model.n_parameters_ == 2 + 6 + 3 * (2 + 3)

    def test_given_parameters_are_not_counted(self):
        assert model_of("gaussian").n_parameters_ == 0
