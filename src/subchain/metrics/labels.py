"""Pairs of labels of the same positions, restricted to the positions that are known in both labellings.

Labels are integers: an array, a list with one array per sequence, or an object with ``values`` and ``offsets`` such as
:class:`subchain.data.Sequences`. -1 is unknown. All checks of labels are in this module.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError

UNKNOWN = -1
Integers = NDArray[np.int64]


class Labels(NamedTuple):
    """One labelling.

    Attributes
    ----------
    what : name of the labelling in messages
    values : (N,) labels, -1 where unknown
    offsets : (n_sequences + 1,) offsets of the sequences
    names : names of the labels, or None
    """

    what: str
    values: Integers
    offsets: Integers
    names: tuple[str, ...] | None = None

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return len(self.offsets) - 1

    def describe(self, position: int) -> str:
        """Return the sequence and the position within it of a flat position, as text for messages."""
        sequence = int(np.searchsorted(self.offsets, position, side="right")) - 1
        inside = f"position {position - self.offsets[sequence]}"
        return inside if self.n_sequences == 1 else f"sequence {sequence}, {inside}"


def read_labels(given: Any, what: str) -> Labels:
    """Convert and check one labelling; ``what`` is its name in messages."""
    vocabulary = getattr(given, "vocabulary", None)
    names = None if vocabulary is None else tuple(vocabulary.symbols)
    if hasattr(given, "values") and hasattr(given, "offsets"):
        labels = Labels(what, _integers(given.values, what), np.asarray(given.offsets, dtype=np.int64), names)
    elif is_in_sequences(given):
        pieces = [_integers(item, f"{what}, sequence {i}") for i, item in enumerate(given)]
        labels = Labels(what, np.concatenate(pieces), offsets_of(pieces), names)
    else:
        values = _integers(given, what)
        labels = Labels(what, values, np.array([0, len(values)]), names)
    _check_range(labels)
    return labels


def is_in_sequences(given: object) -> bool:
    """Return whether `given` is a list with one item per sequence, not a flat list of labels or words."""
    if not isinstance(given, (list, tuple)) or not given:
        return False
    return hasattr(given[0], "__len__") and not isinstance(given[0], str)


def offsets_of(pieces: list[Any]) -> Integers:
    """Return the offsets of concatenated sequences, (n_sequences + 1,)."""
    return np.cumsum([0, *(len(piece) for piece in pieces)], dtype=np.int64)


def _integers(given: Any, where: str) -> Integers:
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise InputError(f"{where} cannot be turned into an array of labels: {error}.") from error
    if array.size == 0 and array.ndim == 1:
        return np.empty(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"{where} holds {array.dtype} of shape {array.shape}; labels are integers, one per position, -1 where "
            "unknown. Convert strings with Vocabulary.encode."
        )
    return array.astype(np.int64, copy=False)


def _check_range(labels: Labels) -> None:
    wrong = np.flatnonzero(labels.values < UNKNOWN)
    if wrong.size:
        raise InputError(
            f"{labels.what}, {labels.describe(int(wrong[0]))} holds the label {labels.values[wrong[0]]}; labels run "
            "from 0 on, and -1 means unknown."
        )
    if labels.names is not None and labels.values.size and labels.values.max() >= len(labels.names):
        position = int(labels.values.argmax())
        raise InputError(
            f"{labels.what}, {labels.describe(position)} holds the label {labels.values[position]}, but there are "
            f"{len(labels.names)} names."
        )


class LabelPairs(NamedTuple):
    """Gold and predicted labels of the positions that both labellings know.

    Attributes
    ----------
    gold, predicted : array of int64, shape (n,)
    positions : array of int64, shape (n,); flat positions of these pairs
    n_tags, n_states : numbers of gold and of predicted labels, including those that do not occur
    whole : the gold labelling of all positions
    """

    gold: Integers
    predicted: Integers
    positions: Integers
    n_tags: int
    n_states: int
    whole: Labels

    def halves(self) -> tuple[LabelPairs, LabelPairs]:
        """Return the first and the second half of the pairs; an odd pair is in the second half."""
        middle = len(self.gold) // 2
        if middle == 0:
            raise InputError("halves need at least two positions known to both gold and predicted, but there is one.")
        return self._piece(slice(None, middle)), self._piece(slice(middle, None))

    def _piece(self, part: slice) -> LabelPairs:
        return self._replace(gold=self.gold[part], predicted=self.predicted[part], positions=self.positions[part])


def pair_labels(gold: Any, predicted: Any, tag_names: Any = None) -> LabelPairs:
    """Return the pairs of labels of two labellings; raise an `InputError` if they do not fit or share no position."""
    tags, states = read_labels(gold, "gold"), read_labels(predicted, "predicted")
    check_same_positions(tags, states)
    if tags.names is not None and states.names is not None and tags.names != states.names:
        raise InputError(
            "gold and predicted have different vocabularies, so that the same number means different labels; recode "
            "one of them, as in predicted.recode(gold.vocabulary)."
        )
    if tag_names is not None:
        tags = tags._replace(names=tuple(tag_names))
        _check_range(tags)
    known = np.flatnonzero((tags.values != UNKNOWN) & (states.values != UNKNOWN))
    if not known.size:
        raise InputError(
            f"none of the {len(tags.values)} positions is known in both gold and predicted (-1 means unknown); there "
            "is nothing to score."
        )
    n_tags = int(tags.values.max()) + 1 if tags.names is None else len(tags.names)
    return LabelPairs(
        gold=tags.values[known],
        predicted=states.values[known],
        positions=known,
        n_tags=n_tags,
        n_states=int(states.values.max()) + 1,
        whole=tags,
    )


def check_same_positions(one: Labels, other: Labels) -> None:
    """Raise an `InputError` unless both labellings have the same sequences; for a flat array, the same total length."""
    if not len(one.values) or not len(other.values):
        raise InputError(f"{one.what if not len(one.values) else other.what} is empty; there is nothing to score.")
    if one.n_sequences > 1 and other.n_sequences > 1:
        if one.n_sequences != other.n_sequences:
            raise InputError(
                f"{one.what} has {one.n_sequences} sequences, but {other.what} has {other.n_sequences}; give the same "
                "ones in the same order."
            )
        differ = np.flatnonzero(np.diff(one.offsets) != np.diff(other.offsets))
        if differ.size:
            i = int(differ[0])
            raise InputError(
                f"sequence {i} has {np.diff(one.offsets)[i]} positions in {one.what}, but {np.diff(other.offsets)[i]} "
                f"in {other.what}."
            )
    if len(one.values) != len(other.values):
        raise InputError(f"{one.what} has {len(one.values)} positions, but {other.what} has {len(other.values)}.")
