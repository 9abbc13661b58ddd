"""The report of a tagging, and the confusions that it lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subchain import metrics
from subchain.data import Sequences, Vocabulary, as_sequences
from subchain.errors import InputError
from subchain.metrics import Confusion, Contingency, accuracy, confusions, tagging_report

WORDS = [["the", "run", "of"], ["of", "of", "run"]]
FLAT = WORDS[0] + WORDS[1]
TAGS = Vocabulary(["NN", "IN", "DT", "RP"])
GOLD = Sequences(np.array([2, 0, 1, 1, 1, -1]), [0, 3, 6], vocabulary=TAGS)
PREDICTED = [np.array([2, 1, 3]), np.array([3, 1, 0])]
EXPECTED = [Confusion("of", "IN", "RP", 2), Confusion("run", "NN", "IN", 1)]


@pytest.mark.parametrize(
    "words",
    [
        WORDS,
        FLAT,
        np.array(FLAT),
        [np.array(sentence) for sentence in WORDS],
        as_sequences(WORDS),
    ],
)
def test_the_largest_confusions_come_first_with_names(words: Any) -> None:
    assert confusions(GOLD, PREDICTED, words) == EXPECTED
    assert confusions(GOLD, PREDICTED, words, n=1) == EXPECTED[:1]


def test_without_names_there_are_numbers() -> None:
    assert confusions(GOLD.values, PREDICTED) == [Confusion(None, 1, 3, 2), Confusion(None, 0, 1, 1)]
    codes = as_sequences(WORDS).values
    assert [item.word for item in confusions(GOLD.values, PREDICTED, codes)] == [0, 1]


def test_a_missing_word_and_a_state_beyond_the_tags_can_be_confused_too() -> None:
    gold = Sequences(np.array([0]), vocabulary=Vocabulary(["NN"]))
    assert confusions(gold, [7], ["run"]) == [Confusion("run", "NN", 7, 1)]
    assert confusions([0, 0], [1, 1], [None, "run"]) == [Confusion(None, 0, 1, 1), Confusion("run", 0, 1, 1)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_all_confusions_together_are_all_errors(tokens: list[tuple[int, int, int]]) -> None:
    words, gold, predicted = np.array(tokens).T
    found = confusions(gold, predicted, words, n=len(tokens))
    errors = len(tokens) * (1.0 - accuracy(Contingency.of(gold, predicted)))
    assert sum(item.count for item in found) == pytest.approx(errors)
    assert [item.count for item in found] == sorted((item.count for item in found), reverse=True)
    assert len({(item.word, item.gold, item.predicted) for item in found}) == len(found)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["the"], "gold has 6 positions, but words has 1"),
        ([["the"], ["run"] * 5], "sequence 0 has 3 positions in gold, but 1 in words"),
        (["the", "run", 3, "of", "of", "run"], "words holds strings, but also 3"),
        ([0.5] * 6, "words holds float64"),
    ],
)
def test_words_that_do_not_fit_are_named(words: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        confusions(GOLD, PREDICTED, words)


def test_a_number_of_confusions_is_not_negative() -> None:
    with pytest.raises(InputError, match="n must be at least 0"):
        confusions(GOLD, PREDICTED, n=-1)


def test_the_report_holds_every_score() -> None:
    report = tagging_report(GOLD, PREDICTED, WORDS, states_are_tags=True)
    assert (report.n_tokens, report.n_left_out, report.states_used, report.tags_used) == (5, 1, 3, 3)
    assert report.accuracy == pytest.approx(2 / 5)
    assert report.many_to_one == pytest.approx(4 / 5)
    assert report.cross_validated_many_to_one == 0.0
    assert report.greedy_one_to_one == report.optimal_one_to_one == pytest.approx(4 / 5)
    assert report.confusions == tuple(EXPECTED)
    entropies = report.tag_entropy + report.state_entropy
    assert report.variation_of_information == pytest.approx(entropies * (1.0 - report.v_measure), abs=1e-12)


def test_the_report_can_be_read() -> None:
    text = str(tagging_report(GOLD, PREDICTED, WORDS, states_are_tags=True))
    for line in [
        "tokens                        5 (1 left out)",
        "states used                   3, for 3 tags",
        "accuracy                      40.00%",
        "  of IN as RP: 2",
    ]:
        assert line in text.splitlines()
    assert "confusions" not in str(tagging_report([0, 1], [0, 1]))


def test_states_found_without_supervision_are_listed_by_their_numbers() -> None:
    tags = Vocabulary(["NN", "IN", "DT"])
    gold = Sequences(np.array([0, 0, 0, 1, 1, 1, 2, 2]), vocabulary=tags)
    states = [2, 2, 0, 0, 0, 0, 1, 3]
    report = tagging_report(gold, states, ["dog", "run", "run", "of", "of", "in", "the", "the"])
    assert not report.states_are_tags
    assert report.optimal_one_to_one == pytest.approx(6 / 8)
    assert report.confusions == (Confusion("run", "NN", "state 0 (IN)", 1), Confusion("the", "DT", "state 3", 1))
    assert "accuracy                      none: states have numbers, not tags" in str(report).splitlines()


def test_states_that_are_tags_are_recognised() -> None:
    report = tagging_report(GOLD, [np.array([2, 0, 1]), np.array([1, 3, 0])])
    assert report.states_are_tags
    assert report.confusions == (Confusion(None, "IN", "RP", 1),)


OTHERS = ("entropy", "tagging_report", "alignment_report", "dependency_scores", "bracket_scores")
METRICS = [getattr(metrics, name) for name in metrics.__all__ if name not in OTHERS]
METRICS = [metric for metric in METRICS if not isinstance(metric, type) and metric.__name__ != "confusions"]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.__name__)
def test_every_metric_takes_plain_arrays_or_a_table(metric: Any) -> None:
    gold, states = [0, 1, 1, -1, 0, 1], np.array([0, 2, 2, 1, 2, 0])
    rest = ([0, -1, 1],) if metric is metrics.mapped_accuracy else ()
    is_halved = metric is metrics.cross_validated_many_to_one
    tables = Contingency.halves(gold, states) if is_halved else (Contingency.of(gold, states),)
    np.testing.assert_array_equal(metric(gold, states, *rest), metric(*tables, *rest))
    np.testing.assert_array_equal(metric([gold[:2], gold[2:]], [states[:2], states[2:]], *rest), metric(*tables, *rest))
    with pytest.raises(InputError, match="predicted"):
        metric(gold, None, *rest)
