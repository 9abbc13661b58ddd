"""The max-product kernels: lanes and single chains are two layouts of the same numbers."""

import naive
import numpy as np
import pytest
from chains import random_rows
from hypothesis import given
from hypothesis import strategies as st

from subchain.propagation.layout import side_by_side
from subchain.propagation.viterbi import FRESH, STRIP, sweep, sweep_lanes, trace, trace_lanes


def lanes_path(logs, initial, transition, lengths):
    """δ (T, K) and the paths of sequences side by side."""
    edges = np.cumsum([0, *lengths])
    (lanes,) = side_by_side(edges[:-1], edges[1:], len(lengths))
    delta = np.ascontiguousarray(logs[lanes.positions].T)
    start = np.repeat(naive.logs(initial)[:, None], lanes.n_lanes, axis=1)
    sweep_lanes(delta, naive.logs(transition), start, lanes.offsets)
    origins = lanes.positions[: lanes.n_lanes]
    stops = edges[np.searchsorted(edges, origins, side="right")]
    states = np.full(len(logs), -1)
    trace_lanes(delta, naive.logs(transition).T.copy(), lanes.offsets, origins, origins, stops, states)
    flat = np.empty_like(logs)
    flat[lanes.positions] = delta.T
    return flat, states


@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=2 * STRIP + 5),
    n_states=st.sampled_from([1, 2, 3, 4, 7, 12]),
    zeros=st.sampled_from([0.0, 0.4]),
)
def test_lanes_equal_single_chains_to_the_bit(lengths: list[int], n_states: int, zeros: float):
    rng = np.random.default_rng(sum(lengths))
    logs = np.log(rng.random((sum(lengths), n_states)))
    initial, transition = random_rows(rng, n_states), random_rows(rng, n_states, n_states, zeros=zeros)
    delta, states = lanes_path(logs, initial, transition, lengths)
    edges = np.cumsum([0, *lengths])
    for start, length in zip(edges, lengths, strict=False):
        alone, path = logs[start : start + length].copy(), np.empty(length, dtype=np.int64)
        lost = sweep(alone, naive.logs(transition), naive.logs(initial))
        trace(alone, naive.logs(transition).T.copy(), np.zeros(n_states), path)
        np.testing.assert_allclose(delta[start : start + length], alone + lost, rtol=1e-13)
        np.testing.assert_array_equal(states[start : start + length], path)


def test_ties_go_to_the_lowest_state():
    logs, transition = np.zeros((40, 3)), np.full((3, 3), 1.0 / 3.0)
    _, states = lanes_path(logs, np.full(3, 1.0 / 3.0), transition, [11] + [1] * 29)
    np.testing.assert_array_equal(states, np.zeros(40))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32])
def test_states_are_written_in_the_type_that_is_given(dtype: type):
    rng = np.random.default_rng(0)
    logs, transition = np.log(rng.random((50, 5))), random_rows(rng, 5, 5)
    expected, _ = naive.best_path(logs, np.full(5, 0.2), transition)
    states = np.empty(50, dtype=dtype)
    sweep(logs, np.log(transition), np.log(np.full(5, 0.2)))
    trace(logs, np.log(transition).T.copy(), np.zeros(5), states)
    np.testing.assert_array_equal(states, expected)


def test_what_follows_decides_on_the_last_state():
    delta, transition = np.zeros((1, 2)), np.array([[0.9, 0.1], [0.4, 0.6]])
    states = np.empty(1, dtype=np.int64)
    for following in (0, 1):
        trace(delta, np.log(transition).T.copy(), np.log(transition)[:, following], states)
        assert states[0] == following


def test_delta_stays_small_and_its_loss_is_counted():
    rng = np.random.default_rng(1)
    logs = np.log(rng.random((5000, 3))) - 1e5
    _, score = naive.best_path(logs, np.full(3, 1.0 / 3.0), np.full((3, 3), 1.0 / 3.0))
    lost = sweep(logs, np.log(np.full((3, 3), 1.0 / 3.0)), np.log(np.full(3, 1.0 / 3.0)))
    assert np.abs(logs).max() < 1.1e5 * FRESH
    assert lost + logs[-1].max() == pytest.approx(score, rel=1e-12)
