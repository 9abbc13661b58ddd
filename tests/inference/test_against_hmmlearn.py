"""The same start, the same data: our iterations and hmmlearn's must stay together."""

import numpy as np
import pytest

from subchain import EM, HMM, VI, Categorical, DiagonalGaussian, Dirichlet, Gaussian, Poisson

hmmlearn = pytest.importorskip("hmmlearn.hmm", reason="hmmlearn is not installed")
vhmm = pytest.importorskip("hmmlearn.vhmm", reason="hmmlearn is not installed")

LENGTHS = [173, 1, 59, 400, 2]
ITERATIONS = 10
K, D, W = 4, 3, 7


def start(rng):
    return rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K) * 5, K)


def run_theirs(theirs, x, initial, transition):
    theirs.startprob_, theirs.transmat_ = initial, transition
    theirs.fit(x, LENGTHS)
    return theirs


def run_ours(family, parameters, x, initial, transition):
    begin = HMM.from_parameters(initial, transition, parameters)
    model = HMM(K, family, inference=EM(max_iter=ITERATIONS, tolerance=0.0), init=begin)
    return model.fit((x, LENGTHS))


def settings(**more):
    return dict(n_components=K, n_iter=ITERATIONS, tol=-np.inf, init_params="", **more)


def compare_chains(ours, theirs):
    assert np.allclose(ours.initial_, theirs.startprob_, atol=1e-6)
    assert np.allclose(ours.transition_, theirs.transmat_, atol=1e-6)


def test_em_with_symbols(rng):
    x = rng.integers(0, W, sum(LENGTHS))
    initial, transition = start(rng)
    table = rng.dirichlet(np.ones(W), K)
    theirs = hmmlearn.CategoricalHMM(**settings(n_features=W))
    theirs.emissionprob_ = table
    run_theirs(theirs, x[:, None], initial, transition)
    ours = run_ours(Categorical(n_categories=W), Categorical.from_parameters(table), x, initial, transition)
    compare_chains(ours, theirs)
    assert np.allclose(ours.emission_.probabilities, theirs.emissionprob_, atol=1e-6)
    assert np.isclose(ours.score((x, LENGTHS)), theirs.score(x[:, None], LENGTHS), rtol=1e-9)


def test_em_with_full_covariances(rng):
    x = rng.normal(size=(sum(LENGTHS), D)) @ rng.normal(size=(D, D)) + rng.integers(0, 3, (sum(LENGTHS), 1))
    initial, transition = start(rng)
    means, covariances = rng.normal(size=(K, D)), np.array([np.eye(D) * s for s in (1.0, 2.0, 0.5, 3.0)])
    theirs = hmmlearn.GaussianHMM(
        **settings(covariance_type="full", min_covar=0.0, covars_prior=0.0, covars_weight=0.0)
    )
    theirs.means_, theirs.covars_ = means, covariances
    run_theirs(theirs, x, initial, transition)
    ours = run_ours(Gaussian(), Gaussian.from_parameters(means, covariances), x, initial, transition)
    compare_chains(ours, theirs)
    assert np.allclose(ours.emission_.means, theirs.means_, atol=1e-6)
    assert np.allclose(ours.emission_.covariances, theirs.covars_, atol=1e-6)


def test_em_with_diagonal_covariances(rng):
    x = rng.normal(size=(sum(LENGTHS), D)) + rng.integers(0, 3, (sum(LENGTHS), 1))
    initial, transition = start(rng)
    means, variances = rng.normal(size=(K, D)), rng.uniform(0.5, 2.0, (K, D))
    theirs = hmmlearn.GaussianHMM(
        **settings(covariance_type="diag", min_covar=0.0, covars_prior=0.0, covars_weight=1.0)
    )
    theirs.means_, theirs.covars_ = means, variances
    run_theirs(theirs, x, initial, transition)
    ours = run_ours(DiagonalGaussian(), DiagonalGaussian.from_parameters(means, variances), x, initial, transition)
    compare_chains(ours, theirs)
    assert np.allclose(ours.emission_.means, theirs.means_, atol=1e-6)
    assert np.allclose(ours.emission_.variances, [np.diag(c) for c in theirs.covars_], atol=1e-6)


def test_em_with_counts(rng):
    x = rng.poisson(rng.integers(1, 9, (sum(LENGTHS), 1)), (sum(LENGTHS), D))
    initial, transition = start(rng)
    rates = rng.uniform(0.5, 8.0, (K, D))
    theirs = hmmlearn.PoissonHMM(**settings())
    theirs.lambdas_ = rates
    run_theirs(theirs, x, initial, transition)
    ours = run_ours(Poisson(), Poisson.from_parameters(rates), x, initial, transition)
    compare_chains(ours, theirs)
    assert np.allclose(ours.emission_.rates, theirs.lambdas_, atol=1e-6)


def converged(model, x):
    return model.fit((x, LENGTHS)).posterior_


def test_the_fixed_point_of_variational_inference_with_symbols(rng):
    states = np.repeat(rng.integers(0, 2, 128), 5)[: sum(LENGTHS)]
    x = np.where(rng.random(sum(LENGTHS)) < 0.85, states, 2)
    theirs = vhmm.VariationalCategoricalHMM(
        2, startprob_prior=1.0, transmat_prior=1.0, emissionprob_prior=1.0, n_iter=2000, tol=1e-12, random_state=0
    ).fit(x[:, None], LENGTHS)
    ours = HMM(
        2,
        Categorical(1.0),
        transition=Dirichlet(1.0),
        inference=VI(max_iter=5000, tolerance=1e-15),
        random_state=0,
    )
    posterior = converged(ours, x)
    found = posterior.emission.concentration.T
    order = [int(np.abs(found - row).sum(axis=1).argmin()) for row in theirs.emissionprob_posterior_]
    assert sorted(order) == [0, 1]
    assert np.allclose(found[order], theirs.emissionprob_posterior_, rtol=1e-3)
    assert np.allclose(posterior.chain.rows.concentration[np.ix_(order, order)], theirs.transmat_posterior_, rtol=1e-3)
    assert np.allclose(posterior.chain.initial.concentration[order], theirs.startprob_posterior_, rtol=1e-3)


def test_the_fixed_point_of_variational_inference_with_full_covariances(rng):
    states = np.repeat(rng.integers(0, 2, 128), 5)[: sum(LENGTHS)]
    x = rng.normal(size=(sum(LENGTHS), 2)) + 4.0 * states[:, None]
    mean, scale = x.mean(axis=0), np.eye(2)
    theirs = vhmm.VariationalGaussianHMM(
        2,
        covariance_type="full",
        startprob_prior=1.0,
        transmat_prior=1.0,
        means_prior=np.tile(mean, (2, 1)),
        beta_prior=np.full(2, 0.5),
        dof_prior=np.full(2, 4.0),
        scale_prior=np.tile(scale, (2, 1, 1)),
        n_iter=2000,
        tol=1e-12,
        random_state=0,
    ).fit(x, LENGTHS)
    ours = HMM(
        2,
        Gaussian(mean=mean, mean_strength=0.5, degrees=4.0, scale=scale),
        transition=Dirichlet(1.0),
        inference=VI(max_iter=5000, tolerance=1e-15),
        random_state=0,
    )
    point = converged(ours, x).mean()
    order = [int(np.abs(point.emission.means - row).sum(axis=1).argmin()) for row in theirs.means_posterior_]
    assert sorted(order) == [0, 1]
    assert np.allclose(point.emission.means[order], theirs.means_posterior_, atol=1e-4)
    expected = theirs.scale_posterior_ / (theirs.dof_posterior_ - 2 - 1)[:, None, None]
    assert np.allclose(point.emission.covariances[order], expected, rtol=1e-3)
