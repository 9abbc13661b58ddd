"""Weights of one state, and of whole paths, with the parameters summed out."""

import naive_collapsed as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from subchain.emissions.categorical import CategoricalSums
from subchain.emissions.collapsed.categorical import learned_table
from subchain.propagation.collapsed.drawn_states import DrawnStates, _other, _weigh_all, _weigh_moves
from subchain.propagation.collapsed.pieces import Legal
from subchain.propagation.collapsed.rows import (
    RowPrior,
    count_rows,
    predictive,
    put_in_path,
    put_state,
    take_out_path,
    take_out_state_of,
    weigh_state_of,
)
from subchain.propagation.collapsed.states import state_room
from subchain.propagation.collapsed.verbs import locate, weigh_apart


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
    """Counts of transitions and symbols for kernels."""
    n_states = len(problem.alpha_initial)
    rows = count_rows(
        RowPrior(np.vstack((problem.alpha_rows, problem.alpha_initial)), np.zeros((n_states + 1, n_states))),
        np.zeros((n_states + 1, n_states)),
    )
    states, values = (np.concatenate(part).astype(np.int32) for part in (paths, problem.data))
    counts = np.zeros_like(problem.beta)
    seen = values >= 0
    np.add.at(counts, (values[seen], states[seen]), 1.0)
    for path in paths:
        put_in_path(rows, path)
    return rows, learned_table(problem.beta, CategoricalSums(counts), values).kernel, states


@njit
def weigh_state(shares, rows, emissions, first, stop, position, out):
    """Weights of the states of one position, by the two ways that draws take: rows of `out` (2, K)."""
    states, n_states = shares.states, rows.counts.shape[1]
    room = state_room(shares, rows)
    before = np.int64(states[position - 1]) if position > first else n_states
    after = np.int64(states[position + 1]) if position + 1 < stop else n_states
    old, seen = np.int64(states[position]), locate(emissions, position)
    other = _other(before, old, after, n_states)
    _weigh_all(room, seen, before, after, old, other, emissions)
    for k in range(n_states):
        out[1, k] = _weigh_moves(room, before, k, after, old) * weigh_apart(emissions, seen, k, old)[0]
        out[0, k] = out[1, k] if k in (old, np.int64(other)) else room.weights[0, k]


@given(problems())
def test_weights_of_a_state_are_ratios_of_joint_probabilities(drawn):
    problem, paths = drawn
    rows, emissions, states = counts_of(problem, paths)
    legal = Legal(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0), np.empty(0))
    shares = DrawnStates(states, states, legal, np.zeros(2, np.uint64), 0, 1.0)
    offsets, n_states = offsets_of(paths), len(problem.alpha_initial)
    for sequence, path in enumerate(paths):
        for t in range(len(path)):
            found = np.empty((2, n_states))
            weigh_state(shares, rows, emissions, *offsets[sequence : sequence + 2], offsets[sequence] + t, found)
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
    return count_rows(RowPrior(concentration, fixed), np.zeros(kind.shape)), np.array(path), kind


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
    counted, free = np.zeros_like(rows.counts), rows.concentration > 0.0
    np.add.at(counted, ([len(counted) - 1, *path[:-1]], path), 1.0)
    np.testing.assert_array_equal(rows.counts, counted)
    np.testing.assert_array_equal(rows.totals, np.where(free, counted, 0.0).sum(axis=1))
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
    after = path[position + 1] if position + 1 < len(path) else n_states
    old = path[position]
    take_out_state_of(rows, before, old, after)
    weights = np.array([weigh_state_of(rows, before, k, after) for k in range(n_states)])
    logs = []
    for k in range(n_states):
        path[position] = k
        logs.append(log_probability(rows, path))
    expected = np.exp(np.array(logs) - max(logs))
    np.testing.assert_allclose(weights / weights.sum(), expected / expected.sum(), rtol=1e-10, atol=1e-300)
    put_state(rows, before, old, after)
    np.testing.assert_array_equal(rows.counts, counted)
