"""Scores of dependency trees against gold trees.

Directed accuracy is the share of words whose head is the gold head; the root counts as the head of one word. Undirected
accuracy also takes a word as right whose found head is, in the gold tree, its dependent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from subchain.errors import InputError


class DependencyScores(NamedTuple):
    """Accuracies from 0 to 1, and the number of words; see :func:`dependency_scores`.

    Attributes
    ----------
    directed, undirected : float
    n_words, n_sentences : int
    exact : float
        Share of sentences whose heads are all right.
    """

    directed: float
    undirected: float
    exact: float
    n_words: int
    n_sentences: int

    def __str__(self) -> str:
        return (
            f"sentences   {self.n_sentences:,}\nwords       {self.n_words:,}\n"
            f"directed    {self.directed:7.2%}\nundirected  {self.undirected:7.2%}\nexact       {self.exact:7.2%}"
        )


def dependency_scores(found: Iterable[Any], gold: Iterable[Any]) -> DependencyScores:
    """Return how well heads agree with gold heads.

    Parameters
    ----------
    found, gold : one array of heads for each sentence, counted from 0, -1 for the root

    Examples
    --------
    >>> from subchain.metrics import dependency_scores
    >>> print(dependency_scores([[1, -1, 1]], [[-1, 0, 1]]))
    sentences   1
    words       3
    directed     33.33%
    undirected   66.67%
    exact         0.00%
    """
    mine, theirs = [np.asarray(heads) for heads in found], [np.asarray(heads) for heads in gold]
    _check(mine, theirs)
    directed = undirected = exact = 0
    for own, right in zip(mine, theirs, strict=True):
        same = own == right
        turned = (own >= 0) & (right[np.maximum(own, 0)] == np.arange(len(own))) if len(own) else same
        directed += int(same.sum())
        undirected += int((same | turned).sum())
        exact += int(same.all())
    n_words = sum(map(len, theirs))
    return DependencyScores(directed / n_words, undirected / n_words, exact / len(theirs), n_words, len(theirs))


def _check(found: Sequence[Any], gold: Sequence[Any]) -> None:
    if len(found) != len(gold):
        raise InputError(f"there are heads of {len(found)} sentences, and gold heads of {len(gold)}.")
    for number, (own, right) in enumerate(zip(found, gold, strict=True)):
        if own.shape != right.shape or own.ndim != 1:
            raise InputError(f"sentence {number} has heads of shape {own.shape} and gold heads of {right.shape}.")
        for name, heads in (("heads", own), ("gold heads", right)):
            if len(heads) and not np.issubdtype(heads.dtype, np.integer):
                raise InputError(f"the {name} of sentence {number} must be whole numbers, not {heads.tolist()!r:.80}.")
            if len(heads) and (heads.min() < -1 or heads.max() >= len(heads)):
                raise InputError(f"the {name} of sentence {number} must be -1 … {len(heads) - 1}: {heads.tolist()}.")
    if not sum(map(len, gold)):
        raise InputError("there are no words to compare.")
