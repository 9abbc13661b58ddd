"""Missing entries, replaced by what is expected there."""

from __future__ import annotations

import numpy as np
import pytest
from small_models import FAMILIES, draw, enumerated, model_of, steep_model, with_holes

from subchain import HMM, Gaussian
from subchain.data import is_missing
from subchain.errors import ImpossibleSequenceError, InputError


@pytest.mark.parametrize("family", FAMILIES)
def test_observed_entries_are_untouched_and_nothing_is_missing(family):
    model = model_of(family, n_jobs=1)
    x = with_holes(draw(model, 40))
    filled = model.impute(x)
    known = ~is_missing(x)
    assert filled.shape == x.shape
    assert np.array_equal(filled[known], x[known])
    assert not is_missing(filled).any()
    assert filled.dtype.kind == ("i" if family in ("categorical", "block_sparse") else "f")


@pytest.mark.parametrize("family", ["diagonal_gaussian", "poisson", "bernoulli"])
def test_numbers_are_expected_under_the_states_of_all_paths(family):
    model = model_of(family, n_jobs=1)
    x = with_holes(draw(model, 6))
    expected = enumerated(model, x).smoothed @ model.emission_.expectation()
    np.testing.assert_allclose(model.impute(x)[is_missing(x)], expected[is_missing(x)])


def test_correlated_columns_tell_about_each_other():
    model = model_of("gaussian", n_jobs=1)
    x = draw(model, 6)
    x[2, 1] = np.nan
    marginals, emission = enumerated(model, x).smoothed[2], model.emission_
    slopes = emission.covariances[:, 1, 0] / emission.covariances[:, 0, 0]
    expected = marginals @ (emission.means[:, 1] + slopes * (x[2, 0] - emission.means[:, 0]))
    assert model.impute(x)[2, 1] == pytest.approx(expected)


def test_symbols_are_the_most_probable_ones():
    model = model_of("categorical", n_jobs=1)
    x = with_holes(draw(model, 7))
    expected = (enumerated(model, x).smoothed @ model.emission_.probabilities).argmax(axis=1)
    assert np.array_equal(model.impute(x)[x < 0], expected[x < 0])


def test_complete_data_come_back_as_they_are():
    model = model_of("gaussian", n_jobs=1)
    x = [draw(model, 5), draw(model, 2)]
    assert all(np.array_equal(filled, part) for filled, part in zip(model.impute(x), x, strict=True))
    assert model.impute(x[0].astype(np.float32)).dtype == np.float32


def test_sequences_beyond_scaled_probabilities_are_filled():
    assert steep_model(n_jobs=1).impute([0, 1, -1, 1, 2, -1]).tolist() == [0, 1, 1, 1, 2, 2]
    with pytest.raises(ImpossibleSequenceError):
        steep_model(n_jobs=1).impute([2, -1])


class TestDraws:
    """Several draws of missing entries instead of their means."""

    @pytest.mark.parametrize("family", FAMILIES)
    def test_observed_entries_are_untouched_and_nothing_is_missing(self, family):
        model = model_of(family, n_jobs=1)
        x = with_holes(draw(model, 40))
        draws = model.sample_missing(x, 5, random_state=0)
        known = ~is_missing(x)
        assert draws.shape == (5, *x.shape)
        assert (draws[:, known] == x[known]).all()
        assert not is_missing(draws).any()
        assert (draws != draws[0]).any()
        assert np.array_equal(draws, model.sample_missing(x, 5, random_state=0))

    @pytest.mark.parametrize("family", ["diagonal_gaussian", "gaussian", "poisson", "bernoulli"])
    def test_the_mean_of_many_draws_is_what_is_expected(self, family):
        model = model_of(family, n_jobs=1)
        x = with_holes(draw(model, 6))
        draws = model.sample_missing(x, 4000, random_state=0)[:, is_missing(x)]
        error = draws.std(axis=0) / np.sqrt(len(draws))
        assert (np.abs(draws.mean(axis=0) - model.impute(x)[is_missing(x)]) < 4 * error).all()

    def test_columns_of_a_row_are_drawn_from_their_joint_distribution(self):
        model = HMM.from_parameters([1.0], [[1.0]], Gaussian.from_parameters([[1.0, 2.0]], [[[1.0, 0.8], [0.8, 1.0]]]))
        x = np.array([[np.nan, np.nan], [3.0, np.nan], [0.0, 0.0]])
        draws = model.sample_missing(x, 4000, random_state=0)
        assert np.corrcoef(draws[:, 0].T)[0, 1] == pytest.approx(0.8, abs=0.02)
        assert draws[:, 1, 1].mean() == pytest.approx(2.0 + 0.8 * (3.0 - 1.0), abs=0.04)
        assert draws[:, 1, 1].std() == pytest.approx(np.sqrt(1.0 - 0.8**2), abs=0.03)

    def test_neighbouring_gaps_are_drawn_together(self):
        model = model_of("categorical", n_jobs=1)
        x = np.array([0, -1, -1, 2])
        draws = model.sample_missing(x, 20_000, random_state=0)
        for pair in np.ndindex(4, 4):
            filled = np.array([0, *pair, 2])
            probability = np.exp(model.score(filled) - model.score(x))
            assert (draws[:, 1:3] == pair).all(axis=1).mean() == pytest.approx(probability, abs=0.015)

    def test_several_sequences_give_several_arrays(self):
        model = model_of("gaussian", n_jobs=1)
        x = [with_holes(draw(model, n)) for n in (5, 1, 9)]
        assert [part.shape for part in model.sample_missing(x, 3)] == [(3, 5, 2), (3, 1, 2), (3, 9, 2)]

    def test_complete_data_come_back_as_they_are(self):
        model = model_of("poisson", n_jobs=1)
        x = draw(model, 10)
        assert (model.sample_missing(x, 2) == x).all()

    def test_a_number_of_draws_is_positive(self):
        with pytest.raises(InputError, match="n must be a whole number of at least 1"):
            model_of("poisson").sample_missing(np.array([[1, -1]]), 0)
