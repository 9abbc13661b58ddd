from __future__ import annotations

from typing import Any

import emission_laws as laws
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from sklearn.base import clone

from subchain.data.sequences import Sequences
from subchain.emissions.poisson import GammaRates, Poisson
from subchain.errors import InputError
from subchain.numerics.special import log_factorial, log_rising

COUNTS = np.array([[0, 3], [2, 1], [7, 0], [1, 4], [0, 0], [2, 12]])


def gamma_rates() -> GammaRates:
    return GammaRates(np.array([[1.5, 3.0], [2.0, 8.0]]), np.array([[1.0, 0.5], [4.0, 2.0]]))


def test_every_law_of_families_holds() -> None:
    laws.check_all(gamma_rates(), COUNTS)


def test_every_law_holds_with_missing_entries() -> None:
    values = COUNTS.astype(float)
    values[0, 1] = values[2, 0] = np.nan
    values[4] = np.nan
    laws.check_all(gamma_rates(), values)


def test_every_law_holds_for_one_column_of_small_counts() -> None:
    values = np.tile([0, 1, 2, -1, 3, 0], 10)
    laws.check_all(GammaRates(np.array([[1.5], [2.0]]), np.array([[1.0], [4.0]])), values)


def test_log_likelihood_is_that_of_scipy() -> None:
    rates = np.array([[0.5, 3.0], [8.0, 1e-3], [400.0, 1.0]])
    expected = stats.poisson.logpmf(COUNTS[None], rates[:, None]).sum(axis=2)
    np.testing.assert_allclose(Poisson.from_parameters(rates).log_likelihood(COUNTS), expected)


def test_predictive_is_the_negative_binomial_distribution_of_scipy() -> None:
    prior = gamma_rates()
    expected = stats.nbinom.logpmf(COUNTS[None], prior.shape[:, None], (prior.rate / (prior.rate + 1.0))[:, None])
    np.testing.assert_allclose(prior.predictive().log_likelihood(COUNTS), expected.sum(axis=2))


def test_predictive_sums_to_one_however_large_the_shape() -> None:
    for shape, rate in [(0.3, 0.1), (900.0, 100.0), (1100.0, 100.0), (5e11, 1e11)]:
        predictive = GammaRates(np.array([[shape]]), np.array([[rate]])).predictive()
        assert np.exp(predictive.log_likelihood(np.arange(400))).sum() == pytest.approx(1.0, abs=1e-11)


@given(st.floats(0.01, 1e6), st.integers(0, 300))
def test_log_rising_is_the_sum_of_the_factors_logarithms(shape: float, count: int) -> None:
    expected = np.log(shape + np.arange(count)).sum()
    assert log_rising(np.array(shape), np.array(float(count))) == pytest.approx(expected, rel=1e-9, abs=1e-7)


def test_log_factorial_of_small_and_large_counts() -> None:
    np.testing.assert_allclose(log_factorial(np.array([0.0, 1.0, 5.0])), np.log([1.0, 1.0, 120.0]))
    np.testing.assert_allclose(log_factorial(np.array([3.0, 2000.0]))[1], np.log(np.arange(1, 2001)).sum())


def test_a_rate_of_zero_allows_zero_and_nothing_else() -> None:
    logs = Poisson.from_parameters([[0.0, 2.0], [0.0, 0.0]]).log_likelihood(np.array([[0, 1], [1, 1], [0, 0], [-1, 0]]))
    expected = stats.poisson.logpmf([1, 1, 0, 0], 2.0)
    expected[1] = -np.inf
    np.testing.assert_allclose(logs, [expected, [-np.inf, -np.inf, 0.0, 0.0]])


def test_missing_entries_drop_out_alone() -> None:
    point = Poisson.from_parameters([[0.5, 3.0], [8.0, 1.0]])
    logs = point.log_likelihood(np.array([[2, -1], [-1, 5], [-1, -1]]))
    np.testing.assert_allclose(logs[:, 0], stats.poisson.logpmf(2, [0.5, 8.0]))
    np.testing.assert_allclose(logs[:, 1], stats.poisson.logpmf(5, [3.0, 1.0]))
    np.testing.assert_array_equal(logs[:, 2], 0.0)
    sums = point.zeros()
    point.accumulate(np.array([[2, -1], [-1, 5], [-1, -1], [1, 1]]), np.full((2, 4), 0.5), sums)
    np.testing.assert_allclose(sums.weight, 1.0)
    np.testing.assert_allclose(sums.total, [[1.5, 3.0]] * 2)


def test_missing_is_written_as_nan_or_as_minus_one_alike() -> None:
    point = gamma_rates().predictive()
    coded, floating = np.array([[2, -1], [-1, 5]]), np.array([[2, np.nan], [np.nan, 5]])
    np.testing.assert_array_equal(point.log_likelihood(coded), point.log_likelihood(floating))


def test_all_kinds_of_numbers_are_read_alike() -> None:
    point = Poisson.from_parameters([[0.5, 3.0], [8.0, 1.0]])
    expected = point.log_likelihood(COUNTS)
    for kind in (np.uint8, np.int16, np.float32, np.uint64):
        np.testing.assert_allclose(point.log_likelihood(COUNTS.astype(kind)), expected)
        column = COUNTS[:, 0].repeat(9).astype(kind)
        laws.scaled_likelihoods_tell_the_same(Poisson.from_parameters([0.5, 8.0]), column)


def test_scaled_likelihoods_of_one_column_with_counts_of_any_size() -> None:
    point = Poisson.from_parameters([0.0, 3.0, 1000.0])
    for column in (np.zeros(0, dtype=int), np.array([5000, 0, -1]), np.array([0, 1, 2, -1] * 8), np.full(4, -1)):
        laws.scaled_likelihoods_tell_the_same(point, column)


def test_divergence_is_the_integral_of_the_density_ratio() -> None:
    ours, theirs = gamma_rates(), GammaRates(np.array([[1.0, 2.5]] * 2), np.array([[0.7, 0.7]] * 2))

    def divergence(a: float, b: float, a0: float, b0: float) -> float:
        p, q = stats.gamma(a, scale=1 / b), stats.gamma(a0, scale=1 / b0)
        return float(integrate.quad(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), 0, p.isf(1e-14), epsabs=1e-12)[0])

    parts = zip(*(table.ravel() for table in (ours.shape, ours.rate, theirs.shape, theirs.rate)), strict=True)
    assert ours.kl(theirs) == pytest.approx(sum(divergence(*part) for part in parts), rel=1e-6)


def test_log_density_is_that_of_scipy_up_to_a_constant() -> None:
    prior, rng = gamma_rates(), np.random.default_rng(0)
    first, second = prior.sample(rng), prior.sample(rng)
    expected = stats.gamma.logpdf([first.rates, second.rates], prior.shape, scale=1 / prior.rate).sum(axis=(1, 2))
    assert prior.log_density(first) - prior.log_density(second) == pytest.approx(expected[0] - expected[1])


def test_draws_of_rates_have_the_distributions_mean() -> None:
    prior, rng = gamma_rates(), np.random.default_rng(0)
    laws.assert_mean(np.array([prior.sample(rng).rates for _ in range(4000)]), prior.mean().rates)


def test_draws_of_counts_have_the_rates_as_mean() -> None:
    point, rng = Poisson.from_parameters([[0.5, 3.0], [8.0, 0.0]]), np.random.default_rng(0)
    counts = point.sample(np.repeat([0, 1], 4000), rng)
    laws.assert_mean(counts.reshape(2, 4000, 2).swapaxes(0, 1), point.expectation())
    assert counts.dtype == np.int64


def test_flat_prior_gives_the_maximum_likelihood_estimate() -> None:
    data = Sequences(COUNTS)
    mode = laws.updated(Poisson().prior(data, 1, flat=True), COUNTS).mode()
    np.testing.assert_allclose(mode.rates, [COUNTS.mean(axis=0)])


def test_flat_prior_allows_a_rate_of_zero() -> None:
    values = np.array([[0, 1], [0, 2]])
    posterior = laws.updated(Poisson().prior(Sequences(values), 1, flat=True), values)
    np.testing.assert_allclose(posterior.mode().rates, [[0.0, 1.5]])
    assert np.isfinite(posterior.mode().log_likelihood(values)).all()
    assert Poisson().prior(Sequences(values), 1, flat=True).log_density(posterior.mode()) == 0.0


def test_a_state_without_data_under_a_flat_prior_is_as_all_states_together() -> None:
    prior = Poisson().prior(Sequences(COUNTS), 3, flat=True)
    sums = prior.mean().zeros()
    prior.mean().accumulate(COUNTS, np.eye(3)[:, [0, 0, 0, 1, 1, 1]], sums)
    np.testing.assert_allclose(prior.update(sums).mode().rates[2], COUNTS.mean(axis=0))
    assert prior.mode().not_finite() is None
    assert prior.mean().not_finite() is None


def test_default_prior_expects_the_mean_of_each_column_and_is_worth_one_count() -> None:
    values = COUNTS.astype(float)
    values[1] = np.nan
    prior = Poisson().prior(Sequences(values), 2, flat=False)
    np.testing.assert_allclose(prior.mean().rates, [np.nanmean(values, axis=0)] * 2)
    np.testing.assert_allclose(prior.shape, 1.0)


def test_default_prior_of_a_column_of_zeros_is_proper() -> None:
    prior = Poisson().prior(Sequences(np.zeros((50, 1))), 2, flat=False)
    np.testing.assert_allclose(prior.mean().rates, 0.02)


def test_given_hyperparameters_are_kept() -> None:
    data = Sequences(COUNTS)
    prior = Poisson(shape=[2.0, 3.0], rate=[[1.0, 2.0], [3.0, 4.0]]).prior(data, 2, flat=True)
    np.testing.assert_allclose(prior.shape, [[2.0, 3.0]] * 2)
    np.testing.assert_allclose(prior.rate, [[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(Poisson(shape=2.0).prior(data, 2, flat=True).rate, 0.0)
    np.testing.assert_allclose(Poisson(shape=2.0).prior(data, 2, flat=False).mean().rates, [COUNTS.mean(axis=0)] * 2)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"shape": -1.0}, "shape must be positive"),
        ({"rate": "high"}, "rate must be a number"),
        ({"shape": [1.0, 2.0, 3.0]}, r"shape has shape \(3,\).*expected a number, \(2,\) or \(4, 2\)"),
    ],
)
def test_unusable_hyperparameters_are_named(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Poisson(**setting).prior(Sequences(COUNTS), 4, flat=False)


def test_maximum_likelihood_refuses_a_prior_without_a_mode() -> None:
    with pytest.raises(InputError, match="shape is 0.5.*EM"):
        Poisson(shape=0.5).prior(Sequences(COUNTS), 2, flat=True)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([[0, 1], [2, 3], [4, -2]]), "hold -2 at sequence 1, position 1, column 1"),
        (np.array([[0, 1], [2.5, 3], [4, 1]]), "hold 2.5 at sequence 1, position 0, column 0"),
        (np.array([[0, -1.0], [2, 3], [4, 1]]), "hold -1.0 at sequence 0, position 0, column 1"),
        (np.array([[0, np.inf], [2, 3], [4, 1]]), "hold inf at sequence 0, position 0, column 1"),
    ],
)
def test_what_is_not_a_count_is_named_and_located(values: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Poisson().check(Sequences(values, [0, 1, 3]))


def test_columns_are_called_by_their_names() -> None:
    with pytest.raises(InputError, match="column 'clicks'"):
        Poisson().check(Sequences(np.array([[0.5, 1.0]]), columns=["clicks", "views"]))


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float32])
def test_counts_pass_the_check(kind: type) -> None:
    Poisson().check(Sequences(COUNTS.astype(kind)))
    Poisson().check(Sequences(COUNTS[:, 0].astype(kind)))


def test_missing_counts_pass_the_check() -> None:
    Poisson().check(Sequences(np.array([3, -1, 0])))
    Poisson().check(Sequences(np.array([3.0, np.nan, 0.0])))


def test_features_have_no_gaps() -> None:
    features = Poisson().features(Sequences(np.array([[4.0, 1.0], [np.nan, 9.0], [16.0, 0.0]])), np.array([0, 1]))
    np.testing.assert_allclose(features, [[2.0, 1.0], [2.0, 3.0]])


@pytest.mark.parametrize("rates", [[[1.0, -1.0]], [[np.nan]], [[np.inf]], [[[1.0]]], []])
def test_rates_that_cannot_be_are_refused(rates: object) -> None:
    with pytest.raises(InputError, match="rates"):
        Poisson.from_parameters(rates)  # type: ignore[arg-type]


def test_marginals_are_the_distributions_of_the_columns() -> None:
    point = Poisson.from_parameters([[0.5, 0.25], [0.9, 0.0]])
    np.testing.assert_allclose(point.marginals().mean(), point.rates)


def test_number_of_free_parameters() -> None:
    assert Poisson.from_parameters(np.ones((3, 4))).n_free == 12


def test_specification_can_be_cloned() -> None:
    twin = clone(Poisson(shape=2.0, columns=["a"]))
    assert twin.get_params() == {"shape": 2.0, "rate": None, "columns": ["a"], "frozen": False}
