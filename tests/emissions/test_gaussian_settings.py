"""The Gaussian family as users write it: hyperparameters, parameters, and data that are refused."""

from __future__ import annotations

import pickle
from typing import Any

import emission_laws as laws
import numpy as np
import pytest
from gaussian_examples import NAN, Array, random_parameters
from sklearn.base import clone

from subchain.data.sequences import Sequences
from subchain.emissions.diagonal_gaussian import DiagonalGaussian
from subchain.emissions.gaussian import Gaussian, GaussianParameters
from subchain.errors import InputError

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
        ({"degrees": "many"}, "degrees must be a number"),
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
