"""The slow versions of collapsed inference against enumeration, and against one another."""

from __future__ import annotations

import naive_collapsed as naive
import naive_cvi
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_collapsed import Problem
from naive_problems import problems, same_marginals, split, weighted_paths

# ---- the exact posterior ---------------------------------------------------------------------------------------------


def test_one_state_and_one_symbol_after_another_is_polya_urn() -> None:
    problem = naive.symmetric([[0, 1, 0]], n_states=1, n_symbols=2, alpha=0.7, beta=0.5)
    assert naive.log_joint([[0, 0, 0]], *problem[:4]) == pytest.approx(np.log(0.5 * (0.5 / 2) * (1.5 / 3)))


def test_the_joint_is_the_chain_of_predictive_probabilities() -> None:
    problem = naive.symmetric([[0, 1], [1]], n_states=2, n_symbols=2, alpha=1.0, beta=2.0)
    chain = (1 / 2) * (1 / 2) * (2 / 3)  # the first state, the move from it, the second sequence's first state
    apart, one_state = naive.log_joint([[0, 1], [0]], *problem[:4]), naive.log_joint([[1, 1], [1]], *problem[:4])
    assert apart == pytest.approx(np.log(chain * (2 / 4) * (2 / 4) * (2 / 5)))
    assert one_state == pytest.approx(np.log(chain * (2 / 4) * (2 / 5) * (3 / 6)))


@given(problems())
def test_the_posterior_lists_what_the_joint_says(drawn: tuple[Problem, np.random.Generator]) -> None:
    problem, _ = drawn
    posterior = naive.exact_posterior(*problem)
    joint = [naive.log_joint(split(path, problem), *problem[:4]) for path in posterior.paths]
    assert posterior.log_joint == pytest.approx(np.array(joint), abs=1e-10)
    assert posterior.log_evidence == pytest.approx(np.log(np.exp(joint).sum()), abs=1e-10)
    assert posterior.probability.sum() == pytest.approx(1.0)
    assert np.diag(posterior.co_clustering) == pytest.approx(1.0)
    assert posterior.marginals.sum(axis=1) == pytest.approx(1.0)


@given(problems())
def test_a_missing_symbol_is_the_sum_over_all_symbols(drawn: tuple[Problem, np.random.Generator]) -> None:
    problem, _ = drawn
    if (problem.beta == 0).any(axis=0).any():
        return
    unseen = [list(symbols) for symbols in problem.data]
    unseen[-1][0] = -1
    evidence = []
    for symbol in range(len(problem.beta)):
        seen = [list(symbols) for symbols in unseen]
        seen[-1][0] = symbol
        evidence.append(naive.exact_posterior(seen, *problem[1:]).log_evidence)
    expected = np.logaddexp.reduce(evidence)
    assert naive.exact_posterior(unseen, *problem[1:]).log_evidence == pytest.approx(expected, abs=1e-10)


def test_legal_states_restrict_the_paths_and_soft_factors_weigh_them() -> None:
    legal = [np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[0.25, 1.0]])]
    problem = naive.symmetric([[0, 1], [1]], 2, 2, 0.4, 0.6)._replace(legal=legal)
    posterior = naive.exact_posterior(*problem)
    assert posterior.paths.tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1]]
    free = [naive.log_joint(split(path, problem), *problem[:4]) for path in posterior.paths]
    assert posterior.log_joint == pytest.approx(np.array(free) + np.log([0.25, 1.0, 0.25, 1.0]))


def test_too_many_paths_are_refused() -> None:
    problem = naive.symmetric([[0] * 13], 2, 2, 1.0, 1.0)
    with pytest.raises(ValueError, match="8192 joint paths are too many"):
        naive.exact_posterior(*problem)


# ---- Gibbs -----------------------------------------------------------------------------------------------------------


@given(problems())
def test_gibbs_conditional_is_a_ratio_of_joints(drawn: tuple[Problem, np.random.Generator]) -> None:
    problem, rng = drawn
    posterior = naive.exact_posterior(*problem)
    paths = split(rng.choice(posterior.paths, p=posterior.probability), problem)
    for i, symbols in enumerate(problem.data):
        for t in range(len(symbols)):
            formula = naive.gibbs_conditional(paths, problem, i, t)
            assert formula == pytest.approx(naive.gibbs_conditional_by_ratio(paths, problem, i, t), abs=1e-12)


@given(problems())
def test_gibbs_conditional_leaves_the_posterior_as_it_is(drawn: tuple[Problem, np.random.Generator]) -> None:
    problem, _ = drawn
    posterior = naive.exact_posterior(*problem)
    number = {tuple(path): m for m, path in enumerate(posterior.paths.tolist())}
    ends = np.cumsum([len(symbols) for symbols in problem.data])
    i, t = len(problem.data) - 1, 0
    n = int(ends[i]) - len(problem.data[i])
    after = np.zeros(len(number))
    for path, p in zip(posterior.paths, posterior.probability, strict=True):
        if p > 0:
            for k, chance in enumerate(naive.gibbs_conditional(split(path, problem), problem, i, t)):
                if chance > 0:
                    after[number[(*path[:n].tolist(), k, *path[n + 1 :].tolist())]] += p * chance
    assert after == pytest.approx(posterior.probability, abs=1e-12)


# ---- chains and expected counts --------------------------------------------------------------------------------------


@given(st.integers(1, 3), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_forward_backward_is_the_sum_over_paths(n_states: int, n_positions: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, last = rng.random((2, n_states))
    chain = first, rng.random((n_states, n_states)), rng.random((n_positions, n_states)), last
    assert same_marginals([[naive.forward_backward(*chain)]], [[naive.chain_by_enumeration(*chain)]], 1e-13)


@given(problems(), st.integers(1, 6))
def test_expected_counts_are_mean_counts(drawn: tuple[Problem, np.random.Generator], length: int) -> None:
    problem, rng = drawn
    q = naive.cut(naive.random_marginals(problem, rng), length)
    mean = naive.zeros_like(naive.concentration(problem))
    for p, paths in weighted_paths(q, problem):
        for path, symbols in zip(paths, problem.data, strict=True):
            for part, own in zip(mean, naive.count(path, symbols, mean), strict=True):
                part += p * own
    assert all(np.allclose(a, b, atol=1e-12) for a, b in zip(naive_cvi.expected_counts(q, problem), mean, strict=True))


@given(problems())
def test_counts_without_a_state_are_mean_counts_without_it(drawn: tuple[Problem, np.random.Generator]) -> None:
    problem, rng = drawn
    q = naive.cut(naive.random_marginals(problem, rng), 1)
    i = len(problem.data) - 1
    t = int(rng.integers(len(problem.data[i])))
    mean = naive.zeros_like(naive.concentration(problem))
    for p, paths in weighted_paths(q, problem):
        for part, others in zip(mean, naive.counts_without_state(paths, problem, i, t), strict=True):
            part += p * others
    counts = naive_cvi.expected_counts(q, problem, {(i, t)})
    assert all(np.allclose(a, b, atol=1e-12) for a, b in zip(counts, mean, strict=True))


def test_a_cluster_of_three_states_inside_a_sequence_takes_four_moves_along() -> None:
    problem = naive.symmetric([[0] * 9, [0] * 2], 2, 1, 1.0, 1.0)
    q = naive.cut(naive.random_marginals(problem, np.random.default_rng(0)), 3)
    everything, others = naive_cvi.expected_counts(q, problem), naive_cvi.expected_counts(q, problem, {(0, 1)})
    assert (everything.rows - others.rows).sum() == pytest.approx(4.0)
    assert (everything.emission - others.emission).sum() == pytest.approx(3.0)
    assert everything.initial == pytest.approx(others.initial)
