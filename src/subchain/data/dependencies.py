"""Sentences of tags with dependency heads: readers of treebanks, and what grammars are fitted to."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from subchain.data.conllu import FIELDS, conllu_sentences
from subchain.data.lines import TextSource, name_of_source, numbered_lines
from subchain.data.sequences import Sequences
from subchain.data.tree import Tree
from subchain.errors import FileFormatError, InputError, unknown_name

#: Tags of the Penn Treebank that mark punctuation and currency symbols.
PENN_PUNCTUATION = ("``", "''", ",", ".", ":", "-LRB-", "-RRB-", "#", "$")
UNIVERSAL_PUNCTUATION = ("PUNCT",)
_COLUMNS = ("upos", "xpos")
ROOT = -1


@dataclasses.dataclass
class Dependencies:
    """Sentences with a tag and, perhaps, a head for every word.

    Attributes
    ----------
    words, tags : list of lists of str
        One list for each sentence.
    heads : list of arrays of int, or None
        Position of the head of every word within its sentence, from 0; -1 for the root.
    column : "upos", "xpos" or None
        The field of CoNLL-U that the tags were read from; None if they come from elsewhere.

    Examples
    --------
    >>> import io
    >>> from subchain.data import read_dependencies
    >>> text = read_dependencies(io.StringIO("Dogs\\tNNS\\t2\\nbark\\tVBP\\t0\\n.\\t.\\t2\\n"))
    >>> text.tags, text.heads[0].tolist()
    ([['NNS', 'VBP', '.']], [1, -1, 1])
    """

    words: list[list[str]]
    tags: list[list[str]]
    heads: list[NDArray[np.int64]] | None
    column: str | None = None

    def __len__(self) -> int:
        return len(self.tags)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of words of each sentence."""
        return np.array([len(sentence) for sentence in self.tags], dtype=np.int64)

    def take(self, sentences: Iterable[int]) -> Self:
        """Return the sentences with these numbers."""
        chosen = [int(number) for number in sentences]
        heads = None if self.heads is None else [self.heads[number] for number in chosen]
        return type(self)([self.words[n] for n in chosen], [self.tags[n] for n in chosen], heads, self.column)

    def of_length(self, least: int = 1, most: int | None = None) -> Self:
        """Return the sentences of `least` to `most` words."""
        lengths = self.lengths
        fits = lengths >= least if most is None else (lengths >= least) & (lengths <= most)
        return self.take(np.flatnonzero(fits))

    def without(self, tags: Sequence[str]) -> Self:
        """Return the sentences without words of these tags; their dependents go to their heads."""
        return self.where([[tag not in tags for tag in sentence] for sentence in self.tags])

    def where(self, kept: Sequence[Sequence[bool]]) -> Self:
        """Return the sentences with the kept words; dependents of the others go to their heads."""
        words = [list(itertools.compress(*pair)) for pair in zip(self.words, kept, strict=True)]
        tags = [list(itertools.compress(*pair)) for pair in zip(self.tags, kept, strict=True)]
        if self.heads is None:
            return type(self)(words, tags, None, self.column)
        heads = [_kept_heads(*pair) for pair in zip(self.heads, kept, strict=True)]
        return type(self)(words, tags, heads, self.column)


def _kept_heads(heads: NDArray[np.int64], kept: Sequence[bool]) -> NDArray[np.int64]:
    """Return the heads of the kept words, in their new positions; removed heads are replaced by theirs."""
    places = np.cumsum(kept) - 1
    found = []
    for head in itertools.compress(heads.tolist(), kept):
        while head != ROOT and not kept[head]:
            head = int(heads[head])
        found.append(ROOT if head == ROOT else int(places[head]))
    return np.array(found, dtype=np.int64)


def read_dependencies(source: TextSource, column: str | None = None, punctuation: bool = True) -> Dependencies:
    """Read a treebank with dependency heads: CoNLL-U, or lines of ``word<TAB>tag<TAB>head``.

    Parameters
    ----------
    source : path or open file
        UTF-8 text; files that end in .gz, .xz or .bz2 are decompressed. A blank line ends a sentence. In lines of three
        fields heads count from 1, 0 is the root, and there are no comments.
    column : "upos" or "xpos", optional
        The field of CoNLL-U that holds the tags; "upos" by default.
    punctuation : bool
        Whether to keep punctuation. Without it, words are left out whose universal tag is PUNCT or, in lines of three
        fields, whose tag is one of the Penn Treebank's for punctuation and currency symbols; dependents of such words
        go to their heads.

    Returns
    -------
    Dependencies
        `heads` is None if a CoNLL-U file has none.

    Examples
    --------
    >>> import io
    >>> from subchain.data import read_dependencies
    >>> text = "Dogs\\tNNS\\t2\\nbark\\tVBP\\t0\\n.\\t.\\t2\\n"
    >>> read_dependencies(io.StringIO(text), punctuation=False).tags
    [['NNS', 'VBP']]
    """
    return _read(source, list(numbered_lines(source)), column, punctuation)


def _read(source: TextSource, lines: list[tuple[int, str]], column: str | None, punctuation: bool) -> Dependencies:
    with _named(source):
        return _read_lines_of(lines, column, punctuation)


@contextmanager
def _named(source: TextSource) -> Iterator[None]:
    """Let errors name the file."""
    try:
        yield
    except FileFormatError as error:
        raise FileFormatError(f"{name_of_source(source)}: {error}") from error
    except InputError as error:
        raise InputError(f"{name_of_source(source)}: {error}") from error


def has_word_lines(path: str | PathLike[str], lines: list[tuple[int, str]]) -> bool:
    """Return whether a file has a word with its fields on every line, and not a sentence."""
    return "conllu" in Path(path).name.split(".")[-2:] or any("\t" in line for _, line in lines[:100])


def words_of_lines(source: TextSource, lines: list[tuple[int, str]]) -> list[list[str]]:
    """Return the words of a file with a word on every line: the forms of CoNLL-U, or the first of three fields."""
    with _named(source):
        if _is_conllu(lines):
            return [list(sentence.field("form")) for sentence in conllu_sentences(lines)]
        return _read_lines(lines).words


def _is_conllu(lines: list[tuple[int, str]]) -> bool:
    first = next((line for _, line in lines if line.strip() and not _is_comment(line)), "")
    return first.count("\t") == len(FIELDS) - 1


def _is_comment(line: str) -> bool:
    """Return whether a line is a comment of CoNLL-U; the three fields of a word may begin with # too."""
    return line.startswith("#") and line.count("\t") != 2


def _read_lines_of(lines: list[tuple[int, str]], column: str | None, punctuation: bool) -> Dependencies:
    if _is_conllu(lines):
        text, universal = _read_conllu(lines, column or "upos")
        tags, marks = universal, set(UNIVERSAL_PUNCTUATION)
    else:
        if column is not None:
            raise InputError(f"column={column!r} is for CoNLL-U; lines of word, tag and head have one column of tags.")
        text = _read_lines(lines)
        tags, marks = text.tags, set(PENN_PUNCTUATION)
    if not len(text):
        raise InputError("the treebank holds no words; give a file with at least one word.")
    return text if punctuation else text.where([[tag not in marks for tag in sentence] for sentence in tags])


def _read_conllu(lines: list[tuple[int, str]], column: str) -> tuple[Dependencies, list[list[str]]]:
    """Return a CoNLL-U treebank and its universal tags."""
    if column not in _COLUMNS:
        raise unknown_name("column of tags", column, _COLUMNS)
    sentences = list(conllu_sentences(lines))
    words, tags, universal = ([list(s.field(name)) for s in sentences] for name in ("form", column, "upos"))
    given = [list(sentence.field("head")) for sentence in sentences]
    for sentence, own in zip(sentences, tags, strict=True):
        if "_" in own:
            at = own.index("_")
            raise FileFormatError(f"line {sentence.lines[at]}: word {at + 1} has no tag in column {column}.")
    heads = None
    if any(head != "_" for sentence in given for head in sentence):
        heads = [_checked_heads(own, sentence.lines) for own, sentence in zip(given, sentences, strict=True)]
    return Dependencies(words, tags, heads, column), universal


def _read_lines(lines: list[tuple[int, str]]) -> Dependencies:
    words: list[list[str]] = [[]]
    tags: list[list[str]] = [[]]
    heads: list[list[str]] = [[]]
    places: list[list[int]] = [[]]
    for number, line in lines:
        if not line.strip():
            if words[-1]:
                words.append([])
                tags.append([])
                heads.append([])
                places.append([])
            continue
        fields = line.split("\t")
        if len(fields) != 3 or not all(fields):
            raise FileFormatError(
                f"line {number} is {line[:60]!r}; every line needs a word, a tag and the number of its head, separated "
                "by tabs, or the ten fields of CoNLL-U."
            )
        for column, field in zip((words, tags, heads), fields, strict=True):
            column[-1].append(field)
        places[-1].append(number)
    if not words[-1]:
        words, tags, heads = words[:-1], tags[:-1], heads[:-1]
    checked = [_checked_heads(own, at) for own, at in zip(heads, places, strict=False)]
    return Dependencies(words, tags, checked)


def _checked_heads(given: Sequence[str], lines: Sequence[int]) -> NDArray[np.int64]:
    """Return heads counted from 0, -1 for the root; raise a `FileFormatError` with the line unless they form trees."""
    n = len(given)
    for position, head in enumerate(given):
        if not head.isdecimal() or int(head) > n:
            raise FileFormatError(
                f"line {lines[position]}: the head of word {position + 1} is {head!r}, not the number of one of the "
                f"{n} words of its sentence, or 0."
            )
    heads = np.array([int(head) - 1 for head in given], dtype=np.int64)
    at = cycle_of(heads)
    if at is not None:
        raise FileFormatError(f"line {lines[at]}: the heads of the sentence form a cycle at word {at + 1}.")
    return heads


def cycle_of(heads: NDArray[np.int64]) -> int | None:
    """Return the first word that never comes to the root because of a cycle; None if there is none."""
    above = heads.copy()
    for _ in range(len(heads)):  # after n steps up every word has come to the root, unless there is a cycle
        if (above == ROOT).all():
            return None
        above = np.where(above == ROOT, ROOT, heads[above])
    left = np.flatnonzero(above != ROOT)
    return int(left[0]) if len(left) else None


def _decoded(sequences: Sequences) -> list[list[str]]:
    if sequences.vocabulary is None:
        raise InputError("the sequences have no vocabulary; give lists of tags, or tags that `read_conllu` has read.")
    found = [sequences.vocabulary.decode(sequence) for sequence in sequences]
    for number, sentence in enumerate(found):
        if None in sentence:
            raise InputError(f"word {sentence.index(None)} of sentence {number} has no tag.")
    return [[str(tag) for tag in sentence] for sentence in found]


def _tags(sentence: Any, number: int) -> list[Any]:
    """Return the tags of a sentence of a list."""
    if isinstance(sentence, str):
        return sentence.split()
    if isinstance(sentence, Tree):
        return list(sentence.leaves())
    if not isinstance(sentence, Iterable):
        raise InputError(
            f"sentence {number} is of type {type(sentence).__name__}; give a list of tags, text or a tree."
        )
    return list(sentence)


def as_dependencies(source: Any, column: str | None = None, punctuation: bool = True) -> Dependencies:
    """Return sentences of tags of any kind, with their words and heads if they have any.

    Parameters
    ----------
    source : a `Dependencies`, `Sequences` with a vocabulary (such as tags that `read_conllu` has read), a list of
        sentences (lists of tags, strings with white space between them, or trees, whose leaves are taken), or the path
        of a file: CoNLL-U (its name has .conllu), lines of word, tag and head (separated by tabs), or text with one
        sentence of tags a line
    column, punctuation : for files with words, see `read_dependencies`
    """
    if isinstance(source, (str, PathLike)):
        lines = list(numbered_lines(source))
        if has_word_lines(source, lines):
            return _read(source, lines, column, punctuation)
        if column is not None or not punctuation:
            raise InputError(f"{str(source)!r} is plain text: it has tags alone, no columns and no words.")
        source = [line for _, line in lines]
    if isinstance(source, Dependencies):
        return source
    if isinstance(source, Sequences):
        source = _decoded(source)
    if not isinstance(source, (list, tuple)):
        raise InputError(f"sentences must be a list, a file or Dependencies, not a {type(source).__name__}.")
    sentences = [_tags(sentence, number) for number, sentence in enumerate(source)]
    for number, sentence in enumerate(sentences):
        wrong = next((tag for tag in sentence if not isinstance(tag, str)), None)
        if wrong is not None:
            raise InputError(f"sentence {number} holds {wrong!r} of type {type(wrong).__name__}; tags are strings.")
    return Dependencies(sentences, sentences, None)
