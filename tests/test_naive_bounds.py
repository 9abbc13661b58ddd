"""Bounds, entropies and co-clustering against listed paths; and which inference comes closest to the posterior."""

from __future__ import annotations

import naive_bounds
import naive_collapsed as naive
import naive_cvi
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_collapsed import Chain, Marginals, Problem
from naive_problems import PASSES, problems, same_marginals, weighted_paths
from scipy.special import gammaln

# ---- how good marginals are ------------------------------------------------------------------------------------------


@given(problems(), st.integers(1, 6))
def test_the_bounds_lie_below_the_evidence(drawn: tuple[Problem, np.random.Generator], length: int) -> None:
    """Expected counts, then exact expectations, then the evidence."""
    problem, rng = drawn
    if (problem.alpha_rows == 0).any():
        length = len(max(problem.data, key=len))  # independent clusters believe in forbidden moves
    q = naive.cut(naive.random_marginals(problem, rng), length)
    posterior = naive.exact_posterior(*problem)
    plug_in, exact = naive_bounds.expected_bound(q, problem), naive_bounds.exact_bound(q, posterior)
    assert plug_in <= exact + 1e-10
    assert exact <= posterior.log_evidence + 1e-10


def test_the_bound_of_one_sequence_with_its_true_posterior_is_the_evidence() -> None:
    """Two states suffice for a Markov chain, so the posterior of a sequence of two is one of our chains."""
    problem = naive.symmetric([[0, 1]], 2, 2, 0.5, 0.3)
    posterior = naive.exact_posterior(*problem)
    q = [[Chain(posterior.marginals, posterior.probability.reshape(1, 2, 2))]]
    assert naive_bounds.exact_bound(q, posterior) == pytest.approx(posterior.log_evidence)
    assert naive_bounds.co_clustering_error(q, posterior) == pytest.approx(0.0, abs=1e-12)


def test_with_certain_states_both_bounds_are_the_joint() -> None:
    problem = naive.symmetric([[0, 1, 1], [1, 0]], 2, 2, 0.5, 0.3)
    paths = [[0, 1, 1], [1, 0]]
    certain = np.eye(2)
    q = [[Chain(certain[path], certain[path[:-1], :, None] * certain[path[1:], None])] for path in paths]
    joint = naive.log_joint(paths, *problem[:4])
    assert naive_bounds.expected_bound(q, problem) == pytest.approx(joint)
    assert naive_bounds.exact_bound(q, naive.exact_posterior(*problem)) == pytest.approx(joint)


@given(problems())
def test_variational_inference_never_lowers_the_bound_with_expected_counts(
    drawn: tuple[Problem, np.random.Generator],
) -> None:
    problem, rng = drawn
    q = naive.random_marginals(problem, rng)
    bounds = []
    for _ in range(6):
        bounds.append(naive_bounds.expected_bound(q, problem))
        q = naive_cvi.vi_pass(q, problem)
    assert np.diff(bounds).min() >= -1e-10


@given(problems(), st.integers(1, 6))
def test_entropy_and_co_clustering_are_those_of_the_listed_paths(
    drawn: tuple[Problem, np.random.Generator], length: int
) -> None:
    problem, rng = drawn
    q = naive.cut(naive.random_marginals(problem, rng), length)
    n_positions = sum(len(symbols) for symbols in problem.data)
    entropy, same, total = 0.0, np.zeros((n_positions, n_positions)), 0.0
    for p, paths in weighted_paths(q, problem):
        flat = np.concatenate(paths)
        entropy -= p * np.log(p)
        same += p * (flat[:, None] == flat)
        total += p
    assert total == pytest.approx(1.0)
    assert naive_bounds.entropy(q) == pytest.approx(entropy, abs=1e-10)
    assert naive_bounds.co_clustering(q) == pytest.approx(same, abs=1e-10)


def test_the_log_normaliser_agrees_with_gamma_functions() -> None:
    counts, alpha = np.array([2.0, 0.0, 1.5]), np.array([0.5, 0.0, 2.0])
    expected = gammaln(2.5) - gammaln(6.0) + gammaln(2.5) - gammaln(0.5) + gammaln(3.5) - gammaln(2.0)
    assert naive.log_polya(counts, alpha) == pytest.approx(expected)
    assert naive.log_polya(np.array([1.0, 1.0, 0.0]), alpha) == -np.inf


# ---- the claim -------------------------------------------------------------------------------------------------------


def drawn_from_the_prior(rng: np.random.Generator, alpha: float) -> Problem:
    """Four sequences of three symbols out of four, two states, parameters and data drawn from the prior."""
    initial, rows = rng.dirichlet(np.full(2, alpha)), rng.dirichlet(np.full(2, alpha), 2)
    emission = rng.dirichlet(np.full(4, alpha), 2)
    data = []
    for _ in range(4):
        states = [int(rng.choice(2, p=initial))]
        for _ in range(2):
            states.append(int(rng.choice(2, p=rows[states[-1]])))
        data.append([int(rng.choice(4, p=emission[k])) for k in states])
    return naive.symmetric(data, 2, 4, alpha, alpha)


def converged(step: naive.Pass, q: Marginals, problem: Problem, passes: int = 200) -> Marginals:
    """Passes until the marginals stand still."""
    for _ in range(passes):
        old, q = q, step(q, problem)
        if same_marginals(old, q, 1e-5):
            break
    return q


def best_error(step: naive.Pass, starts: list[Marginals], problem: Problem, posterior: naive.Posterior) -> float:
    """Co-clustering error of the start that ends with the best bound."""
    ends = [converged(step, start, problem) for start in starts]
    return naive_bounds.co_clustering_error(max(ends, key=lambda q: naive_bounds.exact_bound(q, posterior)), posterior)


def mean_errors(alpha: float, draws: int) -> dict[str, float]:
    errors: dict[str, list[float]] = {"vi": [], "sequence": []}
    for seed in range(draws):
        rng = np.random.default_rng([seed, 2016])
        problem = drawn_from_the_prior(rng, alpha)
        posterior = naive.exact_posterior(*problem)
        starts = [naive.random_marginals(problem, rng) for _ in range(5)]
        for name, found in errors.items():
            found.append(best_error(PASSES[name], starts, problem, posterior))
    return {name: float(np.mean(found)) for name, found in errors.items()}


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "draws"), [(1.0, 30), (0.3, 15)])
def test_cvi_2_is_closer_to_the_posterior_than_variational_inference(alpha: float, draws: int) -> None:
    """Measured: .082 against .125, and .145 against .257; VI is not run to the very end, where it is no closer."""
    errors = mean_errors(alpha, draws)
    assert errors["sequence"] <= 0.75 * errors["vi"]
