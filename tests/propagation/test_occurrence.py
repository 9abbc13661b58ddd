"""Whether a move happens at all: every method, against sums over all paths."""

from __future__ import annotations

from typing import Any, NamedTuple

import naive_hdp
import numpy as np
import pytest

from subchain.propagation import lanes
from subchain.propagation.occurrence import pairs as occurrence
from subchain.propagation.occurrence.methods import (
    DETERMINISTIC,
    conditionals,
    exact,
    marginals,
    mean_field,
    pairs,
    sampling,
)

Array = np.ndarray[Any, Any]


class Problem(NamedTuple):
    likelihood: Array
    transition: Array
    start: Array
    offsets: Array
    lengths: list[int]

    def columns(self, lane: int) -> Array:
        """Columns of one lane."""
        return self.offsets[: self.lengths[lane]] + lane


class Passed(NamedTuple):
    alpha: Array
    weighted: Array
    marginals: Array
    pairs: Array


def problem(n_states: int, lengths: list[int], *, sharpness: float = 1.0, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    falling = np.sort(lengths)[::-1]
    counts = (falling > np.arange(falling[0])[:, None]).sum(axis=1)
    return Problem(
        likelihood=rng.random((n_states, int(counts.sum()))) ** sharpness,
        transition=rng.dirichlet(np.ones(n_states), n_states),
        start=rng.dirichlet(np.ones(n_states), len(lengths)).T.copy(),
        offsets=np.concatenate(([0], np.cumsum(counts))),
        lengths=falling.tolist(),
    )


def run(given: Problem) -> Passed:
    alpha, marginals, weighted = (
        np.empty_like(given.likelihood),
        np.empty_like(given.likelihood),
        given.likelihood.copy(),
    )
    scale, sums = np.empty(alpha.shape[1]), np.zeros_like(given.transition)
    transposed = np.ascontiguousarray(given.transition.T)
    lanes.forward(given.likelihood, given.transition, given.start, given.offsets, alpha, scale)
    lanes.backward(weighted, transposed, np.ones_like(given.start), given.offsets, alpha, scale, marginals)
    lanes.pair_sums(alpha, weighted, given.offsets, sums)
    return Passed(alpha, weighted, marginals, sums * given.transition)


def pair_marginals(given: Problem, passed: Passed, lane: int) -> Array:
    columns = given.columns(lane)
    return naive_hdp.pair_marginals(passed.alpha[:, columns].T, passed.weighted[:, columns].T, given.transition)


def assert_slightly_less(found: Array, full: Array) -> None:
    """What small pairs add is left out, and nothing else."""
    assert np.all(found <= full * (1.0 + 1e-6) + 1e-12)
    assert np.all(found >= full * (1.0 - 0.0051))


# ---- independent pairs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_states", [1, 2, 5, 13, 120])
@pytest.mark.parametrize("sharpness", [1.0, 5.0, 60.0])
def test_counts_and_their_surplus_are_the_pairs_formula(n_states: int, sharpness: float) -> None:
    given_problem = problem(n_states, [9] * 130 + [4, 1, 1], sharpness=sharpness)
    passed, weights = run(given_problem), np.random.default_rng(1).uniform(0.5, 3.0, 133)
    found, full = np.zeros((n_states, n_states)), np.zeros((n_states, n_states))
    alpha, weighted, marginals, _ = passed
    occurrence.add_surplus(alpha, weighted, given_problem.transition, marginals, given_problem.offsets, weights, found)
    for lane, weight in enumerate(weights):
        pairs = pair_marginals(given_problem, passed, lane)
        full += weight * naive_hdp.pairs_occurrence(pairs)
        found += weight * pairs.sum(axis=0)
    assert_slightly_less(found, full)


def test_certain_moves_have_a_finite_surplus() -> None:
    certain = np.array([[0.0, 0.0], [1.0, 1.0]])
    found = np.zeros((2, 2))
    occurrence.add_surplus(certain, certain, np.eye(2), certain, np.arange(3), np.ones(1), found)
    assert found[1, 1] == pytest.approx(-np.log(1e-12) - 1.0, rel=1e-4)
    assert np.count_nonzero(found) == 1


def test_a_chain_in_logarithms_has_the_same_surplus() -> None:
    rng = np.random.default_rng(4)
    pairs = rng.dirichlet(np.full(9, 0.3), 6).reshape(6, 3, 3)
    found = np.zeros((3, 3))
    with np.errstate(divide="ignore"):
        for pair in pairs:  # one step each, all of whose probability is given to the move
            occurrence.add_log_surplus(np.zeros((1, 3)), np.log(pair), np.zeros((1, 3)), np.ones((1, 3)), 1.0, found)
    assert_slightly_less(found + pairs.sum(axis=0), naive_hdp.pairs_occurrence(pairs))


# ---- other ways ------------------------------------------------------------------------------------------------------


def random_chain(n_states: int, length: int, seed: int = 0) -> tuple[Array, Array]:
    """The first marginal of a chain and its moves, some of which cannot be."""
    rng = np.random.default_rng((n_states, length, seed))
    moves = rng.random((length - 1, n_states, n_states)) ** 3
    moves[rng.random(moves.shape) < 0.1] = 0.0
    moves[..., 0] += 1e-3
    return rng.dirichlet(np.ones(n_states)), moves / moves.sum(axis=2, keepdims=True)


SMALL_CHAINS = [(1, 4), (2, 1), (2, 2), (2, 9), (3, 7), (4, 6), (5, 5)]


@pytest.mark.parametrize(("n_states", "length"), SMALL_CHAINS)
@pytest.mark.parametrize("seed", range(3))
def test_exact_is_the_sum_over_all_paths(n_states: int, length: int, seed: int) -> None:
    chain = random_chain(n_states, length, seed)
    expected = naive_hdp.absent(naive_hdp.simulated_paths(*chain), n_states)
    np.testing.assert_allclose(np.exp(-exact(*chain)), expected, atol=1e-12)


@pytest.mark.parametrize(("n_states", "length"), SMALL_CHAINS)
def test_mean_field_is_the_sum_over_all_paths_of_independent_positions(n_states: int, length: int) -> None:
    chain = random_chain(n_states, length)
    expected = naive_hdp.absent(naive_hdp.independent_paths(marginals(*chain)), n_states)
    np.testing.assert_allclose(np.exp(-mean_field(*chain)), expected, atol=1e-12)


def test_messages_of_ragged_lanes_are_the_chains_that_exact_takes() -> None:
    given_problem = problem(3, [6, 5, 5, 2, 1], sharpness=4.0)
    passed = run(given_problem)
    for lane in range(5):
        columns = given_problem.columns(lane)
        moves = conditionals(passed.weighted[:, columns].T, given_problem.transition)
        logs, start = np.log(given_problem.likelihood[:, columns].T), given_problem.start[:, lane]
        expected = naive_hdp.absent(naive_hdp.chain_paths(logs, start, given_problem.transition), 3)
        np.testing.assert_allclose(np.exp(-exact(passed.marginals[:, lane], moves)), expected, atol=1e-12)
        np.testing.assert_allclose(
            pairs(passed.marginals[:, lane], moves),
            naive_hdp.pairs_occurrence(pair_marginals(given_problem, passed, lane)), rtol=1e-9, atol=1e-14,
        )  # fmt: skip


def test_samples_come_to_the_exact_value() -> None:
    n_samples, chain = 40_000, random_chain(4, 12)
    truth = np.exp(-exact(*chain))
    found = np.exp(-sampling(*chain, n_samples, np.random.default_rng(0)))
    deviation = np.sqrt(truth * (1.0 - truth) / n_samples)
    assert np.abs(found - truth).max() > 0.0
    assert np.all(np.abs(found - truth) <= 4.5 * deviation + 1e-12)


def test_the_same_generator_draws_the_same_paths() -> None:
    chain = random_chain(3, 8)
    first, second = (sampling(*chain, 50, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_moves_that_must_happen_and_moves_that_cannot(name: str) -> None:
    """0 → 1 → 0 → …, for certain."""
    turn = np.array([[0.0, 1.0], [1.0, 0.0]])
    absent = DETERMINISTIC[name](np.array([1.0, 0.0]), np.repeat(turn[None], 5, axis=0))
    assert np.all(np.isfinite(absent))
    np.testing.assert_allclose(-np.expm1(-absent), turn, atol=1e-11)


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_all_methods_agree_on_a_single_step(name: str) -> None:
    first, moves = np.array([0.3, 0.7]), np.array([[[0.2, 0.8], [0.2, 0.8]]])
    np.testing.assert_allclose(DETERMINISTIC[name](first, moves), -np.log1p(-first[:, None] * moves[0]), rtol=1e-12)
