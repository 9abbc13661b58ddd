"""Gaussian vectors some of whose coordinates are missing."""

from __future__ import annotations

import emission_laws as laws
import numpy as np
import pytest
from gaussian_examples import NAN, random_niw, random_parameters, with_holes
from scipy import stats

from subchain.data.sequences import Sequences
from subchain.emissions.gaussian import Gaussian

# ---- missing coordinates ---------------------------------------------------------------------------------------------


def test_missing_coordinates_leave_the_marginal_gaussian() -> None:
    parameters = random_parameters(0, 3, 4)
    values = with_holes(np.random.default_rng(1).normal(size=(40, 4)))
    log_likelihood = parameters.log_likelihood(values)
    for row, value in enumerate(values):
        known = ~np.isnan(value)
        for k in range(3):
            covariance = parameters.covariances[k][np.ix_(known, known)]
            expected = (
                stats.multivariate_normal(parameters.means[k, known], covariance).logpdf(value[known])
                if known.any()
                else 0.0
            )
            assert log_likelihood[k, row] == pytest.approx(expected, rel=1e-10)


def test_missing_coordinates_leave_the_marginal_student_distribution() -> None:
    niw = random_niw(0, 2, 3)
    predictive = niw.predictive()
    values = with_holes(np.random.default_rng(1).normal(size=(30, 3)))
    log_likelihood = predictive.log_likelihood(values)
    for row, value in enumerate(values):
        known = ~np.isnan(value)
        for k in range(2):
            spread = predictive.spreads[k][np.ix_(known, known)]
            expected = (
                stats.multivariate_t(niw.location[k, known], spread, predictive.degrees[k]).logpdf(value[known])
                if known.any()
                else 0.0
            )
            assert log_likelihood[k, row] == pytest.approx(expected, rel=1e-10)


def test_missing_coordinates_of_the_variational_form_are_integrated_out() -> None:
    form = random_niw(0, 2, 2).expected_log()
    grid = np.linspace(-60.0, 60.0, 20001)
    complete = form.log_likelihood(np.column_stack((np.full_like(grid, 0.7), grid)))
    expected = np.log(np.exp(complete).sum(axis=1) * (grid[1] - grid[0]))
    np.testing.assert_allclose(form.log_likelihood(np.array([[0.7, NAN]]))[:, 0], expected, rtol=1e-8)


@pytest.mark.parametrize("surrogate", ["mean", "expected_log", "predictive"])
def test_statistics_of_missing_coordinates_are_expectations(surrogate: str) -> None:
    """Against importance-weighted draws of the missing coordinates under the very same form."""
    likelihood = getattr(random_niw(4, 2, 3), surrogate)()
    rng = np.random.default_rng(0)
    known, lost = np.array([0.4]), rng.normal(scale=6.0, size=(400_000, 2))
    draws = np.column_stack((lost[:, 0], np.full(len(lost), known[0]), lost[:, 1]))
    proposal = stats.norm.logpdf(lost, scale=6.0).sum(axis=1)
    weights = np.exp(likelihood.log_likelihood(draws) - proposal)
    weights /= weights.sum(axis=1, keepdims=True)
    shifted = draws - likelihood.origin

    sums = likelihood.zeros()
    marginals = np.array([[0.3], [0.7]])
    likelihood.accumulate(np.array([[NAN, known[0], NAN]]), marginals, sums)
    np.testing.assert_allclose(sums.weight, marginals[:, 0])
    np.testing.assert_allclose(sums.first, marginals * (weights @ shifted), atol=0.04)
    expected = np.einsum("kn,ni,nj->kij", weights, shifted, shifted, optimize=True)
    np.testing.assert_allclose(sums.second, marginals[:, :, None] * expected, rtol=0.03, atol=0.05)


@pytest.mark.parametrize("surrogate", ["mode", "expected_log", "predictive"])
def test_statistics_with_missing_coordinates_add_up_row_by_row(surrogate: str) -> None:
    likelihood = getattr(random_niw(4, 3, 4), surrogate)()
    values = with_holes(np.random.default_rng(0).normal(size=(25, 4)))
    marginals = laws.random_marginals(3, 25)
    whole, single = likelihood.zeros(), likelihood.zeros()
    likelihood.accumulate(values, marginals, whole)
    for row in range(25):
        likelihood.accumulate(values[row : row + 1], marginals[:, row : row + 1], single)
    laws.assert_same(single, whole)
    assert whole.weight.sum() == pytest.approx(24.0)  # one row is entirely missing


def test_em_with_missing_coordinates_never_loses_likelihood() -> None:
    rng = np.random.default_rng(3)
    values = with_holes(rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3)) + 4.0)
    prior = Gaussian().prior(Sequences(values), 1, flat=True)
    parameters = Gaussian.from_parameters(np.zeros((1, 3)), np.eye(3)[None])
    scores = []
    for _ in range(25):
        scores.append(parameters.log_likelihood(values).sum())
        sums = parameters.zeros()
        parameters.accumulate(values, np.ones((1, 200)), sums)
        parameters = prior.update(sums).mode()
    assert np.diff(scores).min() >= -1e-9
    assert scores[-1] > scores[0] + 1.0


def test_more_patterns_than_are_remembered_make_no_difference() -> None:
    parameters = random_parameters(0, 2, 10)
    values = np.random.default_rng(1).normal(size=(600, 10))
    values[np.random.default_rng(2).random(values.shape) < 0.5] = NAN
    once = parameters.log_likelihood(values)
    np.testing.assert_array_equal(once, parameters.log_likelihood(values))
    np.testing.assert_allclose(once[:, 500:501], parameters.log_likelihood(values[500:501]))


def test_filling_uses_the_known_coordinates_of_the_row() -> None:
    parameters = Gaussian.from_parameters([[0.0, 1.0], [5.0, 5.0]], [[[1.0, 0.5], [0.5, 1.0]], np.eye(2)])
    values = np.array([[2.0, NAN], [NAN, NAN], [3.0, 4.0]])
    filled = parameters.fill(values, np.array([[1.0, 0.25, 0.5], [0.0, 0.75, 0.5]]))
    np.testing.assert_allclose(filled, [[2.0, 2.0], [3.75, 4.0], [3.0, 4.0]])
    np.testing.assert_array_equal(parameters.fill(np.array([[-1, 2]]), np.full((2, 1), 0.5)), [[-1, 2]])
