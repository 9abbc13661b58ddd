"""Words of sentences as a treebank grammar knows them: themselves, their classes, or any rare word.

A word that occurs up to five times in the treebank has, beside its own probability, a tenth of that of its class. A
word that the treebank has not is taken for its class, or for any class if there is none such. Where the treebank has no
word that occurs once, and so no classes, it is taken for any word, once in N + 1 for N words of the treebank.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from subchain.data.unseen_words import word_class
from subchain.propagation.latent.grammar import ChartGrammar, Sentences
from subchain.propagation.latent.trees import BINARY, UNARY, WORD
from subchain.structures.latent.grammar import TreebankGrammar

#: Occurrences up to which a known word is also taken for one of its class, and how much its class counts.
RARE, CLASS_SHARE = 5, 0.1


def chart_grammar(grammar: TreebankGrammar) -> ChartGrammar:
    """Return the rules in the orders in which parsers need them."""
    rules, n = grammar.rules, grammar.n_symbols
    parents = rules[:, 0].astype(np.int64)
    binary = np.flatnonzero(grammar.arity == BINARY)
    keys = rules[binary, 1].astype(np.int64) * n + rules[binary, 2]
    pairs, of_rule = np.unique(keys, return_inverse=True)
    by_pair = np.argsort(of_rule.ravel(), kind="stable")
    lefts = pairs // n
    first_of_parent = np.searchsorted(parents, np.arange(n))
    n_binary = np.bincount(parents[binary], minlength=n)
    unary = np.flatnonzero(grammar.arity == UNARY)
    of_word, word_rules = _word_rules(grammar)
    return ChartGrammar(
        rules, np.stack([lefts, pairs % n], axis=1).astype(np.int32).reshape(-1, 2),
        np.searchsorted(lefts, np.arange(n + 1)).astype(np.int64),
        np.searchsorted(np.sort(of_rule.ravel()), np.arange(len(pairs) + 1)).astype(np.int64),
        binary[by_pair].astype(np.int32), first_of_parent.astype(np.int64),
        (first_of_parent + n_binary).astype(np.int64), unary[parents[unary] > 0].astype(np.int32),
        unary[parents[unary] == 0].astype(np.int32), of_word, word_rules,
    )  # fmt: skip


def _word_rules(grammar: TreebankGrammar) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the rules of every word, and of all classes, or if there are none of all words, as one more word."""
    lexical = np.flatnonzero(grammar.arity == WORD)
    words = grammar.rules[lexical, 1]
    order = np.argsort(words, kind="stable")
    are_classes = np.array([is_class(word) for word in grammar.words])
    some = lexical[are_classes[words]] if are_classes.any() else lexical
    starts = np.searchsorted(words[order], np.arange(len(grammar.words) + 1))
    return np.append(starts, starts[-1] + len(some)).astype(np.int64), np.append(lexical[order], some).astype(np.int32)


def is_class(word: str) -> bool:
    """Return whether a word is the class of words that occur once."""
    return len(word) > 2 and word.startswith("<") and word.endswith(">")


class Lexicon:
    """Codes of words.

    Parameters
    ----------
    grammar : its words, and how often each occurs
    """

    def __init__(self, grammar: TreebankGrammar) -> None:
        self.codes = {word: code for code, word in enumerate(grammar.words)}
        self.counts = grammar.word_counts
        self.any_rare = len(grammar.words)
        has_classes = any(map(is_class, grammar.words))
        self.unseen_share = 1.0 if has_classes else 1.0 / (1.0 + float(grammar.word_counts.sum()))

    def encode(self, sentences: Sequence[Sequence[str]]) -> Sentences:
        """Return words and their classes as codes."""
        words, factors = list[tuple[int, int]](), list[tuple[float, float]]()
        for sentence in sentences:
            for place, word in enumerate(sentence):
                code = self.codes.get(word, -1)
                unseen = self.codes.get(word_class(word, is_first=place == 0), self.any_rare)
                if code < 0:
                    words.append((0, unseen))
                    factors.append((0.0, self.unseen_share))
                else:
                    words.append((code, unseen))
                    is_rare = self.counts[code] <= RARE and unseen != self.any_rare
                    factors.append((1.0, CLASS_SHARE if is_rare else 0.0))
        starts = np.concatenate([[0], np.cumsum([len(sentence) for sentence in sentences])]).astype(np.int64)
        return Sentences(
            np.array(words, dtype=np.int32).reshape(-1, 2), np.array(factors, dtype=np.float64).reshape(-1, 2), starts
        )  # fmt: skip
