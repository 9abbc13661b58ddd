"""The page for those who come from hmmlearn names all of it, and what it says of equal answers is true."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain import EM, HMM, Categorical, DiagonalGaussian, Dirichlet, Gaussian, Poisson

hmmlearn = pytest.importorskip("hmmlearn.hmm", reason="hmmlearn is not installed")
vhmm = pytest.importorskip("hmmlearn.vhmm", reason="hmmlearn is not installed")

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "from-hmmlearn.md").read_text(encoding="utf8")
K, D, W = 3, 2, 5
LENGTHS = [150, 1, 49]
ITERATIONS = 15


def public_classes() -> list[type]:
    """The classes that hmmlearn's two modules define themselves."""
    return [
        kind
        for module in (hmmlearn, vhmm)
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if kind.__module__ == module.__name__ and not name.startswith("_")
    ]


def is_named(name: str) -> bool:
    return f"`{name}`" in PAGE or f"`{name}(" in PAGE


@pytest.mark.parametrize("kind", public_classes(), ids=lambda kind: kind.__name__)
def test_the_page_names_every_class_argument_and_method(kind: type) -> None:
    arguments = list(inspect.signature(kind).parameters)
    methods = [name for name in dir(kind) if not name.startswith("_")]
    assert [name for name in [kind.__name__, *arguments, *methods] if not is_named(name)] == []


def test_there_are_seven_classes() -> None:
    assert len(public_classes()) == 7


def symbols(rng: np.random.Generator) -> tuple[Any, Any, Any, dict[str, Any]]:
    table = rng.dirichlet(np.ones(W), K)
    theirs = hmmlearn.CategoricalHMM(**settings(n_features=W))
    return rng.integers(0, W, (sum(LENGTHS), 1)), Categorical.from_parameters(table), theirs, {"emissionprob_": table}


def full(rng: np.random.Generator) -> tuple[Any, Any, Any, dict[str, Any]]:
    x = rng.normal(size=(sum(LENGTHS), D)) + rng.integers(0, 3, (sum(LENGTHS), 1))
    means, covariances = rng.normal(size=(K, D)), np.tile(np.eye(D), (K, 1, 1))
    theirs = hmmlearn.GaussianHMM(**settings(covariance_type="full", min_covar=0, covars_prior=0, covars_weight=0))
    return x, Gaussian.from_parameters(means, covariances), theirs, {"means_": means, "covars_": covariances}


def diagonal(rng: np.random.Generator) -> tuple[Any, Any, Any, dict[str, Any]]:
    x = rng.normal(size=(sum(LENGTHS), D)) + rng.integers(0, 3, (sum(LENGTHS), 1))
    means, variances = rng.normal(size=(K, D)), rng.uniform(0.5, 2.0, (K, D))
    theirs = hmmlearn.GaussianHMM(**settings(covariance_type="diag", min_covar=0, covars_prior=0))
    return x, DiagonalGaussian.from_parameters(means, variances), theirs, {"means_": means, "covars_": variances}


def counts(rng: np.random.Generator) -> tuple[Any, Any, Any, dict[str, Any]]:
    x = rng.poisson(rng.integers(1, 9, (sum(LENGTHS), 1)), (sum(LENGTHS), D))
    rates = rng.uniform(0.5, 8.0, (K, D))
    return x, Poisson.from_parameters(rates), hmmlearn.PoissonHMM(**settings()), {"lambdas_": rates}


def settings(**more: Any) -> dict[str, Any]:
    return dict(n_components=K, n_iter=ITERATIONS, tol=-np.inf, init_params="", **more)


@pytest.fixture(params=[symbols, full, diagonal, counts], ids=lambda make: make.__name__)
def pair(request: pytest.FixtureRequest, rng: np.random.Generator) -> tuple[Any, Any, HMM]:
    """Data, and a model of each package with the same parameters."""
    x, emission, theirs, parameters = request.param(rng)
    initial, transition = rng.dirichlet(np.ones(K)), rng.dirichlet(np.full(K, 5.0), K)
    for name, value in {"startprob_": initial, "transmat_": transition, **parameters}.items():
        setattr(theirs, name, value)
    theirs.n_features = W if "emissionprob_" in parameters else D
    return x, theirs, HMM.from_parameters(initial, transition, emission)


def test_em_from_the_same_start_reaches_the_same_log_likelihood(pair: tuple[Any, Any, HMM]) -> None:
    x, theirs, start = pair
    ours = HMM(K, start.family_, inference=EM(max_iter=ITERATIONS, tolerance=0.0), init=start).fit((x, LENGTHS))
    theirs.fit(x, LENGTHS)
    assert len(ours.trace_) == len(theirs.monitor_.history) == ITERATIONS
    assert np.allclose(ours.trace_.objective, theirs.monitor_.history, rtol=1e-6)
    assert np.isclose(ours.score((x, LENGTHS)), theirs.score(x, LENGTHS), rtol=1e-6)
    assert ours.score((x, LENGTHS)) > start.score((x, LENGTHS)) + 1.0


def test_the_same_parameters_give_the_same_path_and_posteriors(pair: tuple[Any, Any, HMM]) -> None:
    x, theirs, ours = pair
    log_probability, path = theirs.decode(x, LENGTHS, algorithm="viterbi")
    paths = ours.predict((x, LENGTHS), decoding="viterbi")
    assert np.isclose(ours.score((x, LENGTHS), states=paths), log_probability, rtol=1e-9)
    as_probable = np.isclose(ours.score((x, LENGTHS), states=np.split(path, np.cumsum(LENGTHS)[:-1])), log_probability)
    # Symbols and moves can be exchanged without a change of the product, so that several paths may be the best.
    assert as_probable if isinstance(ours.family_, Categorical) else np.array_equal(np.concatenate(paths), path)
    found, posteriors = theirs.score_samples(x, LENGTHS)
    assert np.allclose(np.concatenate(ours.predict_proba((x, LENGTHS))), posteriors, atol=1e-9)
    assert np.isclose(ours.score((x, LENGTHS)), found, rtol=1e-9)


def test_criteria_count_the_same_parameters(rng: np.random.Generator) -> None:
    x, emission, theirs, parameters = symbols(rng)
    chain = rng.dirichlet(np.ones(K)), rng.dirichlet(np.full(K, 5.0), K)
    theirs.startprob_, theirs.transmat_, theirs.emissionprob_ = *chain, parameters["emissionprob_"]
    theirs.fit(x, LENGTHS)
    start = HMM.from_parameters(*chain, emission)
    ours = HMM(K, start.family_, inference=EM(max_iter=ITERATIONS, tolerance=0.0), init=start).fit((x, LENGTHS))
    assert np.isclose(ours.aic((x, LENGTHS)), theirs.aic(x, LENGTHS))
    assert np.isclose(ours.bic((x, LENGTHS)), theirs.bic(x, LENGTHS))


def test_priors_of_counts_carry_over_where_there_is_one_state(rng: np.random.Generator) -> None:
    x = rng.poisson(3.0, (30, D))
    theirs = hmmlearn.PoissonHMM(1, lambdas_prior=4.0, lambdas_weight=20.0, n_iter=2).fit(x)
    ours = HMM(1, Poisson(shape=5.0, rate=20.0), inference=EM(max_iter=5)).fit(x)
    assert np.allclose(ours.emission_.rates, theirs.lambdas_)


def test_what_is_frozen_or_given_is_not_learned(rng: np.random.Generator) -> None:
    x, emission, _, parameters = symbols(rng)
    initial, transition = rng.dirichlet(np.ones(K)), rng.dirichlet(np.full(K, 5.0), K)
    start = HMM.from_parameters(initial, transition, emission)
    few = EM(max_iter=5, tolerance=0.0)
    moves = HMM(K, Categorical(frozen=True), Dirichlet(initial=initial), few, init=start).fit((x, LENGTHS))
    assert np.allclose(moves.emission_.probabilities, parameters["emissionprob_"])
    assert np.allclose(moves.initial_, initial)
    assert not np.allclose(moves.transition_, transition)
    table = HMM(K, Categorical(), Dirichlet(frozen=True), few, init=start).fit((x, LENGTHS))
    assert np.allclose(table.transition_, transition)
    assert not np.allclose(table.emission_.probabilities, parameters["emissionprob_"])
