"""Ambiguity of a corpus under a tag dictionary."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.data.vocabulary import MISSING
from subchain.errors import InputError


class Ambiguity(NamedTuple):
    """Ambiguity of a corpus under a tag dictionary, as returned by :meth:`TagDictionary.ambiguity`.

    Attributes
    ----------
    n_tokens : number of words counted
    tags_per_token : mean number of legal tags
    ambiguous : fraction of words with more than one legal tag
    random_accuracy : expected accuracy of a uniform choice among the legal tags
    coverage : fraction of words whose gold tag is legal, an upper bound on the accuracy

    Examples
    --------
    >>> from subchain.data import TagDictionary
    >>> TagDictionary({"the": "DT", "run": ["NN", "VB"]}).ambiguity(["the", "run"]).tags_per_token
    1.5
    """

    n_tokens: int
    tags_per_token: float
    ambiguous: float
    random_accuracy: float
    coverage: float


def measure_ambiguity(legal: NDArray[np.bool_], words: NDArray[Any], tags: NDArray[Any] | None = None) -> Ambiguity:
    """Return the ambiguity of a corpus.

    Parameters
    ----------
    legal : (W, K), whether symbol w may have tag k
    words : (N,) codes; missing ones (-1) are left out
    tags : (N,) gold tags, of which missing ones are left out; without them every gold tag counts as legal
    """
    seen = words != MISSING if tags is None else (words != MISSING) & (tags != MISSING)
    if not seen.any():
        raise InputError("the corpus has no position with a known word and a known tag; there is nothing to count.")
    n_legal = legal.sum(axis=1)[words[seen]]
    right = np.ones(len(n_legal)) if tags is None else legal[words[seen], tags[seen]].astype(np.float64)
    return Ambiguity(
        n_tokens=len(n_legal),
        tags_per_token=float(n_legal.mean()),
        ambiguous=float((n_legal > 1).mean()),
        random_accuracy=float((right / n_legal).mean()),
        coverage=float(right.mean()),
    )
