"""Normal pseudo-residuals: what they are by definition, and how they are distributed under the true model."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from scipy import stats
from small_models import FAMILIES, draw, emission, model_of, sparse_model, steep_model, with_holes

from subchain import HMM, Categorical, Gaussian, Poisson, Product
from subchain.data import is_missing
from subchain.emissions.base import Parameters
from subchain.errors import ImpossibleSequenceError, InputError


def state_weights(model: HMM, x: Any, t: int, kind: str) -> np.ndarray:
    """Probabilities of the states at a position given other observations, by a pass without the position's own."""
    logs = model.emission_.log_likelihood(np.asarray(x)).T.copy()
    logs[t if kind == "ordinary" else slice(t, None)] = 0.0
    return np.asarray(naive.marginals(logs, model.initial_, model.transition_).smoothed[t])


def cdf(parameters: Any, column: int, value: float) -> np.ndarray:
    """P(X <= value) of a column in each state, by the definition of the family."""
    if hasattr(parameters, "parts"):
        for part, columns in zip(parameters.parts.values(), parameters.layout.slots(), strict=True):
            if column in columns:
                return cdf(part, int(np.flatnonzero(columns == column)[0]), value)
    if hasattr(parameters, "covariances"):
        return stats.norm.cdf(value, parameters.means[:, column], np.sqrt(parameters.covariances[:, column, column]))
    if hasattr(parameters, "variances"):
        return stats.norm.cdf(value, parameters.means[:, column], np.sqrt(parameters.variances[:, column]))
    if hasattr(parameters, "rates"):
        return stats.poisson.cdf(value, parameters.rates[:, column])
    if parameters.expectation().shape[1] == 4:  # symbols
        return parameters.probabilities[:, : int(value) + 1].sum(axis=1)
    return stats.bernoulli.cdf(value, parameters.probabilities[:, column])


def is_whole(parameters: Parameters, column: int) -> bool:
    """Whether a column of a model of `small_models` holds whole numbers."""
    return column == 1 if hasattr(parameters, "parts") else not hasattr(parameters, "means")


@pytest.mark.parametrize("kind", ["ordinary", "forecast"])
@pytest.mark.parametrize("family", FAMILIES)
def test_residuals_are_quantiles_of_the_distribution_given_other_observations(family: str, kind: str) -> None:
    model = model_of(family, n_jobs=1)
    x = with_holes(draw(model, 12))
    found = model.pseudo_residuals(x, kind)
    table = x.reshape(len(x), -1)
    residuals = [part.reshape(table.shape) for part in found]
    assert all(part.shape == x.shape for part in found)
    for t, column in np.ndindex(*table.shape):
        here = [part[t, column] for part in residuals]
        if is_missing(table)[t, column]:
            assert np.isnan(here).all()
            continue
        weights, value = state_weights(model, x, t, kind), table[t, column]
        upper = weights @ cdf(model.emission_, column, value)
        lower = weights @ cdf(model.emission_, column, value - 1) if is_whole(model.emission_, column) else upper
        np.testing.assert_allclose(stats.norm.cdf(here), [lower, (lower + upper) / 2, upper], atol=1e-12)


@pytest.mark.parametrize("kind", ["ordinary", "forecast"])
def test_residuals_of_the_true_model_are_standard_normal(kind: str) -> None:
    model = model_of("gaussian")
    residuals = model.pseudo_residuals(draw(model, 4000), kind)
    assert np.array_equal(residuals.lower, residuals.upper)
    for column in residuals.mid.T:
        assert stats.kstest(column, "norm").pvalue > 0.01


def test_forecast_residuals_of_the_true_model_are_independent() -> None:
    model = model_of("gaussian")
    first = model.pseudo_residuals(draw(model, 4000), "forecast").mid[:, 0]
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 3 / np.sqrt(len(first))


@pytest.mark.parametrize("kind", ["ordinary", "forecast"])
@pytest.mark.parametrize("family", ["poisson", "bernoulli", "categorical"])
def test_a_point_drawn_from_each_segment_is_standard_normal(family: str, kind: str) -> None:
    model = model_of(family)
    x = draw(model, 4000)
    residuals = model.pseudo_residuals(x, kind)
    lower, upper = (stats.norm.cdf(end).reshape(len(x), -1) for end in (residuals.lower, residuals.upper))
    points = lower + np.random.default_rng(17).random(lower.shape) * (upper - lower)
    assert (residuals.lower <= residuals.mid).all()
    assert (residuals.mid <= residuals.upper).all()
    for column in points.T:
        assert stats.kstest(column, "uniform").pvalue > 0.01


def test_residuals_show_a_wrong_model_and_an_outlier() -> None:
    counts = np.random.default_rng(0).negative_binomial(2, 0.1, 300)
    wrong = HMM.from_parameters([1.0], [[1.0]], Poisson.from_parameters([[counts.mean()]]))
    assert wrong.pseudo_residuals(counts).mid.std() > 2.0
    x = draw(model_of("gaussian"), 50)
    x[20] = 1e4
    residuals = model_of("gaussian").pseudo_residuals(x)
    assert np.isfinite(residuals.mid).all()
    assert np.abs(residuals.mid[:, 0]).argmax() == 20


def test_several_sequences_have_residuals_of_their_own() -> None:
    model = model_of("poisson", n_jobs=1)
    x = [draw(model, n, seed=n) for n in (7, 1, 30)]
    found = model.pseudo_residuals(x)
    for part, own in zip(x, found, strict=True):
        for ours, alone in zip(own, model.pseudo_residuals(part), strict=True):
            np.testing.assert_allclose(ours, alone)


def test_sequences_that_underflow_have_residuals_too() -> None:
    model = steep_model(n_jobs=1)
    for kind in ("ordinary", "forecast"):
        residuals = model.pseudo_residuals([0, 0, 2, 2], kind)
        for t, symbol in enumerate([0, 0, 2, 2]):
            upper = state_weights(model, [0, 0, 2, 2], t, kind) @ cdf(Padded(model.emission_), 0, symbol)
            assert stats.norm.cdf(residuals.upper[t]) == pytest.approx(min(upper, 1.0), abs=1e-12)


class Padded:
    """Symbols of a model with a fourth one that never occurs, as `cdf` takes them."""

    def __init__(self, parameters: Any) -> None:
        self.probabilities = np.pad(parameters.probabilities, ((0, 0), (0, 1)))

    def expectation(self) -> np.ndarray:
        return self.probabilities


def test_columns_of_no_part_have_no_residuals() -> None:
    parts = Product.from_parameters(columns={"a": 0, "b": 2}, a=Gaussian.from_parameters([[0.0]], [[[1.0]]]),
                                    b=Categorical.from_parameters([[0.5, 0.5]]))  # fmt: skip
    model = HMM.from_parameters([1.0], [[1.0]], parts)
    residuals = model.pseudo_residuals(np.array([[1.0, 7.0, 0.0], [-2.0, 7.0, 1.0]])).mid
    np.testing.assert_allclose(residuals[:, 0], [1.0, -2.0])
    assert np.isnan(residuals[:, 1]).all()
    np.testing.assert_allclose(residuals[:, 2], stats.norm.ppf([0.25, 0.75]))


def test_mistakes_are_explained() -> None:
    with pytest.raises(InputError, match="unknown kind of pseudo-residuals 'forecasts'.*Did you mean 'forecast'"):
        sparse_model().pseudo_residuals([0, 1], "forecasts")
    with pytest.raises(ImpossibleSequenceError, match="probability zero"):
        sparse_model().pseudo_residuals([2, 0, 1, 0])


@pytest.mark.parametrize("family", FAMILIES)
def test_the_three_tails_of_every_family_add_up_to_one(family: str) -> None:
    parameters = emission(family)
    x = draw(model_of(family), 30)
    tails = parameters.log_tails(x)
    assert tails.shape == (3, 30, 3, x.reshape(30, -1).shape[1])
    np.testing.assert_allclose(np.exp(tails).sum(axis=0), 1.0)
