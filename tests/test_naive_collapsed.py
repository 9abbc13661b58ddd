"""The slow versions of collapsed inference against enumeration, and against one another."""

from __future__ import annotations

import itertools

import naive_collapsed as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_collapsed import Chain, Marginals, Problem
from numpy.typing import NDArray
from scipy.special import gammaln

Array = NDArray[np.float64]


def random_problem(rng: np.random.Generator, lengths: list[int], n_states: int, n_symbols: int, gaps: float) -> Problem:
    """Unequal concentrations and missing symbols; a share `gaps` of moves, symbols and states is forbidden.

    State 0 may always be visited, so there is a path.
    """

    def positive(*shape: int) -> Array:
        return rng.gamma(2.0, 0.5, shape) + 0.05

    def open_entries(*shape: int) -> Array:
        kept = rng.random(shape) >= gaps
        kept[..., 0] = True
        return kept.astype(np.float64)

    data = [[int(symbol) for symbol in rng.integers(-1, n_symbols, length)] for length in lengths]
    initial = positive(n_states) * open_entries(n_states)
    rows = positive(n_states, n_states) * open_entries(n_states, n_states)
    beta = positive(n_symbols, n_states) * open_entries(n_symbols, n_states)
    legal = [open_entries(length, n_states) for length in lengths] if gaps else None
    return Problem(data, initial, rows, beta, legal)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Problem, np.random.Generator]:
    """Problems of a few hundred joint paths at most."""
    n_states = draw(st.integers(2, 3))
    lengths = draw(st.sampled_from([[1], [4], [1, 2], [2, 3], [1, 1, 3]] + ([[3, 4], [6, 2]] if n_states == 2 else [])))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_problem(rng, lengths, n_states, draw(st.integers(2, 3)), draw(st.sampled_from([0.0, 0.3]))), rng


def same_marginals(a: Marginals, b: Marginals, tolerance: float) -> bool:
    """The marginals and pairs of all clusters are equal."""
    clusters = zip(itertools.chain(*a), itertools.chain(*b), strict=True)
    tables = (pair for left, right in clusters for pair in zip(left, right, strict=True))
    return all(float(np.abs(x - y).max(initial=0.0)) <= tolerance for x, y in tables)


def split(flat: NDArray[np.int64], problem: Problem) -> list[list[int]]:
    """The path of each sequence out of the states of all positions in a row."""
    ends = np.cumsum([len(symbols) for symbols in problem.data])
    return [[int(k) for k in path] for path in np.split(flat, ends[:-1])]


def weighted_paths(q: Marginals, problem: Problem) -> list[tuple[float, list[list[int]]]]:
    """Every joint path with its probability under q."""
    n_positions = sum(len(symbols) for symbols in problem.data)
    flat = np.array(list(itertools.product(range(len(problem.alpha_initial)), repeat=n_positions)))
    probability = np.exp(naive.log_probability(q, flat))
    return [(p, split(path, problem)) for p, path in zip(probability, flat, strict=True) if p > 0]


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
    assert all(np.allclose(a, b, atol=1e-12) for a, b in zip(naive.expected_counts(q, problem), mean, strict=True))


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
    counts = naive.expected_counts(q, problem, {(i, t)})
    assert all(np.allclose(a, b, atol=1e-12) for a, b in zip(counts, mean, strict=True))


def test_a_cluster_of_three_states_inside_a_sequence_takes_four_moves_along() -> None:
    problem = naive.symmetric([[0] * 9, [0] * 2], 2, 1, 1.0, 1.0)
    q = naive.cut(naive.random_marginals(problem, np.random.default_rng(0)), 3)
    everything, others = naive.expected_counts(q, problem), naive.expected_counts(q, problem, {(0, 1)})
    assert (everything.rows - others.rows).sum() == pytest.approx(4.0)
    assert (everything.emission - others.emission).sum() == pytest.approx(3.0)
    assert everything.initial == pytest.approx(others.initial)


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
            rows = naive.moves_from_before(q, problem, i, t).rows
            assert naive.state(q, i, t - 1) @ rows == pytest.approx(into, abs=1e-12)
        if t + 1 < len(q[i]):
            rows = naive.moves_to_after(q, problem, i, t).rows
            assert rows @ naive.state(q, i, t + 1) == pytest.approx(out_of, abs=1e-12)


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
    assert same_marginals(naive.cvi_state_pass(q, problem), by_enumeration, 1e-12)


@given(problems())
def test_the_denominator_of_cvi_1_is_all_moves_out_but_the_own(drawn: tuple[Problem, np.random.Generator]) -> None:
    problem, rng = drawn
    q = naive.cut(naive.random_marginals(problem, rng), 1)
    everything = naive.expected_counts(q, problem).rows.sum(axis=1)
    for i, clusters in enumerate(q):
        for t in range(len(clusters) - 1):
            without = naive.expected_counts(q, problem, {(i, t)}).rows.sum(axis=1)
            assert without + naive.state(q, i, t - 1) == pytest.approx(everything - naive.state(q, i, t), abs=1e-12)


@given(problems())
def test_hard_beliefs_turn_cvi_1_into_gibbs(drawn: tuple[Problem, np.random.Generator]) -> None:
    """With all other states certain, nothing is averaged and (3.33) is (3.25)."""
    problem, rng = drawn
    posterior = naive.exact_posterior(*problem)
    paths = split(rng.choice(posterior.paths, p=posterior.probability), problem)
    certain = np.eye(len(problem.alpha_initial))
    nothing = np.zeros((0, len(certain), len(certain)))
    q = [[Chain(certain[[k]], nothing) for k in path] for path in paths]
    first = naive.cvi_state_pass(q, problem)[0][0].marginals[0]
    assert first == pytest.approx(naive.gibbs_conditional(paths, problem, 0, 0), abs=1e-12)


def test_rows_of_unequal_size_are_averaged_as_counts_or_as_probabilities() -> None:
    """Once rows are averaged, their sizes matter: raw rows follow the frequent state alone."""
    frequent, rare = [0] * 40, [1] * 4
    problem = naive.symmetric([frequent, rare, [-1, -1]], 2, 2, 0.1, 0.1)
    marginal = {0: [1.0, 0.0], 1: [0.0, 1.0], -1: [0.5, 0.5]}
    nothing = np.zeros((0, 2, 2))
    q = [[Chain(np.array([marginal[symbol]]), nothing) for symbol in symbols] for symbols in problem.data]
    raw = naive.weight_from_before(q, problem, 2, 1, True, "counts")
    shares = naive.weight_from_before(q, problem, 2, 1, True, "probabilities")
    assert raw == pytest.approx([0.5 * 39.2, 0.5 * 3.2])
    assert shares == pytest.approx([0.5, 0.5], abs=0.02)
    assert shares.sum() == pytest.approx(1.0)


# ---- CVI 2 -----------------------------------------------------------------------------------------------------------


def enumerated_sequence_update(q: Marginals, problem: Problem, i: int) -> Chain:
    """(3.47) for every path of a sequence, with the mean counts of all others."""
    n_states, symbols = len(problem.alpha_initial), problem.data[i]
    rest = [clusters for j, clusters in enumerate(q) if j != i]
    others = naive.updated(naive.expected_counts(rest, without(problem, i)), problem)
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
    assert same_marginals(naive.cvi_sequence_pass(q, problem), by_enumeration, 1e-12)
    batch = [[enumerated_sequence_update(q, problem, i)] for i in range(len(q))]
    assert same_marginals(naive.cvi_sequence_pass(q, problem, order="batch"), batch, 1e-12)


@given(problems())
def test_sequences_taken_out_all_together_see_the_prior_alone(drawn: tuple[Problem, np.random.Generator]) -> None:
    problem, rng = drawn
    q = naive.random_marginals(problem, rng)
    prior = naive.predictive(naive.zeros_like(naive.concentration(problem)), problem)
    alone = [[naive.sequence_under(prior, problem, i)] for i in range(len(q))]
    assert same_marginals(naive.cvi_sequence_pass(q, problem, cluster_size=len(q)), alone, 1e-12)


def test_sequences_taken_out_in_twos_run_under_the_counts_of_the_others() -> None:
    rng = np.random.default_rng(3)
    problem = random_problem(rng, [2, 3, 1, 4, 2], 3, 3, 0.0)
    q = naive.random_marginals(problem, rng)
    expected = [list(clusters) for clusters in q]
    for pair in [(0, 3), (1, 4), (2,)]:
        surrogate = naive.predictive(naive.expected_counts(expected, problem, [(i, 0) for i in pair]), problem)
        for i in pair:
            expected[i] = [naive.sequence_under(surrogate, problem, i)]
    assert same_marginals(naive.cvi_sequence_pass(q, problem, cluster_size=2), expected, 1e-12)
    pairs = [[(0, 0), (3, 0)], [(1, 0), (4, 0)], [(2, 0)]]
    assert same_marginals(naive.cvi_sequence_pass(q, problem, visits=pairs), expected, 1e-12)


@given(problems())
def test_without_exclusion_in_batches_all_run_under_the_mean_parameters(
    drawn: tuple[Problem, np.random.Generator],
) -> None:
    problem, rng = drawn
    q = naive.random_marginals(problem, rng)
    surrogate = naive.predictive(naive.expected_counts(q, problem), problem)
    expected = [[naive.sequence_under(surrogate, problem, i)] for i in range(len(q))]
    assert same_marginals(naive.cvi_sequence_pass(q, problem, exclude=False, order="batch"), expected, 1e-12)


# ---- CVI 3 -----------------------------------------------------------------------------------------------------------


@given(problems(), st.sampled_from(["counts", "probabilities"]))
def test_cvi_3_with_one_cluster_for_a_sequence_is_cvi_2(
    drawn: tuple[Problem, np.random.Generator], left: naive.Weighting
) -> None:
    problem, rng = drawn
    sequences = subchains = naive.random_marginals(problem, rng)
    for _ in range(5):
        sequences = naive.cvi_sequence_pass(sequences, problem)
        subchains = naive.cvi_subchain_pass(subchains, problem, left)
    assert same_marginals(sequences, subchains, 1e-12)


@given(problems(), st.sampled_from(["counts", "probabilities"]))
def test_cvi_3_with_single_states_is_cvi_1_without_corrections(
    drawn: tuple[Problem, np.random.Generator], left: naive.Weighting
) -> None:
    problem, rng = drawn
    states = subchains = naive.cut(naive.random_marginals(problem, rng), 1)
    for _ in range(5):
        states = naive.cvi_state_pass(states, problem, corrections=False, neighbour_weighting=left)
        subchains = naive.cvi_subchain_pass(subchains, problem, left)
    assert same_marginals(states, subchains, 1e-12)


def test_a_cluster_inside_a_sequence_hears_both_neighbours() -> None:
    """(3.70) for every path of the middle one of three clusters."""
    rng = np.random.default_rng(8)
    problem = random_problem(rng, [7, 3], 2, 3, 0.0)
    q = naive.cut(naive.random_marginals(problem, rng), 3)
    first = naive.cvi_subchain_pass([q[0][:1], *q[1:]], problem._replace(data=[problem.data[0][:3], problem.data[1]]))
    visited = naive.cvi_subchain_pass(q, problem)
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

PASSES = {
    "state": lambda q, problem: naive.cvi_state_pass(naive.cut(q, 1), problem),
    "state, probabilities": lambda q, problem: naive.cvi_state_pass(
        naive.cut(q, 1), problem, neighbour_weighting="probabilities"
    ),
    "sequence": naive.cvi_sequence_pass,
    "subchain": lambda q, problem: naive.cvi_subchain_pass(naive.cut(q, 2), problem),
    "vi": naive.vi_pass,
}


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


# ---- how good marginals are ------------------------------------------------------------------------------------------


@given(problems(), st.integers(1, 6))
def test_the_bounds_lie_below_the_evidence(drawn: tuple[Problem, np.random.Generator], length: int) -> None:
    """Expected counts, then exact expectations, then the evidence."""
    problem, rng = drawn
    if (problem.alpha_rows == 0).any():
        length = len(max(problem.data, key=len))  # independent clusters believe in forbidden moves
    q = naive.cut(naive.random_marginals(problem, rng), length)
    posterior = naive.exact_posterior(*problem)
    plug_in, exact = naive.expected_bound(q, problem), naive.exact_bound(q, posterior)
    assert plug_in <= exact + 1e-10
    assert exact <= posterior.log_evidence + 1e-10


def test_the_bound_of_one_sequence_with_its_true_posterior_is_the_evidence() -> None:
    """Two states suffice for a Markov chain, so the posterior of a sequence of two is one of our chains."""
    problem = naive.symmetric([[0, 1]], 2, 2, 0.5, 0.3)
    posterior = naive.exact_posterior(*problem)
    q = [[Chain(posterior.marginals, posterior.probability.reshape(1, 2, 2))]]
    assert naive.exact_bound(q, posterior) == pytest.approx(posterior.log_evidence)
    assert naive.co_clustering_error(q, posterior) == pytest.approx(0.0, abs=1e-12)


def test_with_certain_states_both_bounds_are_the_joint() -> None:
    problem = naive.symmetric([[0, 1, 1], [1, 0]], 2, 2, 0.5, 0.3)
    paths = [[0, 1, 1], [1, 0]]
    certain = np.eye(2)
    q = [[Chain(certain[path], certain[path[:-1], :, None] * certain[path[1:], None])] for path in paths]
    joint = naive.log_joint(paths, *problem[:4])
    assert naive.expected_bound(q, problem) == pytest.approx(joint)
    assert naive.exact_bound(q, naive.exact_posterior(*problem)) == pytest.approx(joint)


@given(problems())
def test_variational_inference_never_lowers_the_bound_with_expected_counts(
    drawn: tuple[Problem, np.random.Generator],
) -> None:
    problem, rng = drawn
    q = naive.random_marginals(problem, rng)
    bounds = []
    for _ in range(6):
        bounds.append(naive.expected_bound(q, problem))
        q = naive.vi_pass(q, problem)
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
    assert naive.entropy(q) == pytest.approx(entropy, abs=1e-10)
    assert naive.co_clustering(q) == pytest.approx(same, abs=1e-10)


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
    return naive.co_clustering_error(max(ends, key=lambda q: naive.exact_bound(q, posterior)), posterior)


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
