"""Entropies, V-measure and variation of information, and agreement about pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as theirs

from subchain.metrics import (
    Contingency,
    adjusted_rand,
    completeness,
    entropy,
    homogeneity,
    state_entropy,
    state_entropy_given_tag,
    tag_entropy,
    tag_entropy_given_state,
    v_measure,
    variation_of_information,
)

labellings = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=60).map(
    lambda pairs: np.array(pairs).T
)
SYMMETRIC = [v_measure, variation_of_information, adjusted_rand]


@given(labellings)
def test_the_scores_are_those_of_scikit_learn(labels: Any) -> None:
    table = Contingency.of(*labels)
    for ours, reference in [
        (homogeneity, theirs.homogeneity_score),
        (completeness, theirs.completeness_score),
        (v_measure, theirs.v_measure_score),
        (v_measure, theirs.normalized_mutual_info_score),
        (adjusted_rand, theirs.adjusted_rand_score),
    ]:
        assert ours(table) == pytest.approx(reference(*labels), abs=1e-12)


@given(labellings)
def test_variation_of_information_is_what_the_v_measure_leaves_of_the_entropies(labels: Any) -> None:
    table = Contingency.of(*labels)
    entropies = tag_entropy(table) + state_entropy(table)
    assert variation_of_information(table) == pytest.approx(entropies * (1.0 - v_measure(table)), abs=1e-12)


@given(labellings)
def test_entropies_add_up_along_the_chain(labels: Any) -> None:
    table = Contingency.of(*labels)
    joint = entropy(table.counts)
    assert joint == pytest.approx(tag_entropy(table) + state_entropy_given_tag(table), abs=1e-12)
    assert joint == pytest.approx(state_entropy(table) + tag_entropy_given_state(table), abs=1e-12)


@given(labellings)
def test_scores_stay_within_their_bounds(labels: Any) -> None:
    table = Contingency.of(*labels)
    for score in (homogeneity, completeness, v_measure):
        assert 0.0 <= score(table) <= 1.0
    assert 0.0 <= variation_of_information(table) <= 2.0 * np.log2(table.n_tokens) + 1e-12
    assert -1.0 <= adjusted_rand(table) <= 1.0


@given(labellings, st.permutations(range(7)), st.permutations(range(5)))
def test_names_and_sides_do_not_matter(labels: Any, states: list[int], tags: list[int]) -> None:
    gold, predicted = labels
    table = Contingency.of(gold, predicted)
    renamed = Contingency.of(np.array(tags)[gold], np.array(states)[predicted])
    turned = Contingency.of(predicted, gold)
    for score in SYMMETRIC:
        assert score(renamed) == pytest.approx(score(table), abs=1e-12)
        assert score(turned) == pytest.approx(score(table), abs=1e-12)
    assert homogeneity(turned) == pytest.approx(completeness(table), abs=1e-12)


@given(labellings)
def test_a_labelling_agrees_with_itself(labels: Any) -> None:
    table = Contingency.of(labels[0], labels[0])
    assert variation_of_information(table) == 0.0
    assert v_measure(table) == adjusted_rand(table) == 1.0


@given(labellings, labellings, labellings)
def test_variation_of_information_is_a_distance(a: Any, b: Any, c: Any) -> None:
    n = min(a.shape[1], b.shape[1], c.shape[1])
    x, y, z = (labels[0][:n] for labels in (a, b, c))
    distances = [variation_of_information(Contingency.of(*pair)) for pair in ((x, y), (y, z), (x, z))]
    assert distances[2] <= distances[0] + distances[1] + 1e-12


def test_a_single_state_is_complete_and_says_nothing() -> None:
    table = Contingency.of([0, 1, 2, 3], [0, 0, 0, 0])
    assert (homogeneity(table), completeness(table), v_measure(table)) == (0.0, 1.0, 0.0)
    assert variation_of_information(table) == tag_entropy(table) == 2.0
    assert state_entropy(table) == 0.0


def test_millions_of_pairs_are_counted_without_overflow() -> None:
    table = Contingency(np.array([[3_000_000_000, 0], [0, 3_000_000_000]]))
    assert adjusted_rand(table) == pytest.approx(1.0)
    assert tag_entropy(table) == 1.0


def test_nothing_has_no_entropy() -> None:
    assert entropy([]) == entropy([0, 0]) == entropy([7]) == 0.0
