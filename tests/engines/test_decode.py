"""Decoding by the engine: no path is better, whether the chain was cut or not, whoever computes."""

import naive
import numpy as np
import pytest
from chains import left_right, nearly_periodic, random_rows, sticky
from hypothesis import given
from hypothesis import strategies as st
from tables import Case, random_case

from subchain.data import Evidence
from subchain.engines import CpuEngine
from subchain.engines.cpu import decode
from subchain.errors import ImpossibleSequenceError, InputError
from subchain.propagation import viterbi

ENGINE = CpuEngine(2)


def assert_best_paths(case: Case, engine: CpuEngine = ENGINE) -> None:
    states, scores = engine.viterbi(case.surrogate, case.part)
    assert (scores[np.array(case.lengths) == 0] == 0.0).all()
    found = zip(case.chains(), [path for path in case.data.split(states) if len(path)], strict=True)
    for (chain, path), score in zip(found, scores[np.array(case.lengths) > 0], strict=True):
        best = viterbi(*chain).log_probability[0]
        assert score == pytest.approx(best, rel=1e-12)
        assert naive.path_log_probability(path, *chain) == pytest.approx(best, rel=1e-12)


@given(
    lengths=st.lists(st.integers(0, 12), min_size=1, max_size=30).filter(sum),
    n_states=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_many_sequences(lengths: list[int], n_states: int, seed: int):
    assert_best_paths(random_case(lengths, n_states, seed=seed))


@pytest.mark.parametrize(
    ("lengths", "n_states"),
    [([1], 3), ([2048], 2), ([2049], 4), ([20_011], 3), ([9001, 0, 1, 5003, 5], 5), ([4001, 7, 1300], 50), ([3001], 1)],
)
def test_lengths_that_divide_by_nothing(lengths: list[int], n_states: int):
    assert_best_paths(random_case(lengths, n_states))


@pytest.mark.parametrize(
    ("transition", "spread"),
    [
        pytest.param(sticky(3, 0.999), 1.0, id="sticky"),
        pytest.param(sticky(3, 0.999), 0.2, id="seldom met"),
        pytest.param(sticky(4, 1.0 - 1e-7), 1.0, id="very sticky"),
        pytest.param(nearly_periodic(5, 1e-3), 0.1, id="nearly periodic"),
        pytest.param(nearly_periodic(3, 1e-12), 0.01, id="almost periodic"),
        pytest.param(nearly_periodic(4, 0.0), 1.0, id="periodic"),
        pytest.param(left_right(4, 0.999), 0.1, id="left to right"),
        pytest.param(np.eye(3), 1.0, id="apart"),
        pytest.param(sticky(3, 0.2), 900.0, id="nearly deterministic"),
        pytest.param(sticky(3, 0.9), 0.0, id="ties everywhere"),
    ],
)
def test_cut_chains_have_the_best_path(transition, spread: float):
    assert_best_paths(random_case([15_013, 30], len(transition), transition, spread))


def test_a_chain_whose_memory_is_uneven():
    """Probes find a short memory; a stretch between them says nothing, so that its borders are settled afterwards."""
    case = random_case([60_000], 3, sticky(3, 0.95), 3.0)
    case.logs[30_600:31_300] *= 1e-6
    assert decode._lead(case.messages) < 100
    assert_best_paths(case)


def test_every_border_in_doubt(monkeypatch: pytest.MonkeyPatch):
    """A lead that is far too short: all that is left is to settle, piece by piece."""
    monkeypatch.setattr(decode, "_lead", lambda messages: 1)
    for transition in (sticky(3, 0.999), nearly_periodic(4, 1e-6), left_right(3, 0.9995)):
        assert_best_paths(random_case([6007, 3001], len(transition), transition, 0.3))


def test_missing_observations_and_evidence():
    case = random_case([40, 5001, 9], 3)
    rng = np.random.default_rng(2)
    case.missing = np.flatnonzero(rng.random(len(case.logs)) < 0.3)
    known = np.where(rng.random(len(case.logs)) < 0.1, rng.integers(0, 3, len(case.logs)), -1)
    case.evidence = Evidence.build(case.data, 3, states=known)
    assert_best_paths(case)
    states, _ = ENGINE.viterbi(case.surrogate, case.part)
    np.testing.assert_array_equal(states[known >= 0], known[known >= 0])


def test_forbidden_moves_are_never_taken():
    transition = random_rows(np.random.default_rng(4), 5, 5, zeros=0.5)
    case = random_case([10_000, 50], 5, transition)
    assert_best_paths(case)
    states, _ = ENGINE.viterbi(case.surrogate, case.part)
    for path in case.data.split(states):
        assert (transition[path[:-1], path[1:]] > 0.0).all()


@pytest.mark.parametrize(
    "case",
    [
        random_case([7, 0, 300, 20_000], 3),
        random_case([20_000], 3, nearly_periodic(3, 1e-12), 0.01),
        random_case([11] * 500, 4),
        random_case([3000, 60], 50),
    ],
    ids=["mixed", "serial", "sentences", "many states"],
)
def test_one_core_and_two_give_the_same_bits(case: Case):
    one, two = (CpuEngine(n).viterbi(case.surrogate, case.part) for n in (1, 2))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])


def test_states_go_where_they_are_wanted(tmp_path):
    case = random_case([5000, 20], 3)
    expected, scores = ENGINE.viterbi(case.surrogate, case.part)
    out = np.lib.format.open_memmap(tmp_path / "states.npy", mode="w+", dtype=np.uint8, shape=(5020,))
    found, same_scores = ENGINE.viterbi(case.surrogate, case.part, out)
    assert found is out
    np.testing.assert_array_equal(np.load(tmp_path / "states.npy"), expected)
    np.testing.assert_array_equal(scores, same_scores)


def test_states_go_into_an_array_of_the_other_byte_order():
    case = random_case([5000, 20], 3)
    out = np.empty(5020, dtype=np.dtype(np.int32).newbyteorder())
    assert ENGINE.viterbi(case.surrogate, case.part, out)[0] is out
    np.testing.assert_array_equal(out, ENGINE.viterbi(case.surrogate, case.part)[0])


@pytest.mark.parametrize("transition", [sticky(2, 0.6), nearly_periodic(2, 0.0), sticky(2, 1.0 - 1e-9)])
@pytest.mark.parametrize("at", [0, 777, 19_999])
def test_an_impossible_sequence_is_named_with_its_position(transition, at: int):
    case = random_case([100, 20_000, 5], 2, transition)
    case.logs[100 + at] = -np.inf
    with pytest.raises(ImpossibleSequenceError, match=f"sequence 1 .* position {at}"):
        ENGINE.viterbi(case.surrogate, case.part)


def test_all_impossible_sequences_are_counted():
    case = random_case([5, 6, 7, 8], 2, np.eye(2))
    case.logs[[0, 5, 11], 0] = -np.inf
    case.logs[[3, 9, 14], 1] = -np.inf
    with pytest.raises(ImpossibleSequenceError, match="sequence 0 .and 2 more. .* position 3"):
        ENGINE.viterbi(case.surrogate, case.part)


@pytest.mark.parametrize("out", [np.empty(19, int), np.empty(20), np.empty(20, np.uint8), np.empty((20, 1), int)])
def test_an_array_that_cannot_hold_the_states_is_refused(out):
    case = random_case([20], 300)
    with pytest.raises(InputError, match=r"out is .* need the shape \(20,\) and integers up to 299"):
        ENGINE.viterbi(case.surrogate, case.part, out)


def test_nothing_to_decode():
    case = random_case([0, 0], 2)
    states, scores = ENGINE.viterbi(case.surrogate, case.part)
    assert states.shape == (0,)
    assert scores.tolist() == [0.0, 0.0]
