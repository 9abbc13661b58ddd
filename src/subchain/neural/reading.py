"""Sequences of words or codes as text that can be trained on, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from subchain.data import Sequences, as_sequences_like
from subchain.data.missing import is_missing
from subchain.data.vocabulary import Vocabulary
from subchain.errors import InputError
from subchain.neural.batches import Text


def check_codes(data: Sequences) -> None:
    """Raise an `InputError` for data that are not one column of codes, or that are empty."""
    if data.n_features != 1 or data.values.dtype.kind not in "iu":
        raise InputError(f"NeuralHMM needs one column of words or of codes, not {data!r}.")
    if not data.n_observations:
        raise InputError("the data hold no words.")


def data_like(x: Any, vocabulary: Vocabulary | None) -> Sequences:
    """Return data coded with the vocabulary of the training data."""
    return as_sequences_like(x, () if vocabulary is None else (vocabulary,))


def text_of(data: Sequences, n_words: int, *, joined: bool) -> Text:
    """Return sequences as text; raise an `InputError` for what are not codes of words."""
    check_codes(data)
    values = np.asarray(data.values).reshape(-1)
    missing = np.flatnonzero(is_missing(values))
    if len(missing):
        raise InputError(
            f"there is no word at {data.describe(int(missing[0]))}: it is missing, or not in the vocabulary. Train "
            "with a vocabulary that has a symbol for unknown words, as read_text makes it; to_hmm() gives a model that "
            "takes missing words."
        )
    wrong = np.flatnonzero((values < 0) | (values >= n_words))
    if len(wrong):
        raise InputError(
            f"there is no word at {data.describe(int(wrong[0]))}: the code is {values[wrong[0]]}, but words have codes "
            f"from 0 to {n_words - 1}."
        )
    return Text.of(values, data.offsets, joined=joined)


def common_end(data: Sequences) -> int | None:
    """Return the word that all sequences end with, if it stands nowhere else."""
    lasts = data.offsets[1:][data.lengths > 0] - 1
    words = np.asarray(data.values).reshape(-1)
    ends = np.unique(words[lasts])
    is_end = len(ends) == 1 and np.count_nonzero(words == ends[0]) == len(lasts)
    return int(ends[0]) if is_end else None
