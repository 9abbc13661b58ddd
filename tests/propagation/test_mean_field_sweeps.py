import naive
import naive_mean_field
import numpy as np
import pytest
from chains import random_rows
from hypothesis import given
from hypothesis import strategies as st

from subchain.numerics.vectors import aligned
from subchain.propagation.collapsed.single_chain import padded
from subchain.propagation.mean_field_sweeps import FORBIDDEN, ROOM, sweep


def table(contents, width, padding=0.0):
    """Contents with padding."""
    out = aligned(len(contents), width)
    out[:], out[:, : contents.shape[1]] = padding, contents
    return out


def swept(logs, first, moves, marginals, begins):
    """Marginals and gains of positions between two neighbours, whose marginals are the outer rows."""
    n, n_states = logs.shape
    width = int(padded(n_states))
    inside, gains = table(marginals, width), np.empty(n)
    before, room = aligned(n, width), aligned(ROOM, width)
    sweep(
        table(logs, width, -np.inf), table(moves, width), table(moves.T, width),
        table(np.maximum(first, FORBIDDEN)[None], width)[0], begins, n_states, inside, before, room, gains,
    )  # fmt: skip
    assert not inside[1:-1, n_states:].any()
    return inside[:, :n_states], gains


@st.composite
def problems(draw):
    n, n_states = draw(st.integers(1, 6)), draw(st.integers(1, 19))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([1.0, 30.0, 3000.0]))
    logs = scale * np.log(rng.random((n, n_states)))
    logs[:, 1:][rng.random((n, n_states - 1)) < 0.2] = -np.inf
    first = naive.logs(random_rows(rng, n_states, zeros=draw(st.sampled_from([0.0, 0.4]))))
    moves = scale * np.log(rng.dirichlet(np.ones(n_states), n_states) + 1e-9)
    return logs, first, moves, rng.dirichlet(np.ones(n_states), n)


@given(problem=problems())
def test_a_sweep_is_that_of_the_slow_version(problem):
    logs, first, moves, marginals = problem
    n, n_states = logs.shape
    expected = naive_mean_field.sweep(logs, first, moves, marginals)
    begins = np.array([True] + [False] * (n - 1) + [True])
    outside = np.full((1, n_states), np.nan)  # nobody is told what lies beyond a chain's ends
    found, gains = swept(logs, first, moves, np.vstack((outside, marginals, outside)), begins)
    assert np.allclose(found[1:-1], expected, rtol=1e-10, atol=1e-12)
    believed = expected > 0.0
    worth = (expected[believed] * (logs[believed] - np.log(expected[believed]))).sum()
    assert gains.sum() == pytest.approx(worth, rel=1e-9, abs=1e-9)


@given(problem=problems(), cut=st.integers(0, 6))
def test_neighbours_beyond_the_ends_count_and_a_new_chain_hears_nothing(problem, cut):
    logs, first, moves, marginals = problem
    logs, marginals = (np.vstack((rows[:1], rows, rows[-1:])) for rows in (logs, marginals))
    n = len(logs)
    begins = np.arange(n - 1) == cut
    expected = marginals.copy()
    for i in [*range(1, n - 1), *range(n - 2, 0, -1)]:
        low, high = i - (not begins[i - 1]), i + 1 + (not begins[i])
        expected[i] = naive_mean_field.best_marginal(i - low, logs[low:high], first, moves, expected[low:high])
    found, _ = swept(logs[1:-1], first, moves, marginals, begins)
    assert np.allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_a_position_without_any_possible_state_gains_minus_infinity():
    marginals = np.full((4, 2), 0.5)
    logs, moves = np.array([[-np.inf, 0.0], [0.0, 0.0]]), np.log(np.full((2, 2), 0.5))
    begins = np.array([True, False, True])
    found, gains = swept(logs, naive.logs(np.array([1.0, 0.0])), moves, marginals, begins)
    assert np.isfinite(gains).tolist() == [False, True]
    assert gains[0] == -np.inf
    assert not found[1].any()
