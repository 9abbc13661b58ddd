"""Most frequent tagging errors by word: a single frequent word can change an accuracy by several points."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError
from subchain.metrics.labels import (
    UNKNOWN,
    LabelPairs,
    Labels,
    check_same_positions,
    is_in_sequences,
    offsets_of,
    pair_labels,
    read_labels,
)


@dataclasses.dataclass(frozen=True)
class Confusion:
    """Group of errors with the same word, gold tag and predicted tag.

    Attributes
    ----------
    word : the word, its code if it has no name, or None if no words were given
    gold, predicted : names of the tags, or their numbers; of states that are no tags, "state 3" or "state 3 (IN)" with
        the tag that they are mapped to
    count : number of positions

    Examples
    --------
    >>> from subchain.metrics import Confusion
    >>> print(Confusion("of", "IN", "RP", 624))
    of IN as RP: 624
    """

    word: str | int | None
    gold: str | int
    predicted: str | int
    count: int

    def __str__(self) -> str:
        word = "" if self.word is None else f"{self.word} "
        return f"{word}{self.gold} as {self.predicted}: {self.count}"


def confusions(gold: Any, predicted: Any, words: Any = None, n: int = 10) -> list[Confusion]:
    """Return the largest groups of errors with the same word, gold tag and predicted tag.

    Use them to interpret an accuracy: one frequent word that is always tagged wrong is a different problem than many
    rare words.

    Parameters
    ----------
    gold, predicted : array of int (N,), list of such arrays, or Sequences
        Tags in the same numbering, -1 where unknown.
    words : optional
        The words at the same positions: codes, in the same forms, or strings, flat or one list per sequence.
    n : int
        Maximum number of groups.

    Returns
    -------
    list of Confusion
        Sorted by decreasing size, then by the codes of word, gold and predicted tag.

    Examples
    --------
    >>> from subchain.metrics import confusions
    >>> for confusion in confusions([0, 0, 1, 1], [0, 1, 0, 0], words=["a", "a", "b", "b"]):
    ...     print(confusion)
    b 1 as 0: 2
    a 0 as 1: 1
    """
    return confusions_of_pairs(pair_labels(gold, predicted), words, n)


def confusions_of_pairs(
    pairs: LabelPairs, words: Any, n: int, tag_of_state: NDArray[np.int64] | None = None
) -> list[Confusion]:
    """Return the `n` largest confusions of paired labels.

    If states are no tags, `tag_of_state` (n_states,) maps them to tags, -1 for none: the map decides what an error is,
    and states are listed by their numbers, followed by the tag that they are mapped to.
    """
    if n < 0:
        raise InputError(f"n must be at least 0, but is {n}.")
    tags = pairs.predicted if tag_of_state is None else tag_of_state[pairs.predicted]
    wrong = np.flatnonzero(pairs.gold != tags)
    word_names, tag_names = None, pairs.whole.names
    word_codes = np.full(len(wrong), UNKNOWN)
    if words is not None:
        read = read_words(words)
        check_same_positions(pairs.whole, read)
        word_names, word_codes = read.names, read.values[pairs.positions[wrong]]
    triples = np.stack([word_codes, pairs.gold[wrong], pairs.predicted[wrong]], axis=1)
    kinds, counts = np.unique(triples, axis=0, return_counts=True)
    largest = np.argsort(-counts, kind="stable")[:n]
    return [
        Confusion(
            None if word == UNKNOWN else _named(word, word_names),
            _named(gold, tag_names),
            _named(predicted, tag_names) if tag_of_state is None else _state(predicted, tag_of_state, tag_names),
            count,
        )
        for (word, gold, predicted), count in zip(kinds[largest].tolist(), counts[largest].tolist(), strict=True)
    ]


def _state(state: int, tag_of_state: NDArray[np.int64], names: Sequence[str] | None) -> str:
    tag = int(tag_of_state[state])
    return f"state {state}" if tag == UNKNOWN else f"state {state} ({_named(tag, names)})"


def _named(code: int, names: Sequence[str] | None) -> str | int:
    return names[code] if names is not None and code < len(names) else code


def read_words(words: Any) -> Labels:
    """Return words as labels; strings, with None for missing ones, are coded in alphabetical order."""
    if not isinstance(words, (list, tuple, np.ndarray)):
        return read_labels(words, "words")
    pieces = words if is_in_sequences(words) else [words]
    flat = [word for piece in pieces for word in piece]
    if not any(isinstance(word, str) for word in flat):
        return read_labels(words, "words")
    names = sorted({word for word in flat if isinstance(word, str)})
    codes: dict[Any, int] = {None: UNKNOWN, **{word: code for code, word in enumerate(names)}}
    strangers = [word for word in flat if word not in codes]
    if strangers:
        raise InputError(f"words holds strings, but also {strangers[0]!r}; give only strings, or only codes.")
    return Labels("words", np.array([codes[word] for word in flat]), offsets_of(list(pieces)), tuple(names))
