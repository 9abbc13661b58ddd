"""Passes over lanes equal passes over one chain after the other, by vectors and by matrix products alike."""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subchain.numerics.vectors import WIDTH
from subchain.propagation import lanes
from subchain.propagation.lanes import products

KERNELS = [pytest.param(kernels, id=kernels.__name__.split(".")[-1]) for kernels in (lanes, products)]

Array = np.ndarray[Any, Any]


class Problem(NamedTuple):
    likelihood: Array
    transition: Array
    start: Array
    stop: Array
    offsets: Array


class Passed(NamedTuple):
    alpha: Array
    scale: Array
    marginals: Array
    pairs: Array


def problem(n_states: int, lengths: list[int], seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    falling = np.sort(lengths)[::-1]
    counts = (falling > np.arange(falling[0])[:, None]).sum(axis=1)
    return Problem(
        likelihood=rng.random((n_states, int(counts.sum()))) ** 4,
        transition=rng.dirichlet(np.ones(n_states), n_states) * 0.9,
        start=rng.random((n_states, len(lengths))),
        stop=rng.random((n_states, len(lengths))) * 7.0,
        offsets=np.concatenate(([0], np.cumsum(counts))),
    )


def run(kernels: ModuleType, given: Problem) -> Passed:
    n_states, columns = given.likelihood.shape
    alpha, marginals, scale = np.empty((n_states, columns)), np.empty((n_states, columns)), np.empty(columns)
    weighted, pairs = given.likelihood.copy(), np.zeros((n_states, n_states))
    kernels.forward(given.likelihood, given.transition, given.start, given.offsets, alpha, scale)
    transposed = np.ascontiguousarray(given.transition.T)
    kernels.backward(weighted, transposed, given.stop, given.offsets, alpha, scale, marginals)
    kernels.pair_sums(alpha, weighted, given.offsets, pairs)
    return Passed(alpha, scale, marginals, pairs * given.transition)


def one_after_the_other(given: Problem) -> Passed:
    table = given.likelihood
    out = Passed(np.empty_like(table), np.empty(table.shape[1]), np.empty_like(table), np.zeros_like(given.transition))
    counts = np.diff(given.offsets)
    for lane in range(counts[0]):
        columns = given.offsets[:-1][counts > lane] + lane
        before, after = given.start[:, lane], given.stop[:, lane]
        for column in columns:
            joint = before * given.likelihood[:, column]
            out.scale[column] = joint.sum()
            out.alpha[:, column] = joint / joint.sum()
            before = out.alpha[:, column] @ given.transition
        for number in range(len(columns) - 1, -1, -1):
            alpha = out.alpha[:, columns[number]]
            out.marginals[:, columns[number]] = alpha * after / (alpha @ after)
            after = after / (alpha @ after)
            weighted = given.likelihood[:, columns[number]] * after / out.scale[columns[number]]
            if number > 0:
                out.pairs[:] += np.outer(out.alpha[:, columns[number - 1]], weighted) * given.transition
            after = given.transition @ weighted
    return out


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("n_states", [1, 2, 3, 4, 5, 13])
@settings(max_examples=10, deadline=None)
@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=2 * WIDTH + 3))
def test_lanes_equal_one_chain_after_the_other(kernels: ModuleType, n_states: int, lengths: list[int]) -> None:
    given_problem = problem(n_states, lengths)
    for ours, plain in zip(run(kernels, given_problem), one_after_the_other(given_problem), strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kernels", KERNELS)
def test_rounding_does_not_pile_up_along_a_chain(kernels: ModuleType) -> None:
    marginals = run(kernels, problem(4, [5000] * 3)).marginals
    assert np.abs(marginals.sum(axis=0) - 1.0).max() < 4e-15


@pytest.mark.parametrize("kernels", KERNELS)
def test_a_state_that_cannot_be_reached_does_no_harm_however_well_it_explains(kernels: ModuleType) -> None:
    given_problem = problem(3, [600] * 2)
    given_problem.likelihood[:] = [[1e-4], [2e-4], [1.0]]
    given_problem.transition[2, :2] = given_problem.transition[:2, 2] = given_problem.start[2] = 0.0
    passed = run(kernels, given_problem)
    np.testing.assert_allclose(passed.marginals.sum(axis=0), 1.0)
    np.testing.assert_allclose(passed.pairs.sum(), 2 * 599)
    assert np.all(passed.marginals[2] == 0.0)


RAGGED = [[6] * (WIDTH + 2), [3, 1], [1], [40] * 3 + [7] * WIDTH + [2] * (3 * WIDTH + 1), [9] * 200 + [8] * 3 + [1]]


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("lengths", RAGGED)
def test_retreat_carries_messages_to_before_the_first_step(kernels: ModuleType, lengths: list[int]) -> None:
    given_problem = problem(5, lengths)
    before = np.full_like(given_problem.stop, np.nan)
    transposed = np.ascontiguousarray(given_problem.transition.T)
    kernels.retreat(given_problem.likelihood, transposed, given_problem.stop, given_problem.offsets, before)
    for lane, length in enumerate(lengths):
        message = given_problem.stop[:, lane]
        for step in range(length - 1, -1, -1):
            seen = given_problem.likelihood[:, given_problem.offsets[step] + lane]
            message = given_problem.transition @ (seen * message)
            message = message / message.sum()
        np.testing.assert_allclose(before[:, lane], message, rtol=1e-12)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("lengths", RAGGED)
def test_advance_finds_the_beliefs_of_last_steps(kernels: ModuleType, lengths: list[int]) -> None:
    n_states, steps = 5, lengths[0]
    given_problem = problem(n_states, lengths)
    counts = np.array([sum(length >= steps - step for length in lengths) for step in range(steps)])
    offsets = np.concatenate(([0], np.cumsum(counts)))
    last = np.full((n_states, len(lengths)), np.nan)
    kernels.advance(given_problem.likelihood, given_problem.transition, given_problem.start, offsets, last)
    for lane, length in enumerate(lengths):
        predicted = given_problem.start[:, lane]
        for step in range(steps - length, steps):
            marginal = predicted * given_problem.likelihood[:, offsets[step] + lane]
            marginal = marginal / marginal.sum()
            predicted = given_problem.transition.T @ marginal
        np.testing.assert_allclose(last[:, lane], marginal, rtol=1e-12)


@pytest.mark.parametrize("scales", [(0.1, 1.0), (1e-99, 1e-90), (1e90, 1e99)])
@pytest.mark.parametrize("lengths", [[900] * (WIDTH + 1), [40] * 3, [500] * WIDTH + [499] * 3 + [7, 2, 1, 1, 1], [1]])
def test_log_totals_add_the_logarithms_of_all_normalisers(scales: tuple[float, float], lengths: list[int]) -> None:
    rng = np.random.default_rng(3)
    offsets = problem(2, lengths).offsets
    scale, shift = rng.uniform(*scales, offsets[-1]), rng.normal(size=offsets[-1])
    totals, expected = np.empty(len(lengths)), np.zeros(len(lengths))
    lanes.log_totals(scale, shift, offsets, totals)
    for begin, end in itertools.pairwise(offsets):
        expected[: end - begin] += np.log(scale[begin:end]) + shift[begin:end]
    np.testing.assert_allclose(totals, expected, rtol=1e-13)


@pytest.mark.parametrize(("bad", "expected"), [(0.0, -np.inf), (np.nan, np.nan)])
def test_log_totals_of_impossible_lanes(bad: float, expected: float) -> None:
    scale = np.full(10 * WIDTH, 0.5)
    scale[3 * WIDTH + 2] = bad
    totals = np.empty(WIDTH)
    lanes.log_totals(scale, np.zeros_like(scale), np.arange(11) * WIDTH, totals)
    np.testing.assert_equal(totals[2], expected)
    np.testing.assert_allclose(np.delete(totals, 2), 10 * np.log(0.5))
