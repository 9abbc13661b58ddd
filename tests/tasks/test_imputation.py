"""Missing entries, replaced by what is expected there."""

from __future__ import annotations

import numpy as np
import pytest
from small_models import FAMILIES, draw, enumerated, model_of, steep_model, with_holes

from subchain.data import is_missing
from subchain.errors import ImpossibleSequenceError


@pytest.mark.parametrize("family", FAMILIES)
def test_observed_entries_are_untouched_and_nothing_is_missing(family):
    model = model_of(family, n_jobs=1)
    x = with_holes(draw(model, 40))
    filled = model.impute(x)
    known = ~is_missing(x)
    assert filled.shape == x.shape
    assert np.array_equal(filled[known], x[known])
    assert not is_missing(filled).any()
    assert filled.dtype.kind == ("i" if family == "categorical" else "f")


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
