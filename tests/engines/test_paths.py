"""Paths drawn by the engine: the draws of the whole chain, however it was cut and whoever computes."""

from typing import Any

import numpy as np
import pytest
from chains import left_right, nearly_periodic, sticky
from tables import random_case

from subchain.engines import CpuEngine
from subchain.errors import ImpossibleSequenceError
from subchain.propagation import forward_backward
from subchain.propagation import sample_paths as sample_tables

SEED = np.random.SeedSequence(7)


CASES = {
    "sentences": random_case([11, 0, 1, 30] * 200, 4),
    "mixed": random_case([7, 0, 300, 20_011], 3),
    "sticky": random_case([20_011], 3, sticky(3, 0.999), 0.2),
    "almost periodic": random_case([9001, 20], 3, nearly_periodic(3, 1e-12), 0.01),
    "left to right": random_case([5003], 4, left_right(4, 0.999), 0.01),
    "many states": random_case([60] * 20 + [3000], 50),
}


@pytest.mark.parametrize("name", CASES)
def test_paths_are_those_of_chains_in_one_piece(name: str):
    case = CASES[name]
    found = CpuEngine(2).sample_paths(case.surrogate, case.part, 3, SEED)
    expected = sample_tables(case.logs, case.initial, case.transition, 3, SEED, case.lengths)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", CASES)
def test_one_core_and_two_draw_the_same(name: str):
    one, two = (CpuEngine(n).sample_paths(CASES[name].surrogate, CASES[name].part, 2, SEED) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_states_are_as_frequent_as_believed():
    case = random_case([300, 4000], 3, sticky(3, 0.8))
    paths = CpuEngine(1).sample_paths(case.surrogate, case.part, 400, SEED)
    marginals = forward_backward(case.logs, case.initial, case.transition, case.lengths).marginals
    share = (paths[:, :, None] == np.arange(3)).mean(axis=0)
    assert np.abs(share - marginals).max() < 0.15
    assert np.abs(share - marginals).mean() < 0.02


def test_sequences_worked_out_in_logarithms():
    case = random_case([20, 2, 30], 3, np.eye(3))
    case.logs[20:22] = [[-800.0, -801.0, 0.0], [0.0, 0.0, -np.inf]]
    paths = CpuEngine(1).sample_paths(case.surrogate, case.part, 2000, SEED)
    first, second = paths[:, 20], paths[:, 21]
    np.testing.assert_array_equal(first, second)
    odds = case.initial[1] / case.initial[0] * np.exp(-1.0)
    assert (first == 1).mean() == pytest.approx(odds / (1.0 + odds), abs=0.05)
    assert (first != 2).all()


def test_a_long_sequence_worked_out_in_log_space_beside_another():
    case = random_case([3000, 5000, 3001], 3, np.eye(3))
    case.logs[3000:3002] = [[-800.0, -801.0, 0.0], [0.0, 0.0, -np.inf]]
    paths = CpuEngine(2).sample_paths(case.surrogate, case.part, 20, SEED)
    expected = sample_tables(case.logs, case.initial, case.transition, 20, SEED, case.lengths)
    np.testing.assert_array_equal(paths, expected)


@pytest.mark.parametrize("dtype", [np.dtype(np.uint8), np.dtype(np.int32).newbyteorder()])
def test_draws_go_where_they_are_wanted(dtype: np.dtype[Any]):
    case = random_case([50, 3000], 3)
    out = np.empty((2, 3050), dtype=dtype)
    assert CpuEngine(1).sample_paths(case.surrogate, case.part, 2, SEED, out) is out
    np.testing.assert_array_equal(out, CpuEngine(1).sample_paths(case.surrogate, case.part, 2, SEED))


def test_an_impossible_sequence_is_named_with_its_position():
    case = random_case([10, 7], 2)
    case.logs[13] = -np.inf
    with pytest.raises(ImpossibleSequenceError, match="sequence 1 .* position 3"):
        CpuEngine(1).sample_paths(case.surrogate, case.part, 1, SEED)
