"""The slow passes of collapsed variational inference against their equations, summed over all paths."""

from __future__ import annotations

import itertools

import naive_collapsed as naive
import naive_cvi
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_collapsed import Chain, Marginals, Problem
from naive_problems import PASSES, Array, problems, random_problem, same_marginals, split, weighted_paths

# ---- CVI 1 -----------------------------------------------------------------------------------------------------------


def enumerated_state_update(q: Marginals, problem: Problem, i: int, t: int) -> Array:
    """(3.33) with every expectation taken over all joint paths; forbidden moves are not counted."""
    n_states = len(problem.alpha_initial)
    left, numerator, denominator, symbol = (np.zeros(n_states) for _ in range(4))
    emitted = np.zeros(n_states)
    seen, last = problem.data[i][t], t + 1 == len(problem.data[i])
    for p, paths in weighted_paths(q, problem):
        counts = naive.updated(naive.counts_without_state(paths, problem, i, t), problem)
        before, after = paths[i][t - 1] if t else None, None if last else paths[i][t + 1]
        for k in range(n_states):
            left[k] += p * (counts.initial[k] if before is None else counts.rows[before, k])
            stayed = before == k and problem.alpha_rows[k, k] > 0
            numerator[k] += p * (1.0 if after is None else counts.rows[k, after] + (stayed and after == k))
            denominator[k] += p * (1.0 if after is None else counts.rows[k].sum() + stayed)
            symbol[k] += p * counts.emission[seen, k] if seen >= 0 else p
            emitted[k] += p * counts.emission[:, k].sum() if seen >= 0 else p
    weights = left * naive.ratio(numerator, denominator) * naive.ratio(symbol, emitted)
    return naive.normalised(naive.factors(problem, i)[t] * weights)


@given(problems())
def test_moves_from_before_and_to_after_are_expectations(drawn: tuple[Problem, np.random.Generator]) -> None:
    """Equations (3.37) and (3.39)."""
    problem, rng = drawn
    q = naive.cut(naive.random_marginals(problem, rng), 1)
    i = len(problem.data) - 1
    for t in range(len(problem.data[i])):
        into, out_of = np.zeros(len(problem.alpha_initial)), np.zeros(len(problem.alpha_initial))
        for p, paths in weighted_paths(q, problem):
            rows = naive.counts_without_state(paths, problem, i, t).rows
            into += p * rows[paths[i][t - 1]] if t else 0.0
            out_of += p * rows[:, paths[i][t + 1]] if t + 1 < len(paths[i]) else 0.0
        if t:
            rows = naive_cvi.moves_from_before(q, problem, i, t).rows
            assert naive_cvi.state(q, i, t - 1) @ rows == pytest.approx(into, abs=1e-12)
        if t + 1 < len(q[i]):
            rows = naive_cvi.moves_to_after(q, problem, i, t).rows
            assert rows @ naive_cvi.state(q, i, t + 1) == pytest.approx(out_of, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_a_pass_of_cvi_1_is_its_equation_with_expectations_over_all_paths(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, [[4, 2], [1, 5], [6]][seed % 3], 2, 3, 0.3 * (seed % 2))
    q = naive.cut(naive.random_marginals(problem, rng), 1)
    by_enumeration = [list(clusters) for clusters in q]
    for i, clusters in enumerate(by_enumeration):
        for t, chain in enumerate(clusters):
            marginal = enumerated_state_update(by_enumeration, problem, i, t)
            clusters[t] = Chain(marginal[None], chain.pairs)
    assert same_marginals(naive_cvi.cvi_state_pass(q, problem), by_enumeration, 1e-12)


@given(problems())
def test_the_denominator_of_cvi_1_is_all_moves_out_but_the_own(drawn: tuple[Problem, np.random.Generator]) -> None:
    problem, rng = drawn
    q = naive.cut(naive.random_marginals(problem, rng), 1)
    everything = naive_cvi.expected_counts(q, problem).rows.sum(axis=1)
    for i, clusters in enumerate(q):
        for t in range(len(clusters) - 1):
            without = naive_cvi.expected_counts(q, problem, {(i, t)}).rows.sum(axis=1)
            assert without + naive_cvi.state(q, i, t - 1) == pytest.approx(
                everything - naive_cvi.state(q, i, t), abs=1e-12
            )


@given(problems())
def test_hard_beliefs_turn_cvi_1_into_gibbs(drawn: tuple[Problem, np.random.Generator]) -> None:
    """With all other states certain, nothing is averaged and (3.33) is (3.25)."""
    problem, rng = drawn
    posterior = naive.exact_posterior(*problem)
    paths = split(rng.choice(posterior.paths, p=posterior.probability), problem)
    certain = np.eye(len(problem.alpha_initial))
    nothing = np.zeros((0, len(certain), len(certain)))
    q = [[Chain(certain[[k]], nothing) for k in path] for path in paths]
    first = naive_cvi.cvi_state_pass(q, problem)[0][0].marginals[0]
    assert first == pytest.approx(naive.gibbs_conditional(paths, problem, 0, 0), abs=1e-12)


def test_rows_of_unequal_size_are_averaged_as_counts_or_as_probabilities() -> None:
    """Once rows are averaged, their sizes matter: raw rows follow the frequent state alone."""
    frequent, rare = [0] * 40, [1] * 4
    problem = naive.symmetric([frequent, rare, [-1, -1]], 2, 2, 0.1, 0.1)
    marginal = {0: [1.0, 0.0], 1: [0.0, 1.0], -1: [0.5, 0.5]}
    nothing = np.zeros((0, 2, 2))
    q = [[Chain(np.array([marginal[symbol]]), nothing) for symbol in symbols] for symbols in problem.data]
    raw = naive_cvi.weight_from_before(q, problem, 2, 1, True, "counts")
    shares = naive_cvi.weight_from_before(q, problem, 2, 1, True, "probabilities")
    assert raw == pytest.approx([0.5 * 39.2, 0.5 * 3.2])
    assert shares == pytest.approx([0.5, 0.5], abs=0.02)
    assert shares.sum() == pytest.approx(1.0)


# ---- CVI 2 -----------------------------------------------------------------------------------------------------------


def enumerated_sequence_update(q: Marginals, problem: Problem, i: int) -> Chain:
    """(3.47) for every path of a sequence, with the mean counts of all others."""
    n_states, symbols = len(problem.alpha_initial), problem.data[i]
    rest = [clusters for j, clusters in enumerate(q) if j != i]
    others = naive.updated(naive_cvi.expected_counts(rest, without(problem, i)), problem)
    marginals, pairs = np.zeros((len(symbols), n_states)), np.zeros((len(symbols) - 1, n_states, n_states))
    for path in itertools.product(range(n_states), repeat=len(symbols)):
        weight = others.initial[path[0]]
        for j, k in itertools.pairwise(path):
            weight *= naive.ratio(others.rows[j, k], others.rows[j].sum())
        for t, (k, symbol) in enumerate(zip(path, symbols, strict=True)):
            weight *= naive.factors(problem, i)[t, k]
            weight *= naive.ratio(others.emission[symbol, k], others.emission[:, k].sum()) if symbol >= 0 else 1.0
        marginals[np.arange(len(path)), path] += weight
        pairs[np.arange(len(path) - 1), path[:-1], path[1:]] += weight
    total = marginals[0].sum()
    return Chain(marginals / total, pairs / total)


def without(problem: Problem, i: int) -> Problem:
    legal = None if problem.legal is None else [own for j, own in enumerate(problem.legal) if j != i]
    return problem._replace(data=[own for j, own in enumerate(problem.data) if j != i], legal=legal)


@given(problems())
def test_a_pass_of_cvi_2_is_its_equation_for_every_path(drawn: tuple[Problem, np.random.Generator]) -> None:
    problem, rng = drawn
    q = naive.random_marginals(problem, rng)
    by_enumeration = list(q)
    for i in range(len(q)):
        by_enumeration[i] = [enumerated_sequence_update(by_enumeration, problem, i)]
    assert same_marginals(naive_cvi.cvi_sequence_pass(q, problem), by_enumeration, 1e-12)
    batch = [[enumerated_sequence_update(q, problem, i)] for i in range(len(q))]
    assert same_marginals(naive_cvi.cvi_sequence_pass(q, problem, order="batch"), batch, 1e-12)


@given(problems())
def test_sequences_taken_out_all_together_see_the_prior_alone(drawn: tuple[Problem, np.random.Generator]) -> None:
    problem, rng = drawn
    q = naive.random_marginals(problem, rng)
    prior = naive_cvi.predictive(naive.zeros_like(naive.concentration(problem)), problem)
    alone = [[naive_cvi.sequence_under(prior, problem, i)] for i in range(len(q))]
    assert same_marginals(naive_cvi.cvi_sequence_pass(q, problem, cluster_size=len(q)), alone, 1e-12)


def test_sequences_taken_out_in_twos_run_under_the_counts_of_the_others() -> None:
    rng = np.random.default_rng(3)
    problem = random_problem(rng, [2, 3, 1, 4, 2], 3, 3, 0.0)
    q = naive.random_marginals(problem, rng)
    expected = [list(clusters) for clusters in q]
    for pair in [(0, 3), (1, 4), (2,)]:
        surrogate = naive_cvi.predictive(naive_cvi.expected_counts(expected, problem, [(i, 0) for i in pair]), problem)
        for i in pair:
            expected[i] = [naive_cvi.sequence_under(surrogate, problem, i)]
    assert same_marginals(naive_cvi.cvi_sequence_pass(q, problem, cluster_size=2), expected, 1e-12)
    pairs = [[(0, 0), (3, 0)], [(1, 0), (4, 0)], [(2, 0)]]
    assert same_marginals(naive_cvi.cvi_sequence_pass(q, problem, visits=pairs), expected, 1e-12)


@given(problems())
def test_without_exclusion_in_batches_all_run_under_the_mean_parameters(
    drawn: tuple[Problem, np.random.Generator],
) -> None:
    problem, rng = drawn
    q = naive.random_marginals(problem, rng)
    surrogate = naive_cvi.predictive(naive_cvi.expected_counts(q, problem), problem)
    expected = [[naive_cvi.sequence_under(surrogate, problem, i)] for i in range(len(q))]
    assert same_marginals(naive_cvi.cvi_sequence_pass(q, problem, exclude=False, order="batch"), expected, 1e-12)


# ---- CVI 3 -----------------------------------------------------------------------------------------------------------


@given(problems(), st.sampled_from(["counts", "probabilities"]))
def test_cvi_3_with_one_cluster_for_a_sequence_is_cvi_2(
    drawn: tuple[Problem, np.random.Generator], left: naive.Weighting
) -> None:
    problem, rng = drawn
    sequences = subchains = naive.random_marginals(problem, rng)
    for _ in range(5):
        sequences = naive_cvi.cvi_sequence_pass(sequences, problem)
        subchains = naive_cvi.cvi_subchain_pass(subchains, problem, left)
    assert same_marginals(sequences, subchains, 1e-12)


@given(problems(), st.sampled_from(["counts", "probabilities"]))
def test_cvi_3_with_single_states_is_cvi_1_without_corrections(
    drawn: tuple[Problem, np.random.Generator], left: naive.Weighting
) -> None:
    problem, rng = drawn
    states = subchains = naive.cut(naive.random_marginals(problem, rng), 1)
    for _ in range(5):
        states = naive_cvi.cvi_state_pass(states, problem, corrections=False, neighbour_weighting=left)
        subchains = naive_cvi.cvi_subchain_pass(subchains, problem, left)
    assert same_marginals(states, subchains, 1e-12)


def test_a_cluster_inside_a_sequence_hears_both_neighbours() -> None:
    """(3.70) for every path of the middle one of three clusters."""
    rng = np.random.default_rng(8)
    problem = random_problem(rng, [7, 3], 2, 3, 0.0)
    q = naive.cut(naive.random_marginals(problem, rng), 3)
    first = naive_cvi.cvi_subchain_pass(
        [q[0][:1], *q[1:]], problem._replace(data=[problem.data[0][:3], problem.data[1]])
    )
    visited = naive_cvi.cvi_subchain_pass(q, problem)
    q[0][0] = visited[0][0]
    alpha = problem.alpha_rows

    def moves(gone: set[int]) -> Array:
        """Pairs by pairs: two inside clusters of three, one between clusters, and those of the other sequence."""
        total: Array = alpha + q[1][0].pairs.sum(axis=0)
        for c, chain in enumerate(q[0]):
            total = total + (0.0 if c in gone else chain.pairs.sum(axis=0))
            if c and not gone & {c - 1, c}:
                total = total + np.outer(q[0][c - 1].marginals[-1], chain.marginals[0])
        return total

    start = q[0][0].marginals[-1] @ moves({0, 1})
    behind = moves({1, 2})
    stop = (behind @ q[0][2].marginals[0]) / behind.sum(axis=1)
    inside = moves({1}) / moves({1}).sum(axis=1, keepdims=True)
    emission = problem.beta + sum(
        np.outer(np.arange(3) == symbol, marginal)
        for symbol, marginal in [
            *zip(problem.data[0][:3], q[0][0].marginals, strict=True),
            *zip(problem.data[0][6:], q[0][2].marginals, strict=True),
            *zip(problem.data[1], q[1][0].marginals, strict=True),
        ]
    )
    phi = emission / emission.sum(axis=0)
    likelihood = np.array([np.ones(2) if symbol < 0 else phi[symbol] for symbol in problem.data[0][3:6]])
    expected = naive.chain_by_enumeration(start, inside, likelihood, stop)
    assert same_marginals([[visited[0][1]]], [[expected]], 1e-12)
    assert not same_marginals([[visited[0][0]]], [[first[0][0]]], 1e-3)


# ---- all of them -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PASSES)
@given(drawn=problems())
def test_states_have_no_names(name: str, drawn: tuple[Problem, np.random.Generator]) -> None:
    problem, rng = drawn
    q = naive.random_marginals(problem, rng)
    new = rng.permutation(len(problem.alpha_initial))
    legal = None if problem.legal is None else [own[:, new] for own in problem.legal]
    renamed = Problem(
        problem.data, problem.alpha_initial[new], problem.alpha_rows[np.ix_(new, new)], problem.beta[:, new], legal
    )

    def moved(q: Marginals) -> Marginals:
        return [[Chain(c.marginals[:, new], c.pairs[:, new][:, :, new]) for c in clusters] for clusters in q]

    assert same_marginals(PASSES[name](moved(q), renamed), moved(PASSES[name](q, problem)), 1e-12)


@pytest.mark.parametrize("name", PASSES)
@given(drawn=problems())
def test_nothing_illegal_is_believed(name: str, drawn: tuple[Problem, np.random.Generator]) -> None:
    problem, rng = drawn
    q = naive.random_marginals(problem, rng)
    for _ in range(2):
        q = PASSES[name](q, problem)
    for i, clusters in enumerate(q):
        marginals = np.concatenate([chain.marginals for chain in clusters])
        assert marginals.sum(axis=1) == pytest.approx(1.0)
        assert (marginals[naive.factors(problem, i) == 0] == 0).all()
        assert all((chain.pairs[:, problem.alpha_rows == 0] == 0).all() for chain in clusters)
