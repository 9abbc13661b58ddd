"""Blocks of states show, and states without data are not shown."""

from __future__ import annotations

import numpy as np
import pytest

from subchain.tasks.overview import block_order, used_states


@pytest.mark.parametrize("seed", range(5))
def test_states_of_a_block_stand_side_by_side(seed) -> None:
    rng = np.random.default_rng(seed)
    block = rng.permutation(np.repeat(np.arange(4), 5))
    moves = rng.random((20, 20)) * np.where(block[:, None] == block, 1.0, 0.02) + np.diag(np.full(20, 9.0))
    ordered = block[block_order(moves)]
    assert (np.diff(ordered) != 0).sum() == 3


def test_an_order_is_a_permutation_whatever_the_moves() -> None:
    for n in (1, 2, 3, 7):
        for moves in (np.zeros((n, n)), np.eye(n), np.ones((n, n))):
            assert sorted(block_order(moves)) == list(range(n))


def test_without_any_data_all_states_are_in_use() -> None:
    np.testing.assert_array_equal(used_states(np.zeros(3)), [0, 1, 2])
    np.testing.assert_array_equal(used_states(np.array([2.0, 5.0, 0.9])), [0, 1])
