"""Maximum likelihood of chains that begin in their stationary distribution."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from subchain import EM, HMM, Categorical, Dirichlet, banded
from subchain.errors import ConvergenceWarning
from subchain.numerics.stationary import stationary_distribution
from subchain.transitions.stationary_mode import TOO_MANY, StationaryRows


@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_is_that_of_finite_differences(seed):
    rng = np.random.default_rng(seed)
    free = np.array([[1, 1, 0, 1], [1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1]], dtype=bool)
    fixed = np.where(free, 0.0, 0.05 * (seed % 2))
    problem = StationaryRows(rng.exponential(20.0, (4, 4)) * free, free, fixed, rng.exponential(3.0, 4))
    weights = rng.normal(size=free.sum())
    gradient = approx_fprime(weights, lambda at: problem.loss(at)[0], 1e-7)
    np.testing.assert_allclose(problem.loss(weights)[1], gradient, atol=1e-4)


def direct_maximum(sequences, table, start):
    """The largest likelihood over transition matrices, by a search that knows nothing of expectations."""

    def loss(weights):
        transition = np.exp(weights.reshape(2, 2))
        transition /= transition.sum(axis=1, keepdims=True)
        total = 0.0
        for sequence in sequences:
            alpha = stationary_distribution(transition)
            for symbol in sequence:
                alpha = alpha * table[:, symbol]
                total -= np.log(alpha.sum())
                alpha = alpha @ transition / alpha.sum()
        return total

    return -min(minimize(loss, np.log(start).ravel() + shift, method="BFGS").fun for shift in (0.0, 0.1))


def test_em_reaches_the_largest_likelihood():
    """Many short sequences: how they begin counts as much as how they go on."""
    table = np.array([[0.95, 0.05], [0.1, 0.9]])
    emission = Categorical.from_parameters(table)
    truth = HMM.from_parameters([0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]], emission)
    sequences = [truth.sample(4, random_state=seed).observations for seed in range(100)]
    start = HMM.from_parameters([0.5, 0.5], [[0.6, 0.4], [0.5, 0.5]], emission)
    prior, inference = Dirichlet(initial="stationary"), EM(max_iter=500, tolerance=0.0)
    model = HMM(2, Categorical(frozen=True), prior, inference, init=start).fit(sequences)
    assert np.diff(model.trace_.objective).min() >= -1e-9
    assert model.score(sequences) == pytest.approx(direct_maximum(sequences, table, start.transition_), abs=1e-5)
    learned = HMM(2, Categorical(frozen=True), inference=inference, init=start).fit(sequences)
    assert learned.score(sequences) > model.score(sequences)  # one parameter more


def test_a_band_stays_a_band():
    rng = np.random.default_rng(1)
    prior = Dirichlet(mask=lambda n_states: banded(n_states, 1), initial="stationary")
    model = HMM(5, "gaussian", prior, EM(max_iter=30, tolerance=0.0), random_state=0, n_jobs=1)
    model.fit([rng.normal(size=(20, 1)) + np.arange(20)[:, None] // 4 for _ in range(5)])
    assert np.diff(model.trace_.objective).min() >= -1e-9 * abs(model.trace_.objective[-1])
    assert (model.transition_[~banded(5, 1)] == 0.0).all()
    np.testing.assert_allclose(model.initial_ @ model.transition_, model.initial_, atol=1e-9)


@pytest.mark.parametrize(("n_states", "known"), [(2, -342.3183), (3, -329.4603)])
def test_the_earthquakes_have_their_published_likelihoods(shared_data, n_states, known):
    """Zucchini & MacDonald, *Hidden Markov Models for Time Series*: Poisson, stationary, by direct maximisation."""
    x = np.loadtxt(shared_data / "tutorial" / "earthquakes.csv", delimiter=",", skiprows=1)[:, 1].astype(int)
    inference = EM(max_iter=2000, tolerance=1e-10)
    model = HMM(n_states, "poisson", Dirichlet(initial="stationary"), inference, init="context", random_state=0)
    assert model.fit(x).score(x) == pytest.approx(known, abs=2e-4)


@pytest.mark.parametrize("mask", [np.eye(4, dtype=bool), np.kron(np.eye(2), np.ones((2, 2))).astype(bool)])
def test_parts_that_never_meet_are_fitted(mask):
    """Such chains have several stationary distributions."""
    rng = np.random.default_rng(0)
    data = [rng.normal(size=(20, 1)) + 5 * (i % 2) for i in range(4)]
    model = HMM(
        4, "gaussian", Dirichlet(mask=mask, initial="stationary"), EM(max_iter=5, tolerance=0.0), random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="the chain has parts that never meet") as caught:
        model.fit(data)
    assert len(caught) == 1
    assert np.isfinite(model.score(data))
    assert (model.transition_[~mask] == 0.0).all()


def test_a_fit_of_many_states_says_that_it_is_approximate(monkeypatch):
    monkeypatch.setattr("subchain.transitions.dirichlet.MOST_DENSE", 2)
    x = np.random.default_rng(0).poisson(np.repeat([2.0, 9.0, 30.0], 20))
    model = HMM(3, "poisson", Dirichlet(initial="stationary"), EM(max_iter=5, tolerance=0.0), random_state=0)
    with pytest.warns(ConvergenceWarning, match="at most 1024 states") as caught:
        model.fit(x)
    assert len(caught) == 1
    assert [event.message for event in model.trace_.events].count(TOO_MANY) == 1
