"""Links of two directions as one set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_symmetrization import symmetrized

from subchain.alignment import Links, product_links, symmetrize
from subchain.errors import InputError
from subchain.tasks.symmetrization import METHODS


def of(forward: str, backward: str, method: str) -> str:
    """Symmetrise links written as in files."""
    sides = [[tuple(map(int, link.split("-"))) for link in side.split()] for side in (forward, backward)]
    return " ".join(f"{i}-{j}" for i, j in symmetrize(*sides, method).tolist())


#: Every target word picks a source word (forward), every source word a target word (backward). In both 0-0 and 3-3.
FORWARD, BACKWARD = "0-0 0-1 3-3 5-5", "0-0 1-1 3-3 4-3 6-6"


class TestByHand:
    def test_intersection_and_union(self) -> None:
        assert of(FORWARD, BACKWARD, "intersection") == "0-0 3-3"
        assert of(FORWARD, BACKWARD, "union") == "0-0 0-1 1-1 3-3 4-3 5-5 6-6"

    def test_growing_adds_neighbours_with_a_free_word(self) -> None:
        # From 0-0: behind it in the target is 0-1, whose target word 1 is free; then diagonally 1-1, whose source word
        # 1 is free. From 3-3: 4-3, whose source word 4 is free. 5-5 is no neighbour of 4-3, and 6-6 of nothing.
        assert of(FORWARD, BACKWARD, "grow-diag") == "0-0 0-1 1-1 3-3 4-3"

    def test_final_adds_what_is_not_near_if_a_word_is_free(self) -> None:
        assert of(FORWARD, BACKWARD, "grow-diag-final") == "0-0 0-1 1-1 3-3 4-3 5-5 6-6"
        assert of(FORWARD, BACKWARD, "grow-diag-final-and") == "0-0 0-1 1-1 3-3 4-3 5-5 6-6"

    def test_final_and_needs_two_free_words(self) -> None:
        # 0-2 is no neighbour of 0-0; its source word has a link, its target word has none.
        assert of("0-0 0-2", "0-0", "grow-diag") == "0-0"
        assert of("0-0 0-2", "0-0", "grow-diag-final") == "0-0 0-2"
        assert of("0-0 0-2", "0-0", "grow-diag-final-and") == "0-0"

    def test_forward_links_come_before_backward_ones(self) -> None:
        # 2-1 and 2-3 share the source word, and only one of them can be added.
        assert of("2-3", "2-1", "grow-diag-final-and") == "2-3"
        assert of("2-1", "2-3", "grow-diag-final-and") == "2-1"

    def test_final_links_are_added_by_target_position(self) -> None:
        assert of("2-3 4-1 2-1", "", "grow-diag-final-and") == "2-1"
        assert of("4-3 2-3 4-1", "", "grow-diag-final-and") == "2-3 4-1"

    def test_a_chain_of_neighbours_grows_along_in_both_directions(self) -> None:
        assert of("0-0 1-1 2-2 3-3 4-4", "2-2", "grow-diag") == "0-0 1-1 2-2 3-3 4-4"

    def test_straight_neighbours_come_before_diagonal_ones(self) -> None:
        # 1-2 is behind 1-1 in the target; it takes target word 2. Then 2-2 is diagonal, and source word 2 is free.
        # The other way round 0-0 is diagonal to 1-1 and both its words are free; 0-1 comes first and takes source 0.
        assert of("1-1 1-2 2-2", "1-1", "grow-diag") == "1-1 1-2 2-2"
        assert of("1-1 0-1 0-0", "1-1", "grow-diag") == "0-0 0-1 1-1"

    def test_a_neighbour_whose_words_are_both_linked_is_not_added(self) -> None:
        # 1-0 lies between 0-0 and 1-1, both of them in both directions.
        assert of("0-0 1-1 1-0", "0-0 1-1", "grow-diag-final") == "0-0 1-1"

    def test_nothing_grows_from_an_empty_intersection(self) -> None:
        assert of("0-1", "1-0", "grow-diag") == ""
        assert of("0-1", "1-0", "grow-diag-final-and") == "0-1 1-0"
        assert of("", "", "grow-diag-final-and") == ""


links = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=14)


@settings(max_examples=300, deadline=None)
@given(pairs=st.lists(st.tuples(links, links), min_size=1, max_size=4), method=st.sampled_from(METHODS))
def test_pairs_agree_with_the_slow_version(pairs: list[tuple[Any, Any]], method: str) -> None:
    forward, backward = (Links.from_pairs([pair[side] for pair in pairs]) for side in (0, 1))
    found = symmetrize(forward, backward, method)
    assert [set(map(tuple, pair.tolist())) for pair in found] == [symmetrized(*pair, method) for pair in pairs]


@pytest.mark.parametrize("method", METHODS)
def test_matrices_and_sets_give_the_same(method: str) -> None:
    rng = np.random.default_rng(3)
    forward, backward = rng.random((2, 7, 9)) < 0.3
    found = symmetrize(forward, backward, method)
    assert found.dtype == np.bool_
    assert np.argwhere(found).tolist() == symmetrize(np.argwhere(forward), np.argwhere(backward), method).tolist()


def test_a_sentence_of_ten_thousand_words_is_symmetrised() -> None:
    positions = np.arange(10_000)
    forward, backward = np.column_stack([positions, positions]), np.column_stack([positions, positions[::-1]])
    found = symmetrize(forward, backward, "grow-diag-final-and")
    assert set(found[:, 0]) == set(found[:, 1]) == set(positions.tolist())


def test_what_does_not_fit_is_refused() -> None:
    one, two = Links.from_pairs([[(0, 0)]]), Links.from_pairs([[], []])
    with pytest.raises(InputError, match="forward has links of 1 sentence pairs, but backward of 2"):
        symmetrize(one, two)
    with pytest.raises(InputError, match="Did you mean 'grow-diag-final-and'"):
        symmetrize(one, one, "grow-diag-finaland")
    with pytest.raises(InputError, match=r"different shapes, \(1, 2\) and \(2, 1\)"):
        symmetrize(np.ones((1, 2), bool), np.ones((2, 1), bool))
    with pytest.raises(InputError, match="both be Links"):
        symmetrize(one, [(0, 0)])
    several = [np.array([[0, 0], [1, 1]]), np.array([[0, 0]])]
    with pytest.raises(InputError, match=r"several sentence pairs are given to Links\.from_pairs"):
        symmetrize(several, several)


def test_the_product_keeps_links_above_the_threshold() -> None:
    forward, backward = np.array([[0.9, 0.2], [0.1, 0.8]]), np.array([[0.9, 0.2], [0.4, 0.2]])
    assert product_links([forward], [backward], 0.4)[0].tolist() == [[0, 0]]
    assert product_links([forward], [backward], 0.39)[0].tolist() == [[0, 0], [1, 1]]
    assert product_links([np.empty((0, 3))], [np.empty((0, 3))])[0].shape == (0, 2)
