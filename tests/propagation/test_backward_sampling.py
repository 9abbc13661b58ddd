"""Draws depend on seed, path and position alone, so cuts and layouts cannot be seen in them."""

import numpy as np
import pytest
from chains import nearly_periodic, random_rows, sticky
from hypothesis import given
from hypothesis import strategies as st

from subchain.numerics.random import key_of
from subchain.propagation import filter
from subchain.propagation.backward_sampling import draw, draw_log, enter, follow
from subchain.propagation.layout import end_to_end

KEY = key_of(np.random.SeedSequence(42))


def filtered(n_positions: int, transition, scale: float = 1.0):
    n_states = len(transition)
    rng = np.random.default_rng(3)
    logs = scale * np.log(rng.random((n_positions, n_states)))
    return np.ascontiguousarray(filter(logs, np.full(n_states, 1.0 / n_states), transition).marginals.T)


def whole_path(alpha, transition, path: int = 0):
    states = np.empty(alpha.shape[1], dtype=np.int64)
    draw(
        alpha,
        transition.T.copy(),
        end_to_end(np.array([0]), np.array([len(states)])),
        np.array([-1]),
        KEY,
        path,
        states,
    )
    return states


@pytest.mark.parametrize(
    "transition", [random_rows(np.random.default_rng(0), 4, 4), sticky(5, 0.999), nearly_periodic(3, 1e-9), np.eye(2)]
)
@given(cuts=st.sets(st.integers(1, 199), max_size=8))
def test_a_cut_chain_is_drawn_like_a_whole_one(transition, cuts: set[int]):
    alpha, transposed = filtered(200, transition), transition.T.copy()
    edges = np.array([0, *sorted(cuts), 200])
    walks, is_last = end_to_end(edges[:-1], edges[1:]), edges[1:] == 200
    entries = np.empty((len(is_last), len(transition)), dtype=np.uint8)
    enter(alpha, transposed, walks, is_last, KEY, 7, entries)
    following = np.empty(len(is_last), dtype=np.int64)
    follow(entries, is_last, following)
    states = np.empty(200, dtype=np.int64)
    draw(alpha, transposed, walks, following, KEY, 7, states)
    np.testing.assert_array_equal(states, whole_path(alpha, transition, 7))
    np.testing.assert_array_equal(following[:-1], states[edges[1:-1]])


def test_logarithms_draw_the_same_states():
    transition = sticky(4, 0.7)
    alpha = filtered(300, transition)
    states = np.empty(300, dtype=np.int64)
    shifted = np.log(alpha.T) - 1e6 * np.arange(300)[:, None]
    draw_log(shifted, np.log(transition).T.copy(), np.zeros(4), 0, KEY, 2, states)
    np.testing.assert_array_equal(states, whole_path(alpha, transition, 2))


def test_a_state_of_weight_zero_is_never_drawn():
    alpha = np.array([[0.0] * 4000, [1e-3] * 4000, [0.0] * 4000, [0.999] * 4000, [0.0] * 4000])
    states = np.empty(4000, dtype=np.int64)
    draw(alpha, np.ones((5, 5)), end_to_end(np.arange(4000), np.arange(4000) + 1), np.full(4000, -1), KEY, 0, states)
    assert set(states) == {1, 3}
