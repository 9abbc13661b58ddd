from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subchain.datasets import sample_chain
from subchain.datasets.paths import path_blocks
from subchain.errors import InputError

INITIAL = np.array([0.2, 0.5, 0.3])
TRANSITION = np.array([[0.7, 0.2, 0.1], [0.0, 0.4, 0.6], [0.5, 0.0, 0.5]])


def test_transition_frequencies_approach_the_truth():
    states = sample_chain(INITIAL, TRANSITION, 200_000, np.random.default_rng(0))
    counts = np.zeros((3, 3))
    np.add.at(counts, (states[:-1], states[1:]), 1)
    np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), TRANSITION, atol=0.01)


def test_first_states_follow_the_initial_distribution():
    offsets = 2 * np.arange(50_001)
    states = np.concatenate(list(path_blocks(INITIAL, TRANSITION, offsets, np.random.default_rng(0))))
    np.testing.assert_allclose(np.bincount(states[::2]) / 50_000, INITIAL, atol=0.01)


def test_impossible_moves_never_happen():
    states = sample_chain(INITIAL, TRANSITION, 100_000, np.random.default_rng(1))
    moves = set(zip(states[:-1].tolist(), states[1:].tolist(), strict=True))
    assert moves == {(j, k) for j in range(3) for k in range(3) if TRANSITION[j, k] > 0}


def test_a_path_is_a_function_of_the_seed():
    one, same, other = (sample_chain(INITIAL, TRANSITION, 500, np.random.default_rng(seed)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, same)
    assert np.any(one != other)


@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=8),
    block_size=st.integers(1, 30),
    seed=st.integers(0, 2**32 - 1),
)
def test_blocks_of_any_size_make_the_same_paths(lengths: list[int], block_size: int, seed: int):
    offsets = np.cumsum([0, *lengths])
    whole = np.concatenate(list(path_blocks(INITIAL, TRANSITION, offsets, np.random.default_rng(seed))))
    pieces = list(path_blocks(INITIAL, TRANSITION, offsets, np.random.default_rng(seed), block_size))
    assert max(map(len, pieces)) <= block_size
    np.testing.assert_array_equal(np.concatenate(pieces), whole)


@given(lengths=st.lists(st.integers(1, 12), min_size=1, max_size=8), block_size=st.integers(1, 30))
def test_every_sequence_begins_afresh(lengths: list[int], block_size: int):
    offsets = np.cumsum([0, *lengths])
    ladder = np.eye(12, k=1)
    ladder[-1, -1] = 1.0
    blocks = path_blocks(np.eye(12)[0], ladder, offsets, np.random.default_rng(0), block_size)
    np.testing.assert_array_equal(np.concatenate(list(blocks)), np.concatenate([np.arange(n) for n in lengths]))


@pytest.mark.parametrize(
    ("initial", "transition", "message"),
    [
        ([0.5, 0.6], np.eye(2), "initial, row 0: probabilities must sum to 1, these sum to 1.1"),
        ([0.5, 0.5], [[1.0, 0.0], [0.7, 0.2]], "transition, row 1: probabilities must sum to 1, these sum to 0.9"),
        ([0.5, 0.5], [[1.0, 0.0], [-0.5, 1.5]], "transition, row 1: probabilities must be finite and not negative"),
        ([0.5, 0.5], [[1.0, 0.0], [np.nan, 1.0]], "transition, row 1: probabilities must be finite"),
        ([0.5, 0.5], np.eye(3), r"given \(2,\) and \(3, 3\)"),
    ],
)
def test_what_is_no_chain_is_refused(initial, transition, message: str):
    with pytest.raises(InputError, match=message):
        sample_chain(initial, transition, 10, np.random.default_rng(0))


def test_an_empty_path_is_refused():
    with pytest.raises(InputError, match="n must be at least 1; given 0"):
        sample_chain(INITIAL, TRANSITION, 0, np.random.default_rng(0))
