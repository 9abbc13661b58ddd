"""Evidence: what is known about the states, as log weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subchain.data import Evidence, Sequences, Vocabulary, as_sequences
from subchain.data.missing import BLOCK_VALUES
from subchain.errors import InputError

N_STATES = 3
DATA = Sequences(np.array([0, 1, 2, -1, 1]), [0, 2, 2, 5], names=["p", "q", "r"])
WORDS = as_sequences([["the", "run"], ["run", None]])


def spelt_out(evidence: Evidence | None, data: Sequences = DATA) -> np.ndarray:
    """The weights at all positions, one row per position."""
    assert evidence is not None
    return evidence.log_weights(np.arange(data.n_observations), data.values).T


def forbidden(evidence: Evidence | None, data: Sequences = DATA) -> list[list[int]]:
    return [np.flatnonzero(np.isneginf(row)).tolist() for row in spelt_out(evidence, data)]


def test_nothing_known_is_no_evidence() -> None:
    assert Evidence.build(DATA, N_STATES) is None


@pytest.mark.parametrize(
    "states",
    [
        [2, -1, 0, -1, 1],
        np.array([2, -1, 0, -1, 1], dtype=np.int8),
        [np.array([2, -1]), [], [0, -1, 1]],
        ([2, -1], None, [0, -1, 1]),
        Sequences(np.array([2, -1, 0, -1, 1]), [0, 2, 2, 5]),
    ],
)
def test_known_states_forbid_the_others(states: object) -> None:
    found = Evidence.build(DATA, N_STATES, states=states)
    assert forbidden(found) == [[0, 1], [], [1, 2], [], [0, 2]]
    assert set(np.unique(spelt_out(found))) == {-np.inf, 0.0}


@pytest.mark.parametrize("states", [np.array([np.nan, 1.0, 0.0]), [None, 1, 0], [np.nan, 1, 0]])
def test_labels_with_gaps_may_have_nan_or_none_there(states: object) -> None:
    data = Sequences(np.zeros(3))
    found = Evidence.build(data, 2, states=states)
    assert found is not None
    assert np.array_equal(found.log_weights(np.arange(3), data.values), [[0, -np.inf, 0], [0, 0, -np.inf]])


def test_positions_of_known_states_are_found_after_states_are_reordered() -> None:
    found = Evidence.build(Sequences(np.zeros(4)), 3, states=[-1, 2, 0, 1], evidence=np.zeros((4, 3)))
    assert found is not None
    positions, states = found.take(np.array([2, 0, 1])).known()
    assert (positions.tolist(), states.tolist()) == ([1, 2, 3], [0, 1, 2])
    soft = Evidence.build(Sequences(np.zeros(4)), 3, evidence=np.zeros((4, 3)))
    assert soft is not None
    assert len(soft.known()[0]) == 0


def test_a_sequence_without_labels_is_unknown() -> None:
    assert forbidden(Evidence.build(DATA, N_STATES, states=[None, None, [0, 0, 0]])) == [[], [], *[[1, 2]] * 3]


@pytest.mark.parametrize("as_type", [np.bool_, np.uint8, np.int64])
def test_legal_states_per_symbol(as_type: type) -> None:
    legal: np.ndarray = np.array([[1, 1, 0], [0, 1, 0], [1, 1, 1]]).astype(as_type)
    assert forbidden(Evidence.build(DATA, N_STATES, allowed=legal)) == [[2], [0, 2], [], [], [0, 2]]


def test_codes_in_a_column_of_their_own_are_symbols() -> None:
    data = Sequences(DATA.values.astype(np.int8)[:, None], DATA.offsets)
    legal = np.array([[1, 1, 0], [0, 1, 0], [1, 1, 1]], dtype=bool)
    assert forbidden(Evidence.build(data, N_STATES, allowed=legal), data) == [[2], [0, 2], [], [], [0, 2]]


def test_narrow_codes_meet_a_wide_table() -> None:
    data = Sequences(np.array([5, -1], dtype=np.int8))
    legal = np.ones((1000, 2), dtype=bool)
    legal[5, 0] = False
    assert forbidden(Evidence.build(data, 2, allowed=legal), data) == [[0], []]


@pytest.mark.parametrize(
    ("data", "allowed", "expected"),
    [
        (WORDS, {"the": [0], "run": {1, 2}}, [[1, 2], [0], [0], []]),
        (WORDS, {"the": 2}, [[0, 1], [], [], []]),
        (WORDS, {}, [[], [], [], []]),
        (DATA, {1: [0, 1]}, [[], [2], [], [], [2]]),
        (DATA, {np.int64(2): np.array([2])}, [[], [], [0, 1], [], []]),
    ],
)
def test_legal_states_by_a_mapping_leave_other_symbols_free(data: Sequences, allowed: Any, expected: Any) -> None:
    assert forbidden(Evidence.build(data, N_STATES, allowed=allowed), data) == expected


def test_legal_states_per_position() -> None:
    legal = np.ones((5, N_STATES), dtype=bool)
    legal[1, 0] = legal[4, 2] = False
    for allowed in (legal, [legal[:2], [], legal[2:]], [legal[:2], np.empty((0, 3)), legal[2:].tolist()]):
        assert forbidden(Evidence.build(DATA, N_STATES, allowed=allowed)) == [[], [0], [], [], [2]]
    assert forbidden(Evidence.build(DATA, N_STATES, allowed=[None, None, legal[2:]])) == [[], [], [], [], [2]]


def test_log_weights_per_position() -> None:
    weights = np.random.default_rng(0).normal(size=(5, N_STATES))
    weights[3, 0] = -np.inf
    for evidence in (weights, [weights[:2], None, weights[2:]], Sequences(weights.astype(np.float32), DATA.offsets)):
        assert np.allclose(spelt_out(Evidence.build(DATA, N_STATES, evidence=evidence)), weights, rtol=1e-6)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 13))
def test_what_several_say_adds_up(seed: int, n_states: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    data = Sequences(rng.integers(-1, 4, n))
    always = rng.integers(n_states, size=n)
    legal = rng.random((n, n_states)) < 0.5
    legal[np.arange(n), always] = True
    states = np.where(rng.random(n) < 0.5, always, -1)
    weights = rng.normal(size=(n, n_states))
    found = Evidence.build(data, n_states, allowed=[legal], states=states, evidence=weights)
    known = (states[:, None] == -1) | (states[:, None] == np.arange(n_states))
    expected = np.where(legal & known, weights, -np.inf)
    assert np.array_equal(spelt_out(found, data), expected)

    index = rng.integers(n, size=7)
    assert found is not None
    block = found.log_weights(index, data.values[index])
    assert block.shape == (n_states, 7)
    assert block.flags.c_contiguous
    assert block.dtype == np.float64
    assert np.array_equal(block, expected[index].T)

    order = rng.permutation(n_states)
    moved = found.take(order).log_weights(index, data.values[index])
    assert np.array_equal(moved, block[order])
    assert moved.flags.c_contiguous
    assert np.array_equal(found.take(order).take(np.argsort(order)).log_weights(index, data.values[index]), block)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"states": [0, 1, 2, 3, 0]}, r"at sequence 2 \('r'\), position 1 is 3; states run from 0 to 2"),
        ({"states": [[0, -2], [], [0, 0, 0]]}, r"at sequence 0 \('p'\), position 1 is -2"),
        ({"states": [0, 1]}, r"states has the shape \(2,\), but the data need \(5,\)"),
        ({"states": [[0, 1], [], [0]]}, r"states for sequence 2 \('r'\) has the shape \(1,\).*needs \(3,\)"),
        ({"states": [[0, 1], [0], [0, 0, 0]]}, r"states for sequence 1 \('q'\) has the shape \(1,\)"),
        ({"states": [[0, 1], [0, 0, 0]]}, "states is a list of 2, but there are 3 sequences"),
        ({"states": [0.0, 1.0, 1.5, 0.0, 0.0]}, "the state given at .* is 1.5; states are whole numbers"),
        ({"states": [None, *["sits"] * 4]}, "must be integers, .* If they are names, .* set model.state_names_"),
        ({"evidence": np.zeros((5, 2))}, r"evidence has the shape \(5, 2\), but the data need \(5, 3\)"),
        ({"evidence": np.full((5, 3), "a")}, "evidence must be real numbers"),
        ({"evidence": [np.zeros((2, 3)), None, np.zeros((4, 3))]}, "evidence for sequence 2"),
        ({"allowed": np.ones((5, 2), bool)}, r"allowed has the shape \(5, 2\), but the data need \(5, 3\)"),
        (
            {"allowed": np.ones((3, 2), bool)},
            r"allowed has the shape \(3, 2\); it needs \(number of symbols, 3 states\)",
        ),
        ({"allowed": np.array(True)}, r"allowed has the shape \(\)"),
        ({"allowed": np.ones((2, 3), bool)}, r"allowed has 2 rows, but sequence 2 \('r'\), position 0 holds symbol 2"),
        ({"allowed": np.full((3, 3), 2)}, "must hold True and False"),
        ({"allowed": np.ones((3, 3))}, "must hold True and False"),
        ({"allowed": np.array([[1, 1, 1], [0, 0, 0], [1, 0, 0]])}, "leaves symbol 1 without a legal state"),
        ({"allowed": {1: []}}, "leaves symbol 1 without a legal state"),
        ({"allowed": {1: [3]}}, "gives symbol 1 the state 3; the states are 0 to 2"),
        ({"allowed": {1: ["x"]}}, "gives symbol 1 the state 'x'"),
        ({"allowed": {"the": [0]}}, "names the symbol 'the', but the data have no vocabulary"),
        ({"allowed": {-1: [0]}}, "names -1, which is not a symbol; the symbols are codes from 0 on"),
        ({"allowed": {9: [0]}, "n_symbols": 9}, "names 9, which is not a symbol; the symbols are codes from 0 to 8"),
        ({"allowed": {1: [0]}, "states": [0, 1, 2, 0, 0]}, r"no state is left at sequence 0 \('p'\), position 1"),
    ],
)
def test_what_does_not_fit_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Evidence.build(DATA, N_STATES, **given)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_no_weights_are_named(value: float) -> None:
    weights = np.zeros((5, N_STATES))
    weights[3, 1] = value
    with pytest.raises(InputError, match=rf"evidence at sequence 2 \('r'\), position 1 holds {value}"):
        Evidence.build(DATA, N_STATES, evidence=weights)


def test_a_position_without_a_state_is_named() -> None:
    legal = np.ones((5, N_STATES), dtype=bool)
    legal[4] = False
    with pytest.raises(InputError, match=r"no state is left at sequence 2 \('r'\), position 2"):
        Evidence.build(DATA, N_STATES, allowed=legal)
    with pytest.raises(InputError, match="no state is left"):
        Evidence.build(DATA, N_STATES, evidence=np.full((5, N_STATES), -np.inf))


def test_every_block_is_checked() -> None:
    n = BLOCK_VALUES // 2 + 3
    data = Sequences(np.zeros(n, dtype=np.int8))
    weights = np.zeros((n, 2), dtype=np.float32)
    weights[-1, 1] = np.nan
    with pytest.raises(InputError, match=f"position {n - 1} holds nan"):
        Evidence.build(data, 2, evidence=weights)


def test_symbols_are_named_by_their_vocabulary() -> None:
    with pytest.raises(InputError, match="unknown symbol in allowed 'teh'.*Did you mean 'the'"):
        Evidence.build(WORDS, N_STATES, allowed={"teh": [0]})
    with pytest.raises(InputError, match=r"leaves symbol 1 \('the'\) without a legal state"):
        Evidence.build(WORDS, N_STATES, allowed={"the": []})
    with pytest.raises(InputError, match=r"it needs \(2 symbols, 3 states\)"):
        Evidence.build(WORDS, N_STATES, allowed=np.ones((7, 3), bool))


def test_a_table_that_could_be_per_symbol_or_per_position_is_refused() -> None:
    data = Sequences(np.array([0, 1, 1]), vocabulary=Vocabulary("abc"))
    with pytest.raises(InputError, match="may be symbols or positions"):
        Evidence.build(data, 2, allowed=np.ones((3, 2), bool))
    with pytest.raises(InputError, match="may be symbols or positions"):
        Evidence.build(Sequences(np.array([0, 1])), 2, allowed=np.ones((2, 2), bool), n_symbols=2)


def test_legal_states_per_symbol_need_symbols() -> None:
    with pytest.raises(InputError, match="need one column of integer codes"):
        Evidence.build(Sequences(np.zeros(3)), 2, allowed={0: [1]})
    with pytest.raises(InputError, match=r"allowed has the shape \(2, 2\), but the data need \(3, 2\)"):
        Evidence.build(Sequences(np.zeros(3)), 2, allowed=np.ones((2, 2), bool))
