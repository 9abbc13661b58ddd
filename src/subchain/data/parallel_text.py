"""Sentence pairs in two languages as flat arrays of word codes, for word alignment.

Nothing is padded: the source sentence of pair *n* is ``source_tokens[source_offsets[n]:source_offsets[n + 1]]``, and
the same for the target. Empty sentences are kept, so that pair *n* is line *n* of the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.coding import CodedLines
from subchain.data.vocabulary import SymbolTable
from subchain.errors import InputError

#: A sentence: its tokens, or one line of text in which white space separates them.
Sentence = Iterable[str] | str


@dataclass(frozen=True, eq=False, slots=True)
class ParallelText:
    """Sentence pairs as flat arrays of word codes.

    Use :meth:`from_sentences` for lists and :func:`read_parallel` for files.

    Attributes
    ----------
    source_tokens, target_tokens : array of int32, shape (number of tokens,)
        Codes of the words, one sentence after the other.
    source_offsets, target_offsets : array of int64, shape (n_pairs + 1,)
        Index of the first token of each sentence, and the number of tokens.
    source_words, target_words : list of str
        The words in the order of their codes.

    Examples
    --------
    >>> from subchain.data import ParallelText
    >>> text = ParallelText.from_sentences(["the house", "the green house"], ["das Haus", "das grüne Haus"])
    >>> len(text), text.source_tokens, text.target_offsets
    (2, array([0, 1, 0, 2, 1], dtype=int32), array([0, 2, 5]))
    >>> text[1]
    (['the', 'green', 'house'], ['das', 'grüne', 'Haus'])
    """

    source_tokens: NDArray[np.int32]
    source_offsets: NDArray[np.int64]
    target_tokens: NDArray[np.int32]
    target_offsets: NDArray[np.int64]
    source_words: list[str]
    target_words: list[str]

    @classmethod
    def from_sentences(
        cls,
        source: Iterable[Sentence],
        target: Iterable[Sentence],
        lowercase: bool = False,
        like: ParallelText | None = None,
    ) -> ParallelText:
        """Return the coded text of sentences in two languages.

        Parameters
        ----------
        source, target : iterables of the same length
            Sentence *n* of one translates sentence *n* of the other. A sentence is a list of tokens, or a string of
            tokens separated by white space. Sentences may be empty.
        lowercase : bool
            Convert everything to lower case.
        like : ParallelText, optional
            Text whose words keep their codes here, such as the training text. New words get the codes after them.

        Examples
        --------
        >>> from subchain.data import ParallelText
        >>> seen = ParallelText.from_sentences(["a b"], ["x"])
        >>> new = ParallelText.from_sentences([["b", "c"]], [[]], like=seen)
        >>> new.source_tokens, new.source_words, new.target_words
        (array([1, 2], dtype=int32), ['a', 'b', 'c'], ['x'])
        """
        sides: list[CodedLines] = []
        for name, sentences, known in (
            ("source", source, () if like is None else like.source_words),
            ("target", target, () if like is None else like.target_words),
        ):
            if isinstance(sentences, (str, bytes)):
                raise InputError(f"{name} must be a list of sentences, not one string; read files with read_parallel.")
            coded = CodedLines(known)
            for number, sentence in enumerate(sentences):
                coded.append(_tokens(sentence, lowercase, name, number))
            sides.append(coded)
        return cls.from_coded(sides[0], sides[1])

    @classmethod
    def from_coded(cls, source: CodedLines, target: CodedLines) -> ParallelText:
        """Return the text of coded sentences."""
        if source.n_lines != target.n_lines:
            raise unequal_sides("sentences", "source", source.n_lines, "target", target.n_lines)
        return cls(*source.codes(), *target.codes(), source.symbols, target.symbols)

    def __len__(self) -> int:
        return len(self.source_offsets) - 1

    def __getitem__(self, pair: int) -> tuple[list[str], list[str]]:
        if not -len(self) <= pair < len(self):
            raise IndexError(f"sentence pair {pair} does not exist; there are {len(self)} pairs.")
        pair %= len(self)
        return (
            _words(self.source_tokens, self.source_offsets, self.source_words, pair),
            _words(self.target_tokens, self.target_offsets, self.target_words, pair),
        )

    def __iter__(self) -> Iterator[tuple[list[str], list[str]]]:
        return (self[pair] for pair in range(len(self)))

    @property
    def source_lengths(self) -> NDArray[np.int64]:
        """Number of tokens of each source sentence, (n_pairs,)."""
        return np.diff(self.source_offsets)

    @property
    def target_lengths(self) -> NDArray[np.int64]:
        """Number of tokens of each target sentence, (n_pairs,)."""
        return np.diff(self.target_offsets)

    @property
    def n_cells(self) -> int:
        """Number of pairs of a source position and a target position of the same sentence pair."""
        return int(self.source_lengths @ self.target_lengths)

    def swapped(self) -> ParallelText:
        """Return the same text with source and target exchanged; nothing is copied.

        Examples
        --------
        >>> from subchain.data import ParallelText
        >>> ParallelText.from_sentences(["a"], ["x y"]).swapped()[0]
        (['x', 'y'], ['a'])
        """
        return ParallelText(
            self.target_tokens, self.target_offsets, self.source_tokens, self.source_offsets,
            self.target_words, self.source_words,
        )  # fmt: skip

    def recoded(self, like: ParallelText) -> ParallelText:
        """Return the same text with the codes of another one; words that it lacks get the codes after its words.

        Examples
        --------
        >>> from subchain.data import ParallelText
        >>> seen = ParallelText.from_sentences(["a b"], ["x"])
        >>> ParallelText.from_sentences(["b c"], ["x"]).recoded(seen).source_tokens
        array([1, 2], dtype=int32)
        """
        source, source_words = _recoded(self.source_tokens, self.source_words, like.source_words)
        target, target_words = _recoded(self.target_tokens, self.target_words, like.target_words)
        return ParallelText(source, self.source_offsets, target, self.target_offsets, source_words, target_words)

    def shortened(self, length: int, most: int | None = None, like: ParallelText | None = None) -> ParallelText:
        """Return the same text with words cut to their first letters: those that begin alike become one word.

        Parameters
        ----------
        length : int
            Number of letters.
        most : int, optional
            Cut only words that occur at most so often.
        like : ParallelText, optional
            Text whose words are not cut.

        Examples
        --------
        >>> from subchain.data import ParallelText
        >>> ParallelText.from_sentences(["he worked"], ["er arbeitete"]).shortened(4)[0]
        (['he', 'work'], ['er', 'arbe'])
        """
        sides = []
        for tokens, words, known in (
            (self.source_tokens, self.source_words, set() if like is None else set(like.source_words)),
            (self.target_tokens, self.target_words, set() if like is None else set(like.target_words)),
        ):
            counts = np.bincount(tokens, minlength=len(words))
            stays = [False] * len(words) if most is None else (counts > most).tolist()
            cut = [w if stay or w in known else w[:length] for w, stay in zip(words, stays, strict=True)]
            sides.append(_recoded(tokens, cut, []))
        (source, source_words), (target, target_words) = sides
        return ParallelText(source, self.source_offsets, target, self.target_offsets, source_words, target_words)

    def lowered(self) -> ParallelText:
        """Return the same text in lower case.

        Examples
        --------
        >>> from subchain.data import ParallelText
        >>> ParallelText.from_sentences(["The house"], ["Das Haus"]).lowered()[0]
        (['the', 'house'], ['das', 'haus'])
        """
        source, source_words = _recoded(self.source_tokens, [word.lower() for word in self.source_words], [])
        target, target_words = _recoded(self.target_tokens, [word.lower() for word in self.target_words], [])
        return ParallelText(source, self.source_offsets, target, self.target_offsets, source_words, target_words)

    def __repr__(self) -> str:
        return (
            f"ParallelText({len(self):,} sentence pairs, {len(self.source_tokens):,} and {len(self.target_tokens):,} "
            f"tokens, {len(self.source_words):,} and {len(self.target_words):,} words)"
        )


def unequal_sides(what: str, first: str, n_first: int, second: str, n_second: int) -> InputError:
    """Return the error for sides that do not have the same number of sentences."""
    return InputError(
        f"{first} has {n_first:,} {what}, but {second} has {n_second:,}; sentence n of one must translate sentence n "
        "of the other."
    )


def _tokens(sentence: Any, lowercase: bool, side: str, number: int) -> list[str]:
    """Return the tokens of a sentence of either kind."""
    if isinstance(sentence, str):
        return (sentence.lower() if lowercase else sentence).split()
    try:
        tokens = list(sentence)
    except TypeError:
        raise InputError(
            f"{side} sentence {number} is a {type(sentence).__name__}; give a list of tokens or a string."
        ) from None
    for token in tokens:
        if not isinstance(token, str):
            raise InputError(
                f"{side} sentence {number} holds {token!r} of type {type(token).__name__}; tokens are strings."
            )
    return [token.lower() for token in tokens] if lowercase else tokens


def _recoded(tokens: NDArray[np.int32], words: list[str], known: list[str]) -> tuple[NDArray[np.int32], list[str]]:
    """Return codes for `known` words, followed by the new ones among `words`, and all of these words."""
    if words is known:
        return tokens, words
    table = SymbolTable(known)
    codes = np.fromiter(map(table.__getitem__, words), dtype=np.int32, count=len(words))
    return (codes[tokens] if len(words) else tokens), table.symbols


def _words(tokens: NDArray[np.int32], offsets: NDArray[np.int64], words: list[str], number: int) -> list[str]:
    return [words[code] for code in tokens[offsets[number] : offsets[number + 1]].tolist()]
