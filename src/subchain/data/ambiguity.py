"""How much a tag dictionary leaves open about the tags of a corpus."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.data.vocabulary import MISSING
from subchain.errors import InputError


class Ambiguity(NamedTuple):
    """How much a dictionary leaves open about a corpus; see :meth:`TagDictionary.ambiguity`.

    Attributes
    ----------
    n_tokens : number of words counted
    tags_per_token : mean number of legal tags
    ambiguous : share of words with more than one legal tag
    random_accuracy : expected accuracy of choosing among the legal tags at random
    coverage : share of words whose gold tag is legal, above which no accuracy can be

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
    """Measure the ambiguity of words (N,) whose legal tags are the rows of a table (W, K).

    Words and tags that are missing (-1) are left out; without tags (N,) every gold tag is taken to be legal.
    """
    seen = words != MISSING if tags is None else (words != MISSING) & (tags != MISSING)
    if not seen.any():
        raise InputError("no word is known together with its tag; there is nothing to count.")
    n_legal = legal.sum(axis=1)[words[seen]]
    right = np.ones(len(n_legal)) if tags is None else legal[words[seen], tags[seen]].astype(np.float64)
    return Ambiguity(
        n_tokens=len(n_legal),
        tags_per_token=float(n_legal.mean()),
        ambiguous=float((n_legal > 1).mean()),
        random_accuracy=float((right / n_legal).mean()),
        coverage=float(right.mean()),
    )
