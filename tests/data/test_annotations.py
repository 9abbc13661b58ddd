"""What is known of the states goes with its sequences."""

from __future__ import annotations

import numpy as np
import pytest

from subchain.data import Sequences, TagDictionary
from subchain.data.annotations import Annotations

DATA = Sequences(np.array([0, 1, 2, 3, 4, 5]), [0, 2, 3, 6])
CHOSEN = np.array([True, False, True])
STATES = np.array([0, -1, 1, 1, 0, -1])


@pytest.mark.parametrize(
    "given",
    [STATES, STATES.tolist(), DATA.split(STATES), Sequences(STATES, DATA.offsets)],
    ids=["array", "numbers", "list", "Sequences"],
)
def test_known_states_in_all_their_forms(given):
    taken = Annotations(states=given).take(DATA, CHOSEN).states
    assert [piece.tolist() for piece in taken] == [[0, -1], [1, 0, -1]]


def test_sequences_of_which_nothing_is_known_stay_so():
    assert Annotations(states=[None, [1], None]).take(DATA, CHOSEN).states == [None, None]


def test_legal_states_of_positions_are_cut_and_those_of_symbols_are_not():
    table = np.random.default_rng(0).random((6, 2)) < 0.5
    taken = Annotations(allowed=table, evidence=table * 1.0).take(DATA, CHOSEN)
    np.testing.assert_array_equal(np.concatenate(taken.allowed), table[[0, 1, 3, 4, 5]])
    np.testing.assert_array_equal(np.concatenate(taken.evidence), table[[0, 1, 3, 4, 5]])
    for of_symbols in ({0: [1]}, np.ones((9, 2), dtype=bool), TagDictionary(dict.fromkeys("abcdef", "X"))):
        assert Annotations(allowed=of_symbols).take(DATA, CHOSEN).allowed is of_symbols


def test_weights_are_those_of_the_sequences():
    known = Annotations(sample_weight=[3.0, 1.0, 2.0])
    assert known.take(DATA, CHOSEN).weights(DATA[CHOSEN]).tolist() == [3.0, 2.0]
    assert Annotations().take(DATA, CHOSEN).weights(DATA[CHOSEN]).tolist() == [1.0, 1.0]
