"""What comes next, as exact mixtures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from small_models import FAMILIES, draw, followed, model_of, sparse_model, steep_model

from subchain.errors import ImpossibleSequenceError, InputError


@pytest.mark.parametrize("family", FAMILIES)
def test_states_ahead_are_the_last_belief_moved_by_powers_of_the_matrix(family):
    model = model_of(family, n_jobs=1)
    x = draw(model, 10)
    now = followed(model, x).filtered[-1]
    expected = [now @ np.linalg.matrix_power(model.transition_, step) for step in (1, 2, 3)]
    forecast = model.forecast(x, steps=3)
    np.testing.assert_allclose(forecast.states, expected)
    np.testing.assert_allclose(forecast.mean, np.array(expected) @ model.emission_.expectation())


def test_every_sequence_has_its_forecast_and_an_empty_one_is_yet_to_begin():
    model = model_of("categorical", n_jobs=1)
    x = [draw(model, 2000), np.array([], dtype=int), draw(model, 3)]
    forecasts = model.forecast(x, steps=2)
    np.testing.assert_allclose(forecasts[1].states[0], model.initial_)
    for which in (0, 2):
        np.testing.assert_allclose(forecasts[which].states, model.forecast(x[which], 2).states)


def test_symbols_have_probabilities_that_sum_to_one():
    model = model_of("categorical", n_jobs=1)
    forecast = model.forecast([0, 1, 2], steps=4)
    assert forecast.probabilities.shape == (4, 4)
    np.testing.assert_allclose(forecast.probabilities.sum(axis=1), 1.0)
    assert np.log(forecast.probabilities[0, 3]) == pytest.approx(model.score([0, 1, 2, 3]) - model.score([0, 1, 2]))


@pytest.mark.parametrize("family", ["gaussian", "diagonal_gaussian"])
def test_real_numbers_are_a_mixture_of_normal_distributions(family):
    model = model_of(family, n_jobs=1)
    forecast = model.forecast(draw(model, 5), steps=2)
    emission = model.emission_
    variances = emission.covariances.diagonal(axis1=1, axis2=2) if family == "gaussian" else emission.variances
    weights = forecast.states[1]
    mean = weights @ emission.means
    np.testing.assert_allclose(forecast.variance[1], weights @ (variances + (emission.means - mean) ** 2))
    levels = np.array([[0.025, 0.5], [0.9, 0.999]])
    quantiles = forecast.quantiles(levels)
    assert quantiles.shape == (2, 2, 2, 2)
    below = sum(
        weight * stats.norm.cdf(quantiles[..., 1, :], mean, np.sqrt(variance))
        for weight, mean, variance in zip(weights, emission.means, variances, strict=True)
    )
    np.testing.assert_allclose(below, np.broadcast_to(levels[..., None], (2, 2, 2)), atol=1e-12)
    np.testing.assert_allclose(forecast.cdf(quantiles[0, 1]), 0.5)


def test_counts_are_a_mixture_of_poisson_distributions():
    model = model_of("poisson", n_jobs=1)
    forecast = model.forecast(draw(model, 5), steps=3)
    values = np.arange(200)
    pmf = np.array([forecast.pmf(value) for value in values])
    np.testing.assert_allclose(pmf.sum(axis=0), 1.0)
    np.testing.assert_allclose((values[:, None, None] * pmf).sum(axis=0), forecast.mean)
    np.testing.assert_allclose((values[:, None, None] ** 2 * pmf).sum(axis=0) - forecast.mean**2, forecast.variance)
    for level in (0.1, 0.5, 0.99):
        expected = (np.cumsum(pmf, axis=0) < level).sum(axis=0)
        assert np.array_equal(forecast.quantiles(level), expected)


def test_zeros_and_ones_have_probabilities():
    model = model_of("bernoulli", n_jobs=1)
    forecast = model.forecast(draw(model, 5), steps=2)
    np.testing.assert_allclose(forecast.probabilities, forecast.mean)
    np.testing.assert_allclose(forecast.pmf(1), forecast.mean)
    np.testing.assert_allclose(forecast.variance, forecast.mean * (1 - forecast.mean))


def test_parts_of_a_product_have_forecasts_of_their_own():
    model = model_of("product", n_jobs=1)
    forecast = model.forecast(draw(model, 5), steps=2)
    np.testing.assert_allclose(forecast["a"].mean, forecast.states @ model.emission_["a"].means)
    np.testing.assert_allclose(forecast["b"].probabilities.sum(axis=1), 1.0)
    with pytest.raises(InputError, match='forecast\\["part"\\]'):
        _ = forecast.variance


def test_sequences_beyond_scaled_probabilities_are_followed():
    model = steep_model(n_jobs=1)
    np.testing.assert_allclose(model.forecast([0, 1, 1, 2], 1).states, [[0.0, 0.0, 1.0]])


def test_mistakes_are_explained():
    model = sparse_model(n_jobs=1)
    with pytest.raises(InputError, match="steps must be"):
        model.forecast([0, 1], steps=0)
    with pytest.raises(InputError, match="use probabilities"):
        model.forecast([0, 1], steps=1).quantiles(0.5)
    with pytest.raises(InputError, match="only forecasts of a Product"):
        _ = model.forecast([0, 1], steps=1)["a"]
    with pytest.raises(InputError, match="q must lie between 0 and 1"):
        model_of("gaussian").forecast(np.zeros((2, 2)), 1).quantiles(1.5)
    with pytest.raises(InputError, match="describe numbers, which have no table of probabilities"):
        _ = model_of("gaussian").forecast(np.zeros((2, 2)), 1).probabilities
    with pytest.raises(InputError, match="pmf is for counts"):
        model_of("gaussian").forecast(np.zeros((2, 2)), 1).pmf(0.0)
    with pytest.raises(ImpossibleSequenceError, match="position 3"):
        model.forecast([2, 1, 0, 1], steps=1)
