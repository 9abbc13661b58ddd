from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import emission_laws as laws
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import clone

from subchain.data.sequences import Sequences
from subchain.emissions.diagonal_gaussian import DiagonalGaussian
from subchain.emissions.gaussian import Gaussian, GaussianParameters, NormalInverseWishart
from subchain.errors import InferenceError, InputError

Array = NDArray[np.float64]
NAN = np.nan


def random_covariances(rng: np.random.Generator, n_states: int, n_features: int) -> Array:
    roots = rng.normal(size=(n_states, n_features, n_features))
    return roots @ roots.transpose(0, 2, 1) + 0.3 * np.eye(n_features)


def random_parameters(seed: int, n_states: int, n_features: int) -> GaussianParameters:
    rng = np.random.default_rng(seed)
    return Gaussian.from_parameters(
        rng.normal(size=(n_states, n_features)), random_covariances(rng, n_states, n_features)
    )


def random_niw(seed: int, n_states: int, n_features: int) -> NormalInverseWishart:
    rng = np.random.default_rng(seed)
    return NormalInverseWishart(
        rng.normal(size=(n_states, n_features)),
        rng.uniform(0.5, 3.0, n_states),
        n_features + rng.uniform(3.0, 8.0, n_states),
        random_covariances(rng, n_states, n_features),
        rng.normal(size=n_features),
        np.eye(n_features),
    )


def with_holes(values: Array, seed: int = 0) -> Array:
    """Values with about a third of the coordinates missing, one row entirely."""
    holes = np.random.default_rng(seed).random(values.shape) < 0.3
    holes[1] = True
    return np.where(holes, NAN, values)


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


def test_observations_far_away_have_zero_likelihood_in_all_states_but_the_nearest() -> None:
    parameters = Gaussian.from_parameters([[0.0], [1e3]], [[[1.0]], [[1.0]]])
    out = np.empty((2, 2))
    shift = parameters.scaled(np.array([0.0, 1e3]), out)
    np.testing.assert_array_equal(out, np.eye(2))
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


# ---- what users write ------------------------------------------------------------------------------------------------


def test_defaults_are_scaled_by_the_data() -> None:
    values = np.random.default_rng(0).normal(size=(500, 3)) @ np.diag([1.0, 10.0, 0.01]) + 5.0
    prior = Gaussian().prior(Sequences(values), 4, flat=False)
    np.testing.assert_allclose(prior.location, np.tile(values.mean(axis=0), (4, 1)))
    np.testing.assert_allclose(prior.mean().covariances[3], 0.75 * np.cov(values.T, bias=True))
    assert (prior.strength == 0.01).all()
    assert (prior.degrees == 5.0).all()
    firm = Gaussian(degrees=50.0).prior(Sequences(values), 4, flat=True)
    np.testing.assert_allclose(firm.mean().covariances, prior.mean().covariances)


def test_any_hyperparameter_makes_em_a_search_for_the_posterior_mode() -> None:
    data = Sequences(np.random.default_rng(0).normal(size=(50, 2)))
    for settings in ({"mean": 1.0}, {"mean_strength": 1.0}, {"degrees": 9.0}, {"scale": 2.0}):
        assert (Gaussian(**settings).prior(data, 2, flat=True).strength > 0.0).all()
    assert (Gaussian().prior(data, 2, flat=True).strength == 0.0).all()


def test_hyperparameters_come_in_several_shapes() -> None:
    data = Sequences(np.zeros((5, 2)))
    matrix = [[2.0, 0.5], [0.5, 1.0]]
    for scale, expected in ((3.0, np.eye(2) * 3.0), ([1.0, 2.0], np.diag([1.0, 2.0])), (matrix, matrix)):
        np.testing.assert_array_equal(Gaussian(scale=scale).prior(data, 3, flat=False).scale, [expected] * 3)
    prior = Gaussian(
        mean=[[1, 2], [3, 4], [5, 6]], mean_strength=[1, 2, 3], degrees=[4, 5, 6], scale=[matrix] * 3
    ).prior(data, 3, flat=False)
    np.testing.assert_array_equal(prior.location[2], [5.0, 6.0])
    np.testing.assert_array_equal(prior.degrees, [4.0, 5.0, 6.0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mean": [1.0, 2.0, 3.0]}, r"mean has shape \(3,\); expected a number, \(2,\) or \(4, 2\)"),
        ({"mean": NAN}, "mean must be finite"),
        ({"mean_strength": 0.0}, "mean_strength must be positive"),
        ({"degrees": 1.0}, "degrees must be more than 1 for 2 columns"),
        ({"degrees": "many"}, "degrees has shape"),
        ({"scale": np.ones((3, 3))}, r"scale has shape \(3, 3\)"),
        ({"scale": [[1.0, 2.0], [2.0, 1.0]]}, "not positive definite"),
        ({"scale": [[1.0, 0.5], [0.0, 1.0]]}, "not symmetric"),
        ({"scale": -1.0}, "not positive definite"),
        ({"scale": [1.0, 1.0, 1.0]}, "scale has shape"),
    ],
)
def test_unusable_hyperparameters_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Gaussian(**settings).prior(Sequences(np.zeros((5, 2))), 4, flat=False)


@pytest.mark.parametrize(
    ("means", "covariances", "message"),
    [
        ([[0.0, 0.0]], [[1.0, 1.0]], r"means have shape \(1, 2\) and covariances \(1, 2\)"),
        ([[0.0], [0.0]], [[[1.0]], [[-1.0]]], "state 1 are not positive definite"),
        ([[0.0, 0.0]], [[[1.0, 0.5], [0.0, 1.0]]], "state 0 are not symmetric"),
        ([[NAN]], [[[1.0]]], "must be finite"),
        (0.0, 1.0, "means have shape"),
    ],
)
def test_unusable_parameters_are_refused(means: Any, covariances: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Gaussian.from_parameters(means, covariances)


def test_data_that_cannot_be_gaussian_are_refused() -> None:
    family = Gaussian()
    family.check(Sequences(np.array([[1, -1], [2, 3]])))
    family.check(Sequences(np.array([NAN, 1.0])))
    with pytest.raises(InputError, match="infinite"):
        family.check(Sequences(np.array([1.0, np.inf])))
    with pytest.raises(InputError, match="sequence 1, position 1; its square"):
        family.check(Sequences(np.array([1.0, 2.0, 3.0, 1e200]), [0, 2, 4]))


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize(
    "values",
    [
        np.zeros((1, 2)),
        np.array([[1.0, NAN]]),
        np.full((4, 2), NAN),
        np.column_stack((np.full(30, 0.1), np.arange(30.0))),
        np.column_stack((np.arange(30.0), 2.0 * np.arange(30.0) + 1.0)),
        np.empty((0, 2)),
    ],
    ids=["one row", "half a row", "nothing known", "constant column", "dependent columns", "no rows"],
)
def test_nothing_is_singular_whatever_the_data(values: Array, flat: bool) -> None:
    prior = Gaussian().prior(Sequences(values), 3, flat=flat)
    posterior = laws.updated(prior, values)
    likelihoods = [posterior.mode(), posterior.mean()]
    if not flat:
        likelihoods += [posterior.expected_log(), posterior.predictive()]
    assert posterior.not_finite() is None
    for likelihood in likelihoods:
        assert np.isfinite(likelihood.log_likelihood(np.array([[0.0, 0.0], [NAN, 1.0]]))).all()


def test_features_are_standardised_and_complete() -> None:
    values = np.random.default_rng(0).normal(size=(400, 2)) * [1.0, 100.0] + 30.0
    values[3, 1] = NAN
    features = Gaussian().features(Sequences(values), np.arange(400))
    np.testing.assert_allclose(features.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(features.std(axis=0), 1.0, atol=0.01)
    assert features[3, 1] == 0.0
    assert Gaussian().features(Sequences(values[:, 0].astype(np.float16)), np.array([2, 5])).shape == (2, 1)


def test_parameters_report_their_size_and_marginals() -> None:
    parameters = random_parameters(0, 4, 3)
    assert parameters.n_free == 4 * (3 + 6)
    np.testing.assert_array_equal(parameters.expectation(), parameters.means)
    np.testing.assert_allclose(parameters.marginals().var(), np.diagonal(parameters.covariances, axis1=1, axis2=2))
    assert Gaussian.parameters_type is GaussianParameters


def test_family_survives_cloning_and_parameters_survive_pickling() -> None:
    family = clone(Gaussian(degrees=7.0, columns=["a", "b"], frozen=True))
    assert (family.degrees, family.columns, family.frozen) == (7.0, ["a", "b"], True)
    parameters = random_parameters(0, 2, 3)
    values = np.ones((2, 3))
    before = parameters.log_likelihood(values)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(parameters)).log_likelihood(values), before)


def test_with_one_column_full_and_diagonal_covariances_are_the_same_family() -> None:
    values = np.random.default_rng(0).normal(size=80) * 3.0 + 2.0
    values[5] = NAN
    for flat in (True, False):
        full = laws.updated(Gaussian().prior(Sequences(values), 2, flat=flat), values)
        diagonal = laws.updated(DiagonalGaussian().prior(Sequences(values), 2, flat=flat), values)
        names = ["mode"] if flat else ["mode", "mean", "expected_log", "predictive"]
        for name in names:
            np.testing.assert_allclose(
                getattr(full, name)().log_likelihood(values), getattr(diagonal, name)().log_likelihood(values)
            )
    prior = Gaussian().prior(Sequences(values), 2, flat=False)
    other = DiagonalGaussian().prior(Sequences(values), 2, flat=False)
    assert full.kl(prior) == pytest.approx(diagonal.kl(other))
