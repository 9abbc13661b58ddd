"""Marginals, best states and predictive scores of every position, written where the caller wants them."""

import numpy as np
import pytest
import tables
from chains import nearly_periodic, sticky
from tables import Case, random_case

from subchain.engines import CpuEngine
from subchain.errors import ImpossibleSequenceError

ENGINE = CpuEngine(2)
#: Each function with the number of axes and the type of its answer.
ANSWERS = [
    (tables.smooth, 2, float),
    (tables.filter, 2, float),
    (tables.best_states, 1, int),
    (tables.log_increments, 1, float),
]


def hard_case() -> Case:
    case = random_case([20, 2, 30], 3, np.eye(3))
    case.logs[20:22] = [[-800.0, -801.0, 0.0], [0.0, 0.0, -np.inf]]
    return case


CASES = {
    "ragged": random_case([11, 0, 1, 30], 4),
    "cut": random_case([7, 0, 300, 5003], 3),
    "very sticky": random_case([5003], 3, sticky(3, 1.0 - 1e-7), 0.2),
    "almost periodic": random_case([4001, 20], 3, nearly_periodic(3, 1e-12), 0.01),
    "rows that lose weight": random_case([3001, 20], 3, 0.6 * sticky(3, 0.5)),
    "many states": random_case([60] * 5 + [2000], 50),
    "in log space": hard_case(),
}


@pytest.mark.parametrize("name", CASES)
def test_every_position_equals_the_judge(name: str):
    case = CASES[name]
    truth = case.marginals()
    answers, totals = [], []
    for write, n_axes, dtype in ANSWERS:
        answers.append(np.empty(case.logs.shape[:n_axes], dtype))
        totals.append(write(ENGINE, case.surrogate, case.part, answers[-1]))
    smoothed, filtered, states, increments = answers
    np.testing.assert_allclose(smoothed, np.concatenate([one.smoothed for one in truth]), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(filtered, np.concatenate([one.filtered for one in truth]), rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(states, smoothed.argmax(axis=1))
    np.testing.assert_allclose(increments, np.concatenate([one.increments for one in truth]), rtol=1e-9, atol=1e-11)
    for total in totals:
        np.testing.assert_allclose(total[np.array(case.lengths) > 0], [one.log_likelihood for one in truth], rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_beliefs_in_given_states_are_entries_of_the_marginals(name: str):
    case = CASES[name]
    marginals = np.empty(case.logs.shape)
    tables.smooth(ENGINE, case.surrogate, case.part, marginals)
    states = np.arange(len(marginals)).astype(np.uint8) % marginals.shape[1]
    found = np.empty(len(marginals))
    tables.of_states(ENGINE, case.surrogate, case.part, states, found)
    np.testing.assert_allclose(found, marginals[np.arange(len(marginals)), states], rtol=1e-12)


def test_answers_go_into_files_of_single_precision(tmp_path):
    case = CASES["cut"]
    marginals, increments = np.empty(case.logs.shape), np.empty(len(case.logs))
    tables.smooth(ENGINE, case.surrogate, case.part, marginals)
    tables.log_increments(ENGINE, case.surrogate, case.part, increments)
    for name, write, expected in (
        ("beliefs", tables.smooth, marginals),
        ("increments", tables.log_increments, increments),
    ):
        path = tmp_path / f"{name}.npy"
        write(ENGINE, case.surrogate, case.part, np.lib.format.open_memmap(path, "w+", np.float32, expected.shape))
        np.testing.assert_array_equal(np.load(path), expected.astype(np.float32))


@pytest.mark.parametrize(("write", "n_axes", "dtype"), ANSWERS)
def test_an_impossible_sequence_is_named_with_its_position(write, n_axes: int, dtype: type):
    case = random_case([10, 7], 2)
    case.logs[13] = -np.inf
    with pytest.raises(ImpossibleSequenceError, match="sequence 1 .* position 3"):
        write(ENGINE, case.surrogate, case.part, np.empty(case.logs.shape[:n_axes], dtype))
