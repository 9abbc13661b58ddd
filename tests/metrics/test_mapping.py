"""States read as tags: accuracies under the best maps of each kind."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from subchain.errors import InputError
from subchain.metrics import (
    Contingency,
    accuracy,
    cross_validated_many_to_one,
    greedy_map,
    greedy_one_to_one,
    many_to_one,
    many_to_one_map,
    mapped_accuracy,
    optimal_map,
    optimal_one_to_one,
)

tables = (
    st.tuples(st.integers(1, 5), st.integers(1, 5))
    .flatmap(lambda shape: arrays(np.int64, shape, elements=st.integers(0, 9)))
    .filter(np.any)
    .map(Contingency)
)


def best_one_to_one(counts: np.ndarray) -> int:
    """The largest sum over all ways to give rows columns of their own."""
    wide = counts if counts.shape[0] <= counts.shape[1] else counts.T
    rows = np.arange(len(wide))
    return max(int(wide[rows, list(columns)].sum()) for columns in permutations(range(wide.shape[1]), len(wide)))


@given(tables)
def test_the_optimal_one_to_one_accuracy_is_that_of_the_best_of_all_maps(table: Contingency) -> None:
    assert optimal_one_to_one(table) == pytest.approx(best_one_to_one(table.counts) / table.n_tokens)


@given(tables)
def test_maps_are_worth_more_the_freer_they_are(table: Contingency) -> None:
    scores = [greedy_one_to_one(table), optimal_one_to_one(table), many_to_one(table), 1.0]
    assert scores == sorted(scores)
    assert 2 * greedy_one_to_one(table) >= optimal_one_to_one(table)  # the greedy bound for assignments
    assert accuracy(table) <= optimal_one_to_one(table)


@given(tables)
def test_one_to_one_maps_give_no_tag_twice_and_none_without_a_position(table: Contingency) -> None:
    for tags in (greedy_map(table), optimal_map(table)):
        mapped = np.flatnonzero(tags >= 0)
        assert len(np.unique(tags[mapped])) == len(mapped)
        assert (table.counts[mapped, tags[mapped]] > 0).all()


@given(tables, st.randoms(use_true_random=False))
def test_names_of_states_do_not_matter(table: Contingency, random: Any) -> None:
    order = random.sample(range(table.n_states), table.n_states)
    renamed = Contingency(table.counts[order])
    assert many_to_one(renamed) == pytest.approx(many_to_one(table))
    assert optimal_one_to_one(renamed) == pytest.approx(optimal_one_to_one(table))
    assert np.array_equal(many_to_one_map(renamed), many_to_one_map(table)[order])


@given(tables, st.randoms(use_true_random=False))
def test_names_do_not_matter_to_the_greedy_map_where_no_two_counts_are_equal(table: Contingency, random: Any) -> None:
    size = table.counts.size
    distinct = np.array(random.sample(range(1, size + 1), size)).reshape(table.counts.shape)
    order = random.sample(range(table.n_states), table.n_states)
    assert np.array_equal(greedy_map(Contingency(distinct[order])), greedy_map(Contingency(distinct))[order])


@given(tables)
def test_a_map_learned_where_it_is_scored_is_the_plain_one(table: Contingency) -> None:
    assert cross_validated_many_to_one(table, table) == many_to_one(table)


@given(tables, tables)
def test_a_map_from_elsewhere_is_not_better_than_the_own_one(first: Contingency, second: Contingency) -> None:
    shape = np.maximum(first.counts.shape, second.counts.shape)
    learn, score = (Contingency(np.pad(t.counts, [(0, n) for n in shape - t.counts.shape])) for t in (first, second))
    assert cross_validated_many_to_one(learn, score) <= many_to_one(score)


def test_the_greedy_map_takes_the_largest_cell_that_is_left() -> None:
    table = Contingency(np.array([[9, 8, 0], [8, 1, 0], [0, 0, 3]]))
    assert greedy_map(table).tolist() == [0, 1, 2]
    assert greedy_one_to_one(table) == pytest.approx(13 / 29)
    assert optimal_map(table).tolist() == [1, 0, 2]
    assert optimal_one_to_one(table) == pytest.approx(19 / 29)


def test_the_map_is_learned_in_the_first_half_and_scored_in_the_second() -> None:
    gold = [0, 0, 1, 0, 1, 1]
    predicted = [0, 0, 1, 0, 0, 2]
    first, second = Contingency.halves(gold, predicted)
    assert cross_validated_many_to_one(first, second) == pytest.approx(1 / 3)  # state 2 stands for nothing yet
    assert cross_validated_many_to_one(second, first) == pytest.approx(2 / 3)


def test_more_states_than_tags_leave_states_without_a_tag() -> None:
    table = Contingency.of([0, 0, 0], [0, 1, 2])
    assert many_to_one(table) == 1.0
    assert sorted(optimal_map(table).tolist()) == [-1, -1, 0]
    assert accuracy(table) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ([0], "one tag for each of 2 states"),
        ([0.0, 1.0], "but is float64"),
        ([0, 2], "state 1 is mapped to tag 2; tags run from 0 to 1"),
        ([-2, 0], "state 0 is mapped to tag -2"),
    ],
)
def test_a_map_that_does_not_fit_is_refused(tags: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        mapped_accuracy(Contingency.of([0, 1], [0, 1]), tags)
