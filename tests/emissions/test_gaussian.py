"""Gaussian vectors: likelihoods, sums, posteriors, and the floor of their covariances."""

from __future__ import annotations

import dataclasses
from typing import Any

import emission_laws as laws
import numpy as np
import pytest
from gaussian_examples import NAN, random_niw, random_parameters
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from subchain.data.sequences import Sequences
from subchain.emissions.gaussian import Gaussian, GaussianParameters, NormalInverseWishart
from subchain.errors import InferenceError, InputError

# ---- likelihoods -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [1, 2, 3, 4, 5, 6, 7, 11, 18])
@pytest.mark.parametrize("n", [1, 5, 333, 700])
def test_log_likelihood_is_that_of_scipy(n_features: int, n: int) -> None:
    parameters = random_parameters(n_features, 3, n_features)
    values = np.random.default_rng(1).normal(size=(n, n_features)) * 3.0
    expected = [
        stats.multivariate_normal(mean, covariance).logpdf(values).reshape(n)
        for mean, covariance in zip(parameters.means, parameters.covariances, strict=True)
    ]
    np.testing.assert_allclose(parameters.log_likelihood(values), expected, rtol=1e-10)


@pytest.mark.parametrize("n_features", [1, 2, 3, 6])
def test_predictive_is_the_student_distribution_of_scipy(n_features: int) -> None:
    niw = random_niw(n_features, 2, n_features)
    values = np.random.default_rng(1).normal(size=(50, n_features)) * 3.0
    log_likelihood = niw.predictive().log_likelihood(values)
    for k in range(2):
        degrees = niw.degrees[k] - n_features + 1
        shape = niw.scale[k] * (niw.strength[k] + 1) / (niw.strength[k] * degrees)
        expected = stats.multivariate_t(niw.location[k], shape, degrees).logpdf(values)
        np.testing.assert_allclose(log_likelihood[k], expected, rtol=1e-10)


def test_predictive_of_many_data_is_the_gaussian_distribution() -> None:
    niw = dataclasses.replace(
        random_niw(0, 2, 3), strength=np.full(2, 1e9), degrees=np.full(2, 1e9), scale=np.array([np.eye(3)] * 2) * 1e9
    )
    values = np.random.default_rng(1).normal(size=(50, 3))
    np.testing.assert_allclose(
        niw.predictive().log_likelihood(values), niw.mean().log_likelihood(values), rtol=0.0, atol=1e-6
    )


@pytest.mark.parametrize("n_features", [1, 2, 3])
def test_every_law_of_families_holds(n_features: int) -> None:
    values = np.random.default_rng(5).normal(size=(7, n_features))
    laws.check_all(random_niw(n_features, 2, n_features), values)


def test_scalars_are_vectors_of_one_coordinate() -> None:
    laws.check_all(random_niw(3, 2, 1), np.random.default_rng(5).normal(size=7))
    parameters = Gaussian.from_parameters([0.0, 1.0], [1.0, 4.0])
    assert parameters.means.shape == (2, 1)
    expected = stats.norm.logpdf([[0.3, NAN, 2.0]], [[0.0], [1.0]], [[1.0], [2.0]])
    expected[:, 1] = 0.0
    np.testing.assert_allclose(parameters.log_likelihood(np.array([0.3, NAN, 2.0])), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.int64, np.uint16, np.bool_])
def test_numbers_of_any_type_give_the_same_as_doubles(dtype: Any) -> None:
    parameters = random_parameters(0, 2, 3)
    values = np.random.default_rng(1).integers(0, 2, (40, 3))
    marginals = laws.random_marginals(2, 40)
    sums, expected = parameters.zeros(), parameters.zeros()
    parameters.accumulate(values.astype(dtype), marginals, sums)
    parameters.accumulate(values.astype(np.float64), marginals, expected)
    laws.assert_same(sums, expected)
    np.testing.assert_array_equal(
        parameters.log_likelihood(values.astype(dtype)), parameters.log_likelihood(values.astype(np.float64))
    )


def test_minus_one_is_a_number_among_integers() -> None:
    parameters = random_parameters(0, 2, 2)
    values = np.array([[-1, -1]])
    np.testing.assert_allclose(parameters.log_likelihood(values), parameters.log_likelihood(values.astype(float)))
    assert (parameters.log_likelihood(values) != 0.0).all()


def test_views_of_larger_tables_are_read_right() -> None:
    parameters = random_parameters(0, 2, 2)
    table = np.random.default_rng(1).normal(size=(50, 5))
    np.testing.assert_array_equal(
        parameters.log_likelihood(table[::2, 1:4:2]), parameters.log_likelihood(table[::2, 1:4:2].copy())
    )


def test_observations_far_away_have_the_least_likelihood_in_all_states_but_the_nearest() -> None:
    parameters = Gaussian.from_parameters([[0.0], [1e3]], [[[1.0]], [[1.0]]])
    out = np.empty((2, 2))
    shift = parameters.scaled(np.array([0.0, 1e3]), out)
    np.testing.assert_allclose(out, [[1.0, np.exp(-700.0)], [np.exp(-700.0), 1.0]], rtol=1e-12)
    np.testing.assert_allclose(shift, stats.norm.logpdf(0.0))


def test_large_means_do_not_cost_digits() -> None:
    """About zero, the squares of these numbers would leave nothing of their spread."""
    rng = np.random.default_rng(0)
    values = 1e9 + rng.normal(size=(2000, 2))
    prior = Gaussian().prior(Sequences(values), 1, flat=True)
    posterior = laws.updated(prior, values)
    centered = values - 1e9
    np.testing.assert_allclose(posterior.mode().covariances[0], np.cov(centered.T, bias=True), rtol=1e-6)


def test_wrong_number_of_columns_is_refused() -> None:
    with pytest.raises(InputError, match="have 3 columns, but the parameters are for 2"):
        random_parameters(0, 2, 2).log_likelihood(np.zeros((4, 3)))


# ---- statistics and conjugacy ----------------------------------------------------------------------------------------


@given(st.integers(1, 9), st.integers(1, 5), st.integers(0, 700), st.integers(0, 99))
def test_statistics_are_weighted_moments(n_features: int, n_states: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, marginals = rng.normal(size=(n, n_features)), rng.random((n_states, n))
    parameters = random_parameters(seed, n_states, n_features)
    sums = parameters.zeros()
    parameters.accumulate(values, marginals, sums)
    shifted = values - parameters.origin
    np.testing.assert_allclose(sums.weight, marginals.sum(axis=1))
    np.testing.assert_allclose(sums.first, marginals @ shifted, atol=1e-9)
    np.testing.assert_allclose(sums.second, np.einsum("kn,ni,nj->kij", marginals, shifted, shifted), atol=1e-9)
    np.testing.assert_array_equal(sums.second, sums.second.transpose(0, 2, 1))


def test_posterior_is_that_of_the_textbook() -> None:
    prior, rng = random_niw(2, 2, 3), np.random.default_rng(0)
    values, marginals = rng.normal(size=(30, 3)), rng.random((2, 30))
    sums = prior.mean().zeros()
    prior.mean().accumulate(values, marginals, sums)
    posterior = prior.update(sums)
    for k in range(2):
        weight = marginals[k].sum()
        mean = marginals[k] @ values / weight
        scatter = (marginals[k, :, None] * (values - mean)).T @ (values - mean)
        gap = mean - prior.location[k]
        strength = prior.strength[k] + weight
        np.testing.assert_allclose(posterior.strength[k], strength)
        np.testing.assert_allclose(posterior.degrees[k], prior.degrees[k] + weight)
        np.testing.assert_allclose(posterior.location[k], prior.location[k] + weight / strength * gap)
        expected = prior.scale[k] + scatter + prior.strength[k] * weight / strength * np.outer(gap, gap)
        np.testing.assert_allclose(posterior.scale[k], expected)


def test_sums_about_another_origin_are_the_same_sums() -> None:
    """A start given by hand has its own origin; mixing its sums with those of the data's must be harmless."""
    near = random_parameters(0, 2, 3)
    far = dataclasses.replace(near, means=near.means + 5.0)
    values, marginals = np.random.default_rng(1).normal(size=(40, 3)), laws.random_marginals(2, 40)
    first, second = near.zeros(), far.zeros()
    near.accumulate(values, marginals, first)
    far.accumulate(values, marginals, second)
    laws.assert_same(second.about(near.origin), first)
    laws.assert_same(first + second, first.scale(2.0))
    laws.assert_same(first - second, near.zeros())
    prior = random_niw(0, 2, 3)
    laws.assert_same(prior.update(first), prior.update(second))
    far.accumulate(values, marginals, first)  # a likelihood adds to whatever sums it is given
    laws.assert_same(first, second.about(near.origin).scale(2.0))


def test_flat_prior_gives_maximum_likelihood() -> None:
    rng = np.random.default_rng(0)
    values, marginals = rng.normal(size=(60, 3)) + 7.0, laws.random_marginals(3, 60)
    prior = Gaussian().prior(Sequences(values), 3, flat=True)
    sums = prior.mode().zeros()
    prior.mode().accumulate(values, marginals, sums)
    mode = prior.update(sums).mode()
    for k in range(3):
        np.testing.assert_allclose(mode.means[k], np.average(values, axis=0, weights=marginals[k]))
        np.testing.assert_allclose(
            mode.covariances[k], np.cov(values.T, aweights=marginals[k], bias=True), rtol=1e-9, atol=1e-12
        )
    assert prior.log_density(mode) == 0.0


def test_states_without_data_get_the_datas_moments_under_a_flat_prior() -> None:
    values = np.random.default_rng(0).normal(size=(60, 2)) + 7.0
    prior = Gaussian().prior(Sequences(values), 2, flat=True)
    marginals = np.vstack((np.ones(60), np.zeros(60)))
    sums = prior.mode().zeros()
    prior.mode().accumulate(values, marginals, sums)
    for point in (prior.update(sums).mode(), prior.update(sums).mean()):
        np.testing.assert_allclose(point.means[1], values.mean(axis=0))
        np.testing.assert_allclose(point.covariances[1], np.cov(values.T, bias=True))


def test_flat_prior_is_refused_where_a_distribution_is_needed() -> None:
    prior = Gaussian().prior(Sequences(np.zeros((3, 2))), 2, flat=True)
    for ask in (prior.expected_log, prior.predictive, lambda: prior.sample(np.random.default_rng(0))):
        with pytest.raises(InferenceError, match="state 0 is improper"):
            ask()


def test_a_matrix_that_lost_positive_definiteness_is_named_by_its_state() -> None:
    niw = random_niw(0, 3, 2)
    niw.scale[1] = -np.eye(2)
    with pytest.raises(InferenceError, match="state 1 is not positive definite"):
        niw.expected_log().log_likelihood(np.zeros((1, 2)))


def test_divergence_is_that_of_draws() -> None:
    prior = random_niw(1, 2, 2)
    posterior = laws.updated(prior, np.random.default_rng(0).normal(size=(12, 2)))
    rng = np.random.default_rng(1)

    def log_density(niw: NormalInverseWishart, point: GaussianParameters) -> float:
        return sum(
            stats.invwishart(niw.degrees[k], niw.scale[k]).logpdf(point.covariances[k])
            + stats.multivariate_normal(niw.location[k], point.covariances[k] / niw.strength[k]).logpdf(point.means[k])
            for k in range(2)
        )

    draws = [posterior.sample(rng) for _ in range(1500)]
    gaps = np.array([log_density(posterior, point) - log_density(prior, point) for point in draws])
    assert abs(gaps.mean() - posterior.kl(prior)) < 5.0 * gaps.std() / np.sqrt(len(gaps))
    exact = log_density(posterior, draws[0]) - log_density(posterior, draws[1])
    assert posterior.log_density(draws[0]) - posterior.log_density(draws[1]) == pytest.approx(exact)


def test_draws_have_the_means_of_the_distribution() -> None:
    niw = random_niw(0, 2, 3)
    rng = np.random.default_rng(0)
    draws = [niw.sample(rng) for _ in range(4000)]
    laws.assert_mean(np.array([draw.means for draw in draws]), niw.mean().means)
    laws.assert_mean(np.array([draw.covariances for draw in draws]), niw.mean().covariances)


def test_observations_are_drawn_from_their_states() -> None:
    parameters = random_parameters(0, 2, 3)
    states = np.repeat([0, 1], 20_000)
    values = parameters.sample(states, np.random.default_rng(0))
    assert values.shape == (40_000, 3)
    for k in range(2):
        np.testing.assert_allclose(values[states == k].mean(axis=0), parameters.means[k], atol=0.06)
        np.testing.assert_allclose(np.cov(values[states == k].T), parameters.covariances[k], atol=0.2)


# ---- the floor -------------------------------------------------------------------------------------------------------


def test_collapsed_states_stop_at_the_floor() -> None:
    values = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 10.0, 1e-3]
    prior = Gaussian().prior(Sequences(values), 2, flat=True)
    marginals = np.zeros((2, 50))
    marginals[0, 0] = 1.0  # one point: no variance at all
    marginals[1, 1:] = 1.0
    sums = prior.mode().zeros()
    prior.mode().accumulate(values, marginals, sums)
    mode = prior.update(sums).mode()
    floor = 1e-6 * np.diagonal(prior.data_covariance)
    np.testing.assert_allclose(mode.covariances[0], np.diag(floor), rtol=1e-6, atol=1e-18)
    np.testing.assert_allclose(mode.covariances[1], np.cov(values[1:].T, bias=True))
    assert np.isfinite(mode.log_likelihood(values)).all()


def test_the_floor_is_the_best_covariance_above_it() -> None:
    rng = np.random.default_rng(0)
    prior = Gaussian().prior(Sequences(rng.normal(size=(100, 2))), 1, flat=True)
    direction = np.array([[1.0, 0.5]])
    values = rng.normal(size=(30, 1)) @ direction  # all on a line
    sums = prior.mode().zeros()
    prior.mode().accumulate(values, np.ones((1, 30)), sums)
    mode = prior.update(sums).mode()
    best = mode.log_likelihood(values).sum()
    unit = np.sqrt(1e-6 * np.diagonal(prior.data_covariance))
    assert np.linalg.eigvalsh(mode.covariances[0] / np.outer(unit, unit)).min() >= 1.0 - 1e-9
    for _ in range(300):
        root = rng.normal(size=(2, 2)) * rng.choice([1e-4, 1e-3, 1e-2])
        other = dataclasses.replace(mode, covariances=mode.covariances + root @ root.T)
        assert other.log_likelihood(values).sum() <= best + 1e-9
