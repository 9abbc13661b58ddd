"""Missing coordinates are drawn from their distribution given the others."""

import numpy as np

from subchain import Categorical, Gaussian, Product
from subchain.structures.chain.collapsed.missing_coordinates import fill_incomplete_rows, has_incomplete_rows

RNG = np.random.default_rng(0)
MEANS = np.array([[0.0, 1.0, 2.0], [5.0, -5.0, 0.0]])
ROOTS = RNG.normal(size=(2, 3, 3))
COVARIANCES = ROOTS @ ROOTS.transpose(0, 2, 1) + np.eye(3)
PARAMETERS = Gaussian.from_parameters(MEANS, COVARIANCES)


def test_draws_have_the_conditional_mean_and_covariance():
    n = 20_000
    values = np.tile([1.0, np.nan, np.nan], (2 * n, 1))
    states = np.repeat([0, 1], n).astype(np.int32)
    filled = fill_incomplete_rows(PARAMETERS, values, states, np.random.default_rng(1))
    for state in (0, 1):
        covariance, mean = COVARIANCES[state], MEANS[state]
        gain = covariance[0, 1:] / covariance[0, 0]
        draws = filled[states == state][:, 1:]
        rest = covariance[1:, 1:] - np.outer(gain, covariance[0, 1:])
        assert np.abs(draws.mean(axis=0) - mean[1:] - gain * (1.0 - mean[0])).max() < 0.1
        assert np.abs(np.cov(draws.T) - rest).max() < 0.05 * np.abs(rest).max() + 0.05
    np.testing.assert_array_equal(filled[:, 0], 1.0)


def test_rows_of_which_nothing_is_known_stay_missing():
    values = np.array([[np.nan] * 3, [1.0, 2.0, 3.0], [np.nan, 2.0, 3.0]])
    filled = fill_incomplete_rows(PARAMETERS, values, np.zeros(3, dtype=np.int32), RNG)
    assert np.isnan(filled[0]).all()
    assert np.isfinite(filled[2]).all()
    np.testing.assert_array_equal(filled[1], values[1])


def test_only_coordinates_that_depend_on_others_are_holes():
    whole, partial = np.array([[np.nan] * 3, [1.0, 2.0, 3.0]]), np.array([[np.nan, 2.0, 3.0]])
    assert not has_incomplete_rows(PARAMETERS, whole)
    assert has_incomplete_rows(PARAMETERS, partial)
    symbols = Categorical.from_parameters([[0.5, 0.5], [0.5, 0.5]])
    both = Product.from_parameters(columns={"a": [0, 1, 2], "b": 3}, a=PARAMETERS, b=symbols)
    assert not has_incomplete_rows(both, np.array([[1.0, 2.0, 3.0, np.nan]]))
    table = np.array([[np.nan, 2.0, 3.0, np.nan]])
    filled = fill_incomplete_rows(both, table, np.zeros(1, dtype=np.int32), RNG)
    assert np.isfinite(filled[0, 0])
    assert np.isnan(filled[0, 3])
