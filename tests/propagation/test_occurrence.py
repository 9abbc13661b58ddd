"""Whether a move happens at all: every way of finding out, against sums over all paths."""

from __future__ import annotations

from typing import Any, NamedTuple

import naive_hdp
import numpy as np
import pytest

from subchain.propagation import lanes, occurrence, one_chain
from subchain.vectors import aligned

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
    beliefs: Array
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
    alpha, beliefs, weighted = np.empty_like(given.likelihood), np.empty_like(given.likelihood), given.likelihood.copy()
    scale, sums = np.empty(alpha.shape[1]), np.zeros_like(given.transition)
    transposed = np.ascontiguousarray(given.transition.T)
    lanes.forward(given.likelihood, given.transition, given.start, given.offsets, alpha, scale)
    lanes.backward(weighted, transposed, np.ones_like(given.start), given.offsets, alpha, scale, beliefs)
    lanes.pair_sums(alpha, weighted, given.offsets, sums)
    return Passed(alpha, weighted, beliefs, sums * given.transition)


def pair_beliefs(given: Problem, passed: Passed, lane: int) -> Array:
    columns = given.columns(lane)
    return naive_hdp.pair_beliefs(passed.alpha[:, columns].T, passed.weighted[:, columns].T, given.transition)


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
    alpha, weighted, beliefs, _ = passed
    occurrence.add_surplus(alpha, weighted, given_problem.transition, beliefs, given_problem.offsets, weights, found)
    for lane, weight in enumerate(weights):
        pairs = pair_beliefs(given_problem, passed, lane)
        full += weight * naive_hdp.pairs_occurrence(pairs)
        found += weight * pairs.sum(axis=0)
    assert_slightly_less(found, full)


@pytest.mark.parametrize("n_states", [2, 5, 20])
def test_a_chain_whose_states_fill_vectors_has_the_same_surplus(n_states: int) -> None:
    given_problem = problem(n_states, [12], sharpness=8.0)
    passed, width = run(given_problem), one_chain.padded(n_states)
    tables = [aligned(len(table), width) for table in (*(given_problem.likelihood.T,) * 3, given_problem.transition)]
    for table, contents in zip(
        tables, (passed.alpha.T, passed.weighted.T, passed.beliefs.T, given_problem.transition), strict=True
    ):
        table[:] = 0.0
        table[:, :n_states] = contents
    alpha, weighted, beliefs, transition = tables
    found, expected = aligned(n_states, width), np.zeros((n_states, n_states))
    found[:] = 0.0
    occurrence.add_chain_surplus(alpha, weighted, transition, beliefs, 12, n_states, 2.0, found)
    occurrence.add_surplus(
        passed.alpha, passed.weighted, given_problem.transition, passed.beliefs, given_problem.offsets, np.full(1, 2.0),
        expected,
    )  # fmt: skip
    assert expected.any()
    np.testing.assert_allclose(found[:, :n_states], expected, rtol=1e-6)


def test_neighbours_that_know_nothing_of_each_other() -> None:
    before, after = np.array([0.9, 0.08, 0.02]), np.array([0.5, 0.495, 0.005])
    found, both = 2.0 * np.outer(before, after), np.outer(before, after)
    occurrence.add_border_surplus(before, after, 2.0, found)
    assert_slightly_less(found, -2.0 * np.log1p(-both))


def test_certain_moves_have_a_finite_surplus() -> None:
    certain = np.array([0.0, 1.0])
    found = np.zeros((2, 2))
    occurrence.add_border_surplus(certain, certain, 1.0, found)
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
