"""*Alice's Adventures in Wonderland* (Lewis Carroll, 1865; public domain) as sequences of characters or words.

Characters are prepared as in the HDP-HMM papers: lower case, only letters and single spaces, no headings. Full chunks
of 200 characters within each of the twelve chapters give the 663 sequences that the papers report.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from importlib import resources
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.data.sequences import Sequences
from subchain.data.vocabulary import Vocabulary
from subchain.datasets.paths import positive
from subchain.errors import InputError, unknown_name

_FILE = "carroll-alice.txt.gz"
# Eleven headings are on one line; the title of the twelfth is on a separate line below.
_HEADING = re.compile(r"^ *CHAPTER [IVX]+(?:\. .*|\s+.*)$", re.MULTILINE)
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
_SEQUENCES = ("chunks", "chapters", "chain")

Tokens = list[str]


class Alice(NamedTuple):
    """The book as data.

    Attributes
    ----------
    observations : Sequences
        Codes of characters or words, int32, with their vocabulary.
    chapters : array of shape (n_sequences,)
        Chapter of each sequence, from 0 to 11; −1 for the whole book.

    Examples
    --------
    >>> alice = load_alice("words", "chapters")
    >>> alice.observations.vocabulary.decode(alice.observations[0][:4])
    ['alice', 'was', 'beginning', 'to']
    """

    observations: Sequences
    chapters: NDArray[np.int64]


def load_alice(unit: str = "characters", sequences: str = "chunks", *, chunk: int = 200) -> Alice:
    """Load the book, which comes with the package.

    Use it as a real text that needs no download: 27 characters with strong sequential structure, or about 2,600 words.

    Parameters
    ----------
    unit : {"characters", "words"}
        Unit of one observation. Characters are the space and the letters, codes 0 to 26; words are lower-cased, keep
        inner apostrophes, and have their frequency rank as code.
    sequences : {"chunks", "chapters", "chain"}
        Division into sequences: `chunk` consecutive observations (the rest of each chapter is left out), a chapter, or
        the whole book.
    chunk : int
        Length of the chunks.

    Returns
    -------
    Alice
        `observations`, and the chapter of each sequence, `chapters`.

    Examples
    --------
    >>> alice = load_alice()
    >>> len(alice.observations), "".join(alice.observations.vocabulary.decode(alice.observations[0][:28]))
    (663, 'alice was beginning to get v')
    """
    if unit not in _UNITS:
        raise unknown_name("unit", unit, _UNITS)
    if sequences not in _SEQUENCES:
        raise unknown_name("value of sequences", sequences, _SEQUENCES)
    split, build_vocabulary = _UNITS[unit]
    book = _chapters()
    whole = split("\n".join(book))
    if sequences == "chain":
        texts, origins = [whole], [-1]
    else:
        texts, origins = [split(chapter) for chapter in book], list(range(len(book)))
    if sequences == "chunks":
        texts, origins = _full_chunks(texts, positive("chunk", chunk))
    if not texts:
        raise InputError(f"no chapter has chunk={chunk} {unit} or more; use a smaller chunk or sequences='chapters'.")
    # The vocabulary is that of the whole book, so that codes do not depend on the division into sequences.
    vocabulary = build_vocabulary(whole)
    offsets = np.cumsum([0, *map(len, texts)])
    codes = vocabulary.encode(chain.from_iterable(texts))
    return Alice(Sequences(codes, offsets, vocabulary=vocabulary), np.array(origins))


def _chapters() -> list[str]:
    """Return the twelve chapters in lower case, without headings and without the title of the book."""
    packed = resources.files("subchain.datasets").joinpath(_FILE).read_bytes()
    return [chapter.lower() for chapter in _HEADING.split(gzip.decompress(packed).decode("ascii"))[1:]]


def _full_chunks(chapters: list[Tokens], size: int) -> tuple[list[Tokens], list[int]]:
    """Return the full chunks of `size` tokens of all chapters, and the chapter of each chunk."""
    starts = [(c, s) for c, text in enumerate(chapters) for s in range(0, len(text) - size + 1, size)]
    return [chapters[c][s : s + size] for c, s in starts], [c for c, _ in starts]


def _characters(text: str) -> Tokens:
    """Return letters and single spaces; other signs are removed before spaces are merged, so that none are adjacent."""
    return list(" ".join(re.sub(r"[^a-z\s]", "", text).split()))


def _words(text: str) -> Tokens:
    return _WORD.findall(text)


def _alphabetical(tokens: Tokens) -> Vocabulary:
    return Vocabulary(sorted(set(tokens)))


def _by_frequency(tokens: Tokens) -> Vocabulary:
    return Vocabulary.build(tokens, unknown=None)


_UNITS: dict[str, tuple[Callable[[str], Tokens], Callable[[Tokens], Vocabulary]]] = {
    "characters": (_characters, _alphabetical),
    "words": (_words, _by_frequency),
}
