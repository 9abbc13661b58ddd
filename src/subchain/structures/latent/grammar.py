"""The treebank grammar: symbols, words and rules of binarised trees, and the trees as codes.

Words that occur once in the treebank are replaced by their class (`data/unseen_words.py`), so that classes, too, have
rules, and words that a sentence to be parsed brings along are known by theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.data.tree import Tree
from subchain.data.unseen_words import word_class
from subchain.propagation.latent.trees import BINARY, UNARY, WORD, Forest

Index = NDArray[np.int64]

#: Occurrences up to which a word of the treebank is replaced by its class.
ONCE = 1


class TreebankGrammar(NamedTuple):
    """The rules of a treebank.

    Attributes
    ----------
    symbols : labels by their codes; the first is that of the root
    words : words and classes of words by their codes
    rules : (R, 3) parent, left (or only) child and right child, −1 where there is none; a word is the left child of a
        rule without a right one whose `arity` is zero. Rules of one parent stand together.
    arity : (R,) number of children that are symbols
    counts : (R,) uses in the treebank
    word_counts : (number of words,) occurrences in the treebank
    """

    symbols: list[str]
    words: list[str]
    rules: NDArray[np.int32]
    arity: NDArray[np.int8]
    counts: NDArray[np.int64]
    word_counts: NDArray[np.int64]

    @property
    def n_symbols(self) -> int:
        return len(self.symbols)


def leaves_of(trees: Sequence[Tree]) -> list[list[str]]:
    """Return the words of every tree."""
    return [tree.leaves() for tree in trees]


def known_words(sentences: Iterable[Sequence[str]]) -> Counter[str]:
    """Return how often each word and class of words occurs when rare words are replaced by their classes."""
    sentences = list(sentences)
    raw = Counter(word for sentence in sentences for word in sentence)
    return Counter(
        word if raw[word] > ONCE else word_class(word, is_first=place == 0)
        for sentence in sentences
        for place, word in enumerate(sentence)
    )


def treebank_grammar(trees: Sequence[Tree]) -> tuple[TreebankGrammar, Forest]:
    """Return the grammar of binarised trees, and the trees as rules of nodes."""
    sentences = leaves_of(trees)
    occurrences = known_words(sentences)
    words = sorted(occurrences)
    word_codes = {word: code for code, word in enumerate(words)}
    root = trees[0].label
    symbols = [root, *sorted({node.label for tree in trees for node in tree.subtrees()} - {root})]
    codes = {symbol: code for code, symbol in enumerate(symbols)}
    triples: list[tuple[int, int, int, int]] = []
    backs: list[int] = []
    starts = [0]
    for tree, sentence in zip(trees, sentences, strict=True):
        terminals = [
            word_codes[word] if word in word_codes else word_codes[word_class(word, is_first=place == 0)]
            for place, word in enumerate(sentence)
        ]
        _append_nodes(tree, codes, terminals, triples, backs)
        starts.append(len(triples))
    table, ids, counts = np.unique(np.array(triples, dtype=np.int64), axis=0, return_inverse=True, return_counts=True)
    grammar = TreebankGrammar(
        symbols, words, np.ascontiguousarray(table[:, [0, 2, 3]], dtype=np.int32),
        np.ascontiguousarray(BINARY - table[:, 1], dtype=np.int8), counts.astype(np.int64),
        np.array([occurrences[word] for word in words], dtype=np.int64),
    )  # fmt: skip
    forest = Forest(ids.ravel().astype(np.int32), np.array(backs, dtype=np.int32), np.array(starts, dtype=np.int64))
    return grammar, forest


def _append_nodes(
    tree: Tree,
    codes: dict[str, int],
    terminals: list[int],
    triples: list[tuple[int, int, int, int]],
    backs: list[int],
) -> None:
    """Append the rules of one tree's nodes from the bottom up and from the right, as (parent, 2 − arity, children)."""
    word = len(terminals)
    places: list[int] = []
    for node in reversed(list(tree.subtrees())):
        parent, back = codes[node.label], 0
        children = [codes[child.label] for child in node.children if isinstance(child, Tree)]
        if not children:
            word -= 1
            children = [terminals[word]]
            arity = WORD
        elif len(children) == 1:
            places.pop()
            arity = UNARY
        else:
            places.pop()
            back, arity = len(triples) - places.pop(), BINARY
        places.append(len(triples))
        triples.append((parent, BINARY - arity, children[0], children[1] if arity == BINARY else -1))
        backs.append(back)
