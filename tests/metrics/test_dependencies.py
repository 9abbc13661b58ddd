"""Scores of dependency trees, counted by hand."""

from __future__ import annotations

import pytest

from subchain.errors import InputError
from subchain.metrics import dependency_scores


def test_accuracies_are_those_counted_by_hand() -> None:
    found = dependency_scores([[1, -1, 1], [-1], []], [[1, 2, -1], [-1], []])
    # word 0 is right; word 1 is the root, which it is not; word 2 hangs on word 1, which in the gold tree hangs on it
    assert (found.directed, found.undirected) == (2 / 4, 3 / 4)
    assert found.exact == 2 / 3
    assert (found.n_words, found.n_sentences) == (4, 3)


@pytest.mark.parametrize(
    ("found", "gold", "message"),
    [
        ([[-1]], [], "1 sentences"),
        ([[-1, 0]], [[-1]], "sentence 0 has heads of shape"),
        ([[2, -1]], [[1, -1]], "the heads of sentence 0"),
        ([[-1]], [[-2]], "the gold heads of sentence 0"),
        ([[]], [[]], "no words"),
    ],
)
def test_heads_that_do_not_belong_together_are_refused(
    found: list[list[int]], gold: list[list[int]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        dependency_scores(found, gold)
