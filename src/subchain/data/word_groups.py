"""Groups of words: each word of a vocabulary belongs to one of G groups, numbered from 0.

Groups are given as an array with one number for each word, or as a text file with a word and its group in each line.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.class_files import read_class_names
from subchain.data.lines import existing_file
from subchain.data.vocabulary import Vocabulary
from subchain.errors import InputError

Index = NDArray[np.int64]


def word_groups(given: Any, vocabulary: Vocabulary | None) -> Index:
    """Return the group of each word, (W,), from an array or the path of a file.

    Parameters
    ----------
    given : (W,) of whole numbers, or path
        A file has one word and the name of its group in each line, as for :func:`read_word_classes`; groups are
        numbered in the order of their names, as numbers if all of them are. Words that are not in the vocabulary are
        ignored. The symbol for unknown words joins the group with most words if it is not in the file.
    vocabulary : Vocabulary, optional
        The words; a file needs it.

    Examples
    --------
    >>> from subchain.data.word_groups import word_groups
    >>> word_groups([0, 1, 1, 0], None)
    array([0, 1, 1, 0])
    """
    groups = _from_file(Path(given), vocabulary) if isinstance(given, (str, os.PathLike)) else _from_array(given)
    if vocabulary is not None and len(groups) != len(vocabulary):
        raise InputError(
            f"groups has {len(groups)} entries, but the vocabulary has {len(vocabulary)} words; give one group for "
            "each word, in the order of the vocabulary."
        )
    n_groups = int(groups.max()) + 1
    if n_groups > len(groups):
        raise InputError(
            f"groups has numbers up to {n_groups - 1}, so {n_groups} groups, but only {len(groups)} words; there cannot"
            " be more groups than words."
        )
    groups = groups.astype(np.int64)
    empty = np.flatnonzero(np.bincount(groups, minlength=n_groups) == 0)
    if len(empty):
        raise InputError(f"group {empty[0]} has no word; number the groups from 0 without gaps.")
    return groups


def _from_array(given: Any) -> Index:
    try:
        groups = np.asarray(given)
    except ValueError:
        raise InputError("groups must be a vector with one whole number for each word, not a ragged list.") from None
    if groups.ndim != 1 or groups.dtype.kind not in "iu" or not len(groups):
        raise InputError(
            "groups must be a vector with one whole number for each word, or the path of a file, not "
            f"{groups.dtype} of shape {groups.shape}."
        )
    if groups.min() < 0:
        word = int(groups.argmin())
        raise InputError(f"word {word} has no group: groups[{word}] is {groups[word]}; groups are numbered from 0.")
    return groups


def _from_file(path: Path, vocabulary: Vocabulary | None) -> Index:
    if vocabulary is None:
        raise InputError(
            f"groups={str(path)!r} names words, but the data have no vocabulary; give one group number for each code."
        )
    names = read_class_names(existing_file(path))
    words = vocabulary.to_list()
    if vocabulary.unknown is not None and vocabulary.unknown not in names:
        known = Counter(names[word] for word in words if word in names)
        if known:
            names[vocabulary.unknown] = known.most_common(1)[0][0]
    without = [word for word in words if word not in names]
    if without:
        raise InputError(
            f"{len(without)} of {len(words)} words have no group in {str(path)!r}, such as {without[0]!r}; add a line "
            "for each."
        )
    used = {names[word] for word in words}
    is_numbered = all(name.isdigit() for name in used)
    ordered = sorted(used, key=int) if is_numbered else sorted(used)
    number = {name: place for place, name in enumerate(ordered)}
    return np.array([number[names[word]] for word in words], dtype=np.int64)
