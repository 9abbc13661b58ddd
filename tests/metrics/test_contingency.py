"""One table of (state, tag) counts: how labels become one, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.cluster import contingency_matrix

from subchain.data import Sequences, Vocabulary
from subchain.errors import InputError
from subchain.metrics import Contingency

GOLD = np.array([0, 1, 1, -1, 2])
PREDICTED = np.array([1, 0, -1, 0, 1])
OFFSETS = [0, 2, 2, 5]
TABLE = [[0, 1, 0], [1, 0, 1]]

pairs_of_labels = st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 5)), min_size=1).filter(
    lambda pairs: any(g >= 0 and s >= 0 for g, s in pairs)
)


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        (GOLD, PREDICTED),
        (GOLD.tolist(), PREDICTED.astype(np.int8)),
        ([GOLD[:2], [], GOLD[2:]], [PREDICTED[:2].tolist(), np.empty(0, int), PREDICTED[2:]]),
        (Sequences(GOLD, OFFSETS), [PREDICTED[:2], [], PREDICTED[2:]]),
        (GOLD, Sequences(PREDICTED.astype(np.int32), OFFSETS)),
    ],
)
def test_labels_of_any_form_make_the_same_table(gold: Any, predicted: Any) -> None:
    table = Contingency.of(gold, predicted)
    assert table.counts.tolist() == TABLE
    assert (table.n_states, table.n_tags, table.n_tokens, table.states_used) == (2, 3, 3, 2)
    assert table.state_totals.tolist() == [1, 2]
    assert table.tag_totals.tolist() == [1, 1, 1]
    assert table.tag_names is None


@given(pairs_of_labels)
def test_it_is_the_table_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    gold, predicted = np.array(pairs).T
    known = (gold >= 0) & (predicted >= 0)
    theirs = contingency_matrix(gold[known], predicted[known]).T
    ours = Contingency.of(gold, predicted).counts
    assert np.array_equal(ours[ours.any(axis=1)][:, ours.any(axis=0)], theirs)


@given(pairs_of_labels.filter(lambda pairs: sum(g >= 0 and s >= 0 for g, s in pairs) > 1))
def test_the_halves_add_up_to_the_whole(pairs: list[tuple[int, int]]) -> None:
    gold, predicted = np.array(pairs).T
    whole, (first, second) = Contingency.of(gold, predicted), Contingency.halves(gold, predicted)
    assert np.array_equal(first.counts + second.counts, whole.counts)
    assert second.n_tokens - first.n_tokens in (0, 1)


def test_names_come_from_the_vocabulary_of_the_gold_tags() -> None:
    gold = Sequences(np.array([0, 1]), vocabulary=Vocabulary(["NN", "VB", "DT"]))
    table = Contingency.of(gold, [0, 0])
    assert table.tag_names == ("NN", "VB", "DT")
    assert table.counts.shape == (1, 3)
    assert Contingency.of([0, 1], [0, 0], tag_names=["a", "b"]).tag_names == ("a", "b")


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([], [], "gold is empty"),
        ([0], [], "predicted is empty"),
        ([0, 1], [0], "gold has 2 positions, but predicted has 1"),
        ([[0], [1, 1]], [[0], [1]], "sequence 1 has 2 positions in gold, but 1 in predicted"),
        ([[0], [1]], [[0], [1], [1]], "gold has 2 sequences, but predicted has 3"),
        ([-1, 0], [0, -1], "none of the 2 positions is known in both"),
        ([[0, 1], [1, -2]], [[0, 0], [0, 0]], "gold, sequence 1, position 1 holds the label -2"),
        ([0, 1], [0, -3], "predicted, position 1 holds the label -3"),
        ([0.0, 1.0], [0, 1], "gold holds float64 of shape"),
        (["a", "b"], [0, 1], "Convert strings with Vocabulary.encode"),
        ([[0], [0.5]], [[0], [0]], "gold, sequence 1 holds float64"),
        ([[0, 1], None], [0, 1], "gold, sequence 1 holds object"),
        ([None, [0, 1]], [0, 1], "gold cannot be turned into an array"),
        ([10**9], [10**9], "number the labels from 0 without gaps"),
        (np.zeros((2, 2), int), [0, 0], r"gold holds int64 of shape \(2, 2\)"),
    ],
)
def test_labels_that_do_not_fit_are_named(gold: Any, predicted: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Contingency.of(gold, predicted)


def test_codes_that_mean_different_things_are_not_compared() -> None:
    gold = Sequences(np.array([0, 1]), vocabulary=Vocabulary(["a", "b"]))
    predicted = Sequences(np.array([0, 1]), vocabulary=Vocabulary(["b", "a"]))
    with pytest.raises(InputError, match="different vocabularies"):
        Contingency.of(gold, predicted)
    assert Contingency.of(gold, predicted.recode(gold.vocabulary)).counts.tolist() == [[0, 1], [1, 0]]


def test_labels_beyond_their_names_are_named() -> None:
    with pytest.raises(InputError, match="gold, position 1 holds the label 2, but there are 2 names"):
        Contingency.of([0, 2], [0, 0], tag_names=["a", "b"])


def test_a_single_position_has_no_halves() -> None:
    with pytest.raises(InputError, match="at least two positions"):
        Contingency.halves([0], [0])


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (np.zeros((2, 2)), "needs integers"),
        (np.zeros(2, int), r"of shape \(2,\)"),
        (np.zeros((2, 2), int), "at least one positive entry"),
        (np.array([[1, -1]]), "negative entries"),
    ],
)
def test_a_table_that_is_none_is_refused(counts: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Contingency(counts)
    with pytest.raises(InputError, match="2 tags, but there are 1 names"):
        Contingency(np.ones((1, 2), int), tag_names=("a",))
