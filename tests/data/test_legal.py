"""LegalStates: the states that evidence leaves, as lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subchain.data import Evidence, Sequences, evidence
from subchain.data.legal_states import LegalStates
from subchain.data.missing import BLOCK_VALUES

WORDS = Sequences(np.array([0, 1, 2, -1, 1]), [0, 2, 2, 5])


def legal(data: Sequences, n_states: int = 3, **known: object) -> LegalStates:
    evidence = Evidence.build(data, n_states, **known)  # type: ignore[arg-type]
    assert evidence is not None
    return LegalStates.of(evidence, data)


def lists(found: LegalStates) -> list[list[int]]:
    return [states.tolist() for states in np.split(found.states, found.offsets[1:-1])]


def test_a_dictionary_leaves_the_states_of_each_symbol_and_all_where_it_is_missing() -> None:
    found = legal(WORDS, allowed={0: [2, 0], 1: [1]})
    assert lists(found) == [[0, 2], [1], [0, 1, 2], [0, 1, 2], [1]]
    assert found.log_weights is None


def test_known_states_leave_one() -> None:
    found = legal(WORDS, states=[2, -1, 0, 1, 1])
    assert lists(found) == [[2], [0, 1, 2], [0], [1], [1]]
    assert found.share == pytest.approx(7 / 15)


def test_types_are_small_and_memory_is_counted() -> None:
    found = legal(WORDS, states=[2, 1, 0, 1, 1])
    assert (found.offsets.dtype, found.states.dtype) == (np.int64, np.int32)
    assert found.nbytes == 6 * 8 + 5 * 4
    weighted = legal(WORDS, evidence=np.full((5, 3), -1.0))
    assert weighted.nbytes == 6 * 8 + 15 * (4 + 8)


def test_no_position_has_no_list() -> None:
    found = legal(Sequences(np.empty(0)), states=np.empty(0, dtype=int))
    assert (found.offsets.tolist(), found.states.tolist(), found.share) == ([0], [], 1.0)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 40), st.booleans())
def test_lists_hold_what_the_table_holds(seed: int, n_states: int, n: int, soft: bool) -> None:
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, n_states)) if soft else np.zeros((n, n_states))
    table[rng.random((n, n_states)) < 0.5] = -np.inf
    table[np.arange(n), rng.integers(n_states, size=n)] = 0.0
    found = legal(Sequences(rng.normal(size=n)), n_states, evidence=table)
    back = np.full_like(table, -np.inf)
    rows = np.repeat(np.arange(n), np.diff(found.offsets))
    back[rows, found.states] = 0.0 if found.log_weights is None else found.log_weights
    np.testing.assert_array_equal(back, table)
    assert all(states == sorted(set(states)) for states in lists(found))


def test_blocks_leave_no_trace() -> None:
    n, n_states = BLOCK_VALUES // 2 + 3, 4
    states = np.arange(n) % (n_states + 1) - 1
    found = legal(Sequences(np.zeros(n)), n_states, states=states)
    free = np.diff(found.offsets) == n_states
    np.testing.assert_array_equal(free, states < 0)
    np.testing.assert_array_equal(found.states[found.offsets[:-1]], np.maximum(states, 0))


def test_parts_are_lists_of_their_own() -> None:
    found = legal(WORDS, evidence=np.where(np.eye(5, 3) > 0, 1.5, -1.0))
    part = found.between(1, 4)
    assert part.offsets.tolist() == [0, 3, 6, 9]
    assert lists(part) == lists(found)[1:4]
    assert part.log_weights is not None
    assert part.log_weights.tolist() == [-1.0, 1.5, -1.0, -1.0, -1.0, 1.5, -1.0, -1.0, -1.0]


# ---- lists that evidence keeps ---------------------------------------------------------------------------------------


def test_evidence_makes_lists_once_for_the_same_data() -> None:
    found = Evidence.build(WORDS, 9, states=[2, 1, 0, 8, 1])
    assert found is not None
    first = found.lists(WORDS)
    assert first is not None
    assert found.lists(WORDS) is first
    assert found.lists(Sequences(WORDS.values.copy(), WORDS.offsets)) is not first


def test_symbols_that_are_taken_out_of_the_data_get_new_lists() -> None:
    found = Evidence.build(WORDS, 9, allowed={0: [2], 1: [1], 2: [8]})
    assert found is not None
    before, after = found.lists(WORDS), found.lists(Sequences(np.array([0, 1, -1, -1, 1]), WORDS.offsets))
    assert before is not None
    assert lists(before)[2] == [8]
    assert after is None  # most states are legal now


def test_states_that_are_numbered_anew_have_other_lists() -> None:
    found = Evidence.build(WORDS, 9, states=[2, 1, 0, 8, 1])
    assert found is not None
    turned = found.take(np.arange(9)[::-1].copy()).lists(WORDS)
    assert turned is not None
    assert turned.states.tolist() == [6, 7, 8, 0, 7]


@pytest.mark.parametrize("limit", ["MAX_FRACTION", "MAX_BYTES"])
def test_lists_that_are_no_gain_are_not_made(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Evidence.build(WORDS, 9, states=[2, 1, 0, 8, 1])
    assert found is not None
    monkeypatch.setattr(evidence, limit, 0.1)
    assert found.lists(WORDS) is None
