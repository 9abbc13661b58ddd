"""Weights of one state, and of whole paths, with the parameters summed out."""

import naive_collapsed as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from subchain.propagation.collapsed.draw_states import Counts, _other, _weigh_all, _weight, count_paths
from subchain.propagation.collapsed.rows import (
    Rows,
    count_moves,
    predictive,
    put_in_path,
    put_state,
    replace_state,
    take_out_path,
)


@st.composite
def problems(draw):
    """Short sequences full of repetitions, so that every coincidence of neighbours occurs, and priors all different."""
    n_states, n_symbols = draw(st.integers(1, 10)), draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(0, 6), min_size=1, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    few = min(n_states, 3)
    paths = [rng.integers(0, few, n) for n in lengths]
    data = [rng.integers(-1, n_symbols, n) for n in lengths]
    problem = naive.Problem(
        data, rng.exponential(1.0, n_states) + 0.01, rng.exponential(1.0, (n_states, n_states)) + 0.01,
        rng.exponential(1.0, (n_symbols, n_states)) + 0.01,
    )  # fmt: skip
    return problem, paths


def offsets_of(paths):
    return np.concatenate(([0], np.cumsum([len(path) for path in paths])))


def counts_of(problem, paths):
    """The tables that a kernel needs, filled by it."""
    n_states, n_symbols = len(problem.alpha_initial), len(problem.beta)
    width = -(-n_states // 8) * 8
    tables = {name: np.zeros((rows, width)) for name, rows in (("moves", n_states + 1), ("symbols", n_symbols + 1))}
    moves, back, symbols = tables["moves"], tables["moves"].copy(), tables["symbols"]
    back[-1] = symbols[-1] = 1.0
    prior_moves, prior_back, prior_symbols = np.zeros_like(moves), np.zeros_like(moves), np.zeros_like(symbols)
    prior_moves[:, :n_states] = np.vstack((problem.alpha_rows, problem.alpha_initial))
    prior_back[:-1, :n_states] = problem.alpha_rows.T
    prior_symbols[:-1, :n_states] = problem.beta
    totals, prior_totals = np.zeros((2, width)), np.ones((2, width))
    prior_totals[:, :n_states] = problem.alpha_rows.sum(axis=1), problem.beta.sum(axis=0)
    inverses = np.ones((2, width)), np.ones((2, width))
    inverses[0][0], inverses[1][0] = 1.0 / prior_totals
    found = Counts(
        moves, back, symbols, prior_moves, prior_back, prior_symbols, totals, prior_totals, *inverses, np.ones(3)
    )
    states, values = (np.concatenate(part).astype(np.int32) for part in (paths, problem.data))
    count_paths(found, states, values, offsets_of(paths))
    return found, states, values


@njit
def weigh_state(counts, states, values, first, stop, position, out):
    """Weights of the states of one position, by the two ways that draws take: rows of `out` (2, K)."""
    n_states, n_symbols = counts.moves.shape[0] - 1, counts.symbols.shape[0] - 1
    room = np.empty((2, counts.moves.shape[1]))
    before = np.int64(states[position - 1]) if position > first else n_states
    after = np.int64(states[position + 1]) if position + 1 < stop else n_states
    old, symbol = np.int64(states[position]), np.int64(values[position])
    if symbol < 0:
        symbol = n_symbols
    other = _other(before, old, after, n_states)
    _weigh_all(counts, before, after, symbol, old, other, room)
    for k in range(n_states):
        out[1, k] = _weight(counts, before, k, after, symbol, old)
        out[0, k] = out[1, k] if k in (old, np.int64(other)) else room[0, k]


@given(problems())
def test_weights_of_a_state_are_ratios_of_joint_probabilities(drawn):
    problem, paths = drawn
    counts, states, values = counts_of(problem, paths)
    offsets, n_states = offsets_of(paths), len(problem.alpha_initial)
    for sequence, path in enumerate(paths):
        for t in range(len(path)):
            found = np.empty((2, n_states))
            weigh_state(counts, states, values, *offsets[sequence : sequence + 2], offsets[sequence] + t, found)
            expected = naive.gibbs_conditional_by_ratio(paths, problem, sequence, t)
            for weights in found:
                np.testing.assert_allclose(weights / weights.sum(), expected, rtol=1e-10)


# ---- rows that are partly fixed --------------------------------------------------------------------------------------


@st.composite
def rows_of(draw, n_states=3):
    """Rows with free, fixed and forbidden entries; the last one is that of first states."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = rng.choice(3, (n_states + 1, n_states), p=[0.6, 0.2, 0.2])
    kind[:, 0] = 0
    fixed = np.where(kind == 1, 0.15, 0.0)
    concentration = np.where(kind == 0, rng.exponential(1.0, kind.shape) + 0.1, 0.0)
    path = [int(rng.choice(np.flatnonzero(kind[-1] < 2)))]
    while len(path) < 6:
        path.append(int(rng.choice(np.flatnonzero(kind[path[-1]] < 2))))
    counts, shares = np.zeros(kind.shape), 1.0 - fixed.sum(axis=1)
    rows = Rows(counts, np.zeros(len(kind)), concentration, concentration.sum(axis=1), fixed, shares)
    return rows, np.array(path), kind


def log_probability(rows, path):
    """Of a path, one move after the other, by the definition."""
    counts = np.zeros_like(rows.counts)
    before, total = rows.counts.shape[1], 0.0
    for state in path:
        free = rows.concentration[before] > 0.0
        if free[state]:
            share = (rows.concentration[before] + counts[before])[free].sum()
            total += np.log(rows.shares[before] * (rows.concentration[before, state] + counts[before, state]) / share)
            counts[before, state] += 1.0
        else:
            with np.errstate(divide="ignore"):
                total += np.log(rows.fixed[before, state])
        before = state
    return total


@given(rows_of())
def test_a_path_is_as_probable_as_its_moves_one_after_the_other(drawn):
    rows, path, _ = drawn
    expected = log_probability(rows, path)
    assert put_in_path(rows, path) == pytest.approx(expected)
    again = Rows(np.zeros_like(rows.counts), np.zeros_like(rows.totals), *rows[2:])
    count_moves(again, path, np.array([0, len(path)]), 1.0)
    np.testing.assert_array_equal(again.counts, rows.counts)
    np.testing.assert_array_equal(again.totals, rows.counts.sum(axis=1))
    assert take_out_path(rows, path) == pytest.approx(expected)
    assert not rows.counts.any()
    assert not rows.totals.any()


@given(rows_of())
def test_predictive_rows_share_what_the_fixed_entries_leave(drawn):
    rows, path, kind = drawn
    put_in_path(rows, path)
    found = np.empty_like(rows.counts)
    predictive(rows, found)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(found[kind == 1], 0.15)
    np.testing.assert_array_equal(found[kind == 2], 0.0)


@given(rows_of(), st.integers(0, 5))
def test_a_state_between_two_others_weighs_what_its_path_does(drawn, position):
    rows, path, _ = drawn
    put_in_path(rows, path)
    counted, n_states = rows.counts.copy(), rows.counts.shape[1]
    before = path[position - 1] if position else n_states
    after = path[position + 1] if position + 1 < len(path) else -1
    weights, old = np.empty(n_states), path[position]
    replace_state(rows, before, old, after, np.arange(n_states), weights)
    logs = []
    for k in range(n_states):
        path[position] = k
        logs.append(log_probability(rows, path))
    expected = np.exp(np.array(logs) - max(logs))
    np.testing.assert_allclose(weights / weights.sum(), expected / expected.sum(), rtol=1e-10, atol=1e-300)
    put_state(rows, before, old, after)
    np.testing.assert_array_equal(rows.counts, counted)
