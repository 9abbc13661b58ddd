from __future__ import annotations

import dataclasses
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
from subchain.emissions.diagonal_gaussian import DiagonalGaussian, DiagonalGaussianParameters, NormalInverseGamma
from subchain.errors import InferenceError, InputError

Array = NDArray[np.float64]
NAN = np.nan


def random_parameters(seed: int, n_states: int, n_features: int) -> DiagonalGaussianParameters:
    rng = np.random.default_rng(seed)
    return DiagonalGaussian.from_parameters(
        rng.normal(size=(n_states, n_features)), rng.uniform(0.3, 4.0, (n_states, n_features))
    )


def random_nig(seed: int, n_states: int, n_features: int) -> NormalInverseGamma:
    rng = np.random.default_rng(seed)
    shape = (n_states, n_features)
    return NormalInverseGamma(
        rng.normal(size=shape),
        rng.uniform(0.5, 3.0, shape),
        rng.uniform(2.5, 6.0, shape),
        rng.uniform(1.0, 9.0, shape),
        rng.normal(size=n_features),
        np.ones(n_features),
    )


def with_holes(values: Array, seed: int = 0) -> Array:
    """Values with about a third of the coordinates missing, one row entirely."""
    holes = np.random.default_rng(seed).random(values.shape) < 0.3
    holes[1] = True
    return np.where(holes, NAN, values)


# ---- likelihoods -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [1, 2, 3, 4, 5, 11])
@pytest.mark.parametrize("n", [1, 5, 700])
def test_log_likelihood_is_that_of_scipy(n_features: int, n: int) -> None:
    parameters = random_parameters(n_features, 3, n_features)
    values = with_holes(np.random.default_rng(1).normal(size=(max(n, 2), n_features)) * 3.0)[:n]
    marginals = stats.norm(parameters.means[:, None], np.sqrt(parameters.variances)[:, None])
    expected = np.nansum(marginals.logpdf(values), axis=2)
    np.testing.assert_allclose(parameters.log_likelihood(values), expected, rtol=1e-10, atol=1e-12)
    complete = np.nan_to_num(values)
    np.testing.assert_allclose(parameters.log_likelihood(complete), marginals.logpdf(complete).sum(axis=2), rtol=1e-10)


@pytest.mark.parametrize("same_degrees", [True, False])
@pytest.mark.parametrize("n_features", [1, 3, 8, 19])
def test_predictive_is_a_product_of_student_distributions(n_features: int, same_degrees: bool) -> None:
    nig = random_nig(n_features, 2, n_features)
    if same_degrees:
        nig.shape[:] = nig.shape[:, :1]
    values = with_holes(np.random.default_rng(1).normal(size=(50, n_features)) * 3.0)
    scale = np.sqrt(nig.scale * (nig.strength + 1.0) / (nig.shape * nig.strength))
    expected = stats.t.logpdf(values, 2.0 * nig.shape[:, None], nig.location[:, None], scale[:, None])
    np.testing.assert_allclose(
        nig.predictive().log_likelihood(values), np.nansum(expected, axis=2), rtol=1e-10, atol=1e-12
    )


def test_predictive_of_many_data_is_the_gaussian_distribution() -> None:
    many = np.full((2, 3), 1e9)
    nig = dataclasses.replace(random_nig(0, 2, 3), strength=many, shape=many, scale=2.0 * many)
    values = np.random.default_rng(1).normal(size=(50, 3))
    np.testing.assert_allclose(
        nig.predictive().log_likelihood(values), nig.mean().log_likelihood(values), rtol=0.0, atol=1e-5
    )


@pytest.mark.parametrize("n_features", [1, 2, 3])
def test_every_law_of_families_holds(n_features: int) -> None:
    laws.check_all(random_nig(n_features, 2, n_features), np.random.default_rng(5).normal(size=(7, n_features)))


def test_every_law_holds_with_missing_coordinates() -> None:
    laws.check_all(random_nig(0, 3, 4), with_holes(np.random.default_rng(5).normal(size=(9, 4))))


def test_every_law_holds_for_scalars() -> None:
    laws.check_all(random_nig(0, 3, 1), np.array([0.3, NAN, -1.0, 2.0, 0.5]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.int64, np.uint16, np.bool_])
def test_numbers_of_any_type_give_the_same_as_doubles(dtype: Any) -> None:
    parameters = random_parameters(0, 2, 3)
    values = np.random.default_rng(1).integers(0, 2, (40, 3))
    marginals = laws.random_marginals(2, 40)
    sums, expected = parameters.zeros(), parameters.zeros()
    parameters.accumulate(values.astype(dtype), marginals, sums)
    parameters.accumulate(values.astype(np.float64), marginals, expected)
    laws.assert_same(sums, expected)


def test_rows_without_any_value_say_exactly_nothing() -> None:
    parameters = random_parameters(0, 4, 3)
    assert (parameters.log_likelihood(np.full((2, 3), NAN)) == 0.0).all()
    sums = parameters.zeros()
    parameters.accumulate(np.full((2, 3), NAN), np.ones((4, 2)), sums)
    laws.assert_same(sums, parameters.zeros())


def test_large_means_do_not_cost_digits() -> None:
    values = 1e9 + np.random.default_rng(0).normal(size=(2000, 2))
    prior = DiagonalGaussian().prior(Sequences(values), 1, flat=True)
    np.testing.assert_allclose(laws.updated(prior, values).mode().variances[0], (values - 1e9).var(axis=0), rtol=1e-6)


def test_filling_takes_the_expected_values() -> None:
    parameters = DiagonalGaussian.from_parameters([[0.0, 1.0], [4.0, 5.0]], np.ones((2, 2)))
    filled = parameters.fill(np.array([[2.0, NAN]]), np.array([[0.25], [0.75]]))
    np.testing.assert_allclose(filled, [[2.0, 4.0]])
    np.testing.assert_array_equal(parameters.fill(np.array([[-1, 2]]), np.full((2, 1), 0.5)), [[-1, 2]])


# ---- statistics and conjugacy ----------------------------------------------------------------------------------------


@given(st.integers(1, 9), st.integers(1, 5), st.integers(2, 700), st.integers(0, 99))
def test_statistics_are_weighted_moments_of_what_is_known(n_features: int, n_states: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, marginals = with_holes(rng.normal(size=(n, n_features)), seed), rng.random((n_states, n))
    parameters = random_parameters(seed, n_states, n_features)
    sums = parameters.zeros()
    parameters.accumulate(values, marginals, sums)
    shifted = np.nan_to_num(values - parameters.origin)
    np.testing.assert_allclose(sums.weight, marginals @ ~np.isnan(values), atol=1e-9)
    np.testing.assert_allclose(sums.first, marginals @ shifted, atol=1e-9)
    np.testing.assert_allclose(sums.second, marginals @ shifted**2, atol=1e-9)


def test_posterior_is_that_of_the_textbook() -> None:
    prior, rng = random_nig(2, 2, 3), np.random.default_rng(0)
    values, marginals = rng.normal(size=(30, 3)), rng.random((2, 30))
    sums = prior.mean().zeros()
    prior.mean().accumulate(values, marginals, sums)
    posterior = prior.update(sums)
    weight = marginals.sum(axis=1, keepdims=True)
    mean = marginals @ values / weight
    scatter = np.einsum("kn,knd->kd", marginals, (values - mean[:, None]) ** 2)
    strength = prior.strength + weight
    np.testing.assert_allclose(posterior.strength, strength)
    np.testing.assert_allclose(posterior.shape, prior.shape + 0.5 * weight)
    np.testing.assert_allclose(posterior.location, (prior.strength * prior.location + weight * mean) / strength)
    gap = prior.strength * weight / strength * (mean - prior.location) ** 2
    np.testing.assert_allclose(posterior.scale, prior.scale + 0.5 * (scatter + gap))


def test_sums_about_another_origin_are_the_same_sums() -> None:
    near = random_parameters(0, 2, 3)
    far = dataclasses.replace(near, means=near.means + 5.0)
    values, marginals = with_holes(np.random.default_rng(1).normal(size=(40, 3))), laws.random_marginals(2, 40)
    first, second = near.zeros(), far.zeros()
    near.accumulate(values, marginals, first)
    far.accumulate(values, marginals, second)
    laws.assert_same(second.about(near.origin), first)
    laws.assert_same(first + second, first.scale(2.0))
    prior = random_nig(0, 2, 3)
    laws.assert_same(prior.update(first), prior.update(second))


def test_flat_prior_gives_maximum_likelihood() -> None:
    rng = np.random.default_rng(0)
    values, marginals = rng.normal(size=(60, 3)) + 7.0, laws.random_marginals(3, 60)
    prior = DiagonalGaussian().prior(Sequences(values), 3, flat=True)
    sums = prior.mode().zeros()
    prior.mode().accumulate(values, marginals, sums)
    mode = prior.update(sums).mode()
    for k in range(3):
        mean = np.average(values, axis=0, weights=marginals[k])
        np.testing.assert_allclose(mode.means[k], mean)
        np.testing.assert_allclose(mode.variances[k], np.average((values - mean) ** 2, axis=0, weights=marginals[k]))
    assert prior.log_density(mode) == 0.0


def test_coordinates_without_data_get_the_datas_moments_under_a_flat_prior() -> None:
    values = np.random.default_rng(0).normal(size=(60, 2)) + 7.0
    values[30:, 1] = NAN
    prior = DiagonalGaussian().prior(Sequences(values), 2, flat=True)
    marginals = np.zeros((2, 60))
    marginals[0, :30] = marginals[1, 30:] = 1.0  # the second state never sees the second column
    sums = prior.mode().zeros()
    prior.mode().accumulate(values, marginals, sums)
    for point in (prior.update(sums).mode(), prior.update(sums).mean()):
        np.testing.assert_allclose(point.means[1], [values[30:, 0].mean(), values[:30, 1].mean()])
        assert point.variances[1, 1] == pytest.approx(values[:30, 1].var())


def test_flat_prior_is_refused_where_a_distribution_is_needed() -> None:
    prior = DiagonalGaussian().prior(Sequences(np.zeros((3, 2))), 2, flat=True)
    for ask in (prior.expected_log, prior.predictive, lambda: prior.sample(np.random.default_rng(0))):
        with pytest.raises(InferenceError, match="state 0, column 0 is improper"):
            ask()


def test_divergence_is_that_of_draws() -> None:
    prior = random_nig(1, 2, 2)
    posterior = laws.updated(prior, np.random.default_rng(0).normal(size=(12, 2)))
    rng = np.random.default_rng(1)

    def log_density(nig: NormalInverseGamma, point: DiagonalGaussianParameters) -> float:
        of_variances = stats.invgamma.logpdf(point.variances, nig.shape, scale=nig.scale)
        of_means = stats.norm.logpdf(point.means, nig.location, np.sqrt(point.variances / nig.strength))
        return float((of_variances + of_means).sum())

    draws = [posterior.sample(rng) for _ in range(1500)]
    gaps = np.array([log_density(posterior, point) - log_density(prior, point) for point in draws])
    assert abs(gaps.mean() - posterior.kl(prior)) < 5.0 * gaps.std() / np.sqrt(len(gaps))
    exact = log_density(posterior, draws[0]) - log_density(posterior, draws[1])
    assert posterior.log_density(draws[0]) - posterior.log_density(draws[1]) == pytest.approx(exact)


def test_draws_have_the_means_of_the_distribution() -> None:
    nig = random_nig(0, 2, 3)
    rng = np.random.default_rng(0)
    draws = [nig.sample(rng) for _ in range(4000)]
    laws.assert_mean(np.array([draw.means for draw in draws]), nig.mean().means)
    laws.assert_mean(np.array([draw.variances for draw in draws]), nig.mean().variances)


def test_observations_are_drawn_from_their_states() -> None:
    parameters = random_parameters(0, 2, 3)
    states = np.repeat([0, 1], 20_000)
    values = parameters.sample(states, np.random.default_rng(0))
    for k in range(2):
        np.testing.assert_allclose(values[states == k].mean(axis=0), parameters.means[k], atol=0.06)
        np.testing.assert_allclose(values[states == k].var(axis=0), parameters.variances[k], rtol=0.05)


# ---- what users write ------------------------------------------------------------------------------------------------


def test_collapsed_states_stop_at_the_floor() -> None:
    values = np.random.default_rng(0).normal(size=(50, 2)) * [1.0, 1e-3]
    prior = DiagonalGaussian().prior(Sequences(values), 1, flat=True)
    sums = prior.mode().zeros()
    prior.mode().accumulate(values[:1], np.ones((1, 1)), sums)
    np.testing.assert_allclose(prior.update(sums).mode().variances[0], 1e-6 * values.var(axis=0))


def test_defaults_are_scaled_by_the_data() -> None:
    values = np.random.default_rng(0).normal(size=(500, 3)) @ np.diag([1.0, 10.0, 0.01]) + 5.0
    prior = DiagonalGaussian().prior(Sequences(values), 4, flat=False)
    np.testing.assert_allclose(prior.location, np.tile(values.mean(axis=0), (4, 1)))
    np.testing.assert_allclose(prior.mean().variances[3], 0.75 * values.var(axis=0))
    firm = DiagonalGaussian(shape=50.0).prior(Sequences(values), 4, flat=True)
    np.testing.assert_allclose(firm.mean().variances, prior.mean().variances)


def test_any_hyperparameter_makes_em_a_search_for_the_posterior_mode() -> None:
    data = Sequences(np.random.default_rng(0).normal(size=(50, 2)))
    for settings in ({"mean": 1.0}, {"mean_strength": 1.0}, {"shape": 9.0}, {"scale": 2.0}):
        assert (DiagonalGaussian(**settings).prior(data, 2, flat=True).strength > 0.0).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mean": [1.0, 2.0, 3.0]}, r"mean has shape \(3,\); expected a number, \(2,\) or \(4, 2\)"),
        ({"mean_strength": 0.0}, "mean_strength must be positive"),
        ({"shape": -1.0}, "shape must be positive"),
        ({"scale": np.ones((3, 2))}, r"scale has shape \(3, 2\)"),
    ],
)
def test_unusable_hyperparameters_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        DiagonalGaussian(**settings).prior(Sequences(np.zeros((5, 2))), 4, flat=False)


@pytest.mark.parametrize(
    ("means", "variances", "message"),
    [
        ([[0.0, 0.0]], [[1.0]], r"means have shape \(1, 2\) and variances \(1, 1\)"),
        ([[0.0], [0.0]], [[1.0], [0.0]], "state 1, column 0 has mean 0.0 and variance 0.0"),
        ([[NAN]], [[1.0]], "means must be finite"),
    ],
)
def test_unusable_parameters_are_refused(means: Any, variances: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DiagonalGaussian.from_parameters(means, variances)


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize(
    "values",
    [np.zeros((1, 2)), np.array([[1.0, NAN]]), np.full((4, 2), NAN), np.full((9, 2), 0.1), np.empty((0, 2))],
    ids=["one row", "half a row", "nothing known", "constant", "no rows"],
)
def test_nothing_is_singular_whatever_the_data(values: Array, flat: bool) -> None:
    prior = DiagonalGaussian().prior(Sequences(values), 3, flat=flat)
    posterior = laws.updated(prior, values)
    likelihoods: list[Any] = [posterior.mode(), posterior.mean()]
    if not flat:
        likelihoods += [posterior.expected_log(), posterior.predictive()]
    assert posterior.not_finite() is None
    for likelihood in likelihoods:
        assert np.isfinite(likelihood.log_likelihood(np.array([[0.0, 0.0], [NAN, 1.0]]))).all()


def test_parameters_report_their_size_and_marginals() -> None:
    parameters = random_parameters(0, 4, 3)
    assert parameters.n_free == 4 * 6
    np.testing.assert_array_equal(parameters.expectation(), parameters.means)
    np.testing.assert_allclose(parameters.marginals().var(), parameters.variances)
    assert DiagonalGaussian.parameters_type is DiagonalGaussianParameters
    assert clone(DiagonalGaussian(shape=3.0, columns=[1])).get_params()["columns"] == [1]
