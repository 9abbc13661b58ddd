"""A treebank grammar as parsers read it, and the weights of the words of a sentence."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
Index = NDArray[np.int64]


class ChartGrammar(NamedTuple):
    """Rules over S symbols, of which the first is the root, in the orders in which charts need them.

    Attributes
    ----------
    rules : (R, 3) parent, left (or only) child, right child
    pairs : (P, 2) left and right symbols that rules have, sorted
    first_pair : (S + 1,) first pair of each left symbol
    of_pair, pair_rules : (P + 1,) and the binary rules of each pair
    first_binary, last_binary : (S,) the binary rules of each parent
    unary : unary rules of parents other than the root
    tops : unary rules of the root
    of_word, word_rules : (number of words + 2,) and the rules of each word; the last word is any rare one
    """

    rules: Ids
    pairs: Ids
    first_pair: Index
    of_pair: Index
    pair_rules: Ids
    first_binary: Index
    last_binary: Index
    unary: Ids
    tops: Ids
    of_word: Index
    word_rules: Ids


class Sentences(NamedTuple):
    """Words of sentences; each stands for itself and, if it is rare, for its class.

    Attributes
    ----------
    words : (N, 2) a word, and its class
    factors : (N, 2) how much the rules of each count, 0 for not at all
    starts : (number of sentences + 1,)
    """

    words: Ids
    factors: Array
    starts: Index
