"""Reader of treebanks in the CoNLL-U format: the words of each sentence and their tags.

Every word is a line of ten fields separated by tabs; a blank line ends a sentence. Multiword tokens ("1-2"), empty
nodes ("1.1") and comments are skipped, so that only the syntactic words remain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from subchain.data.coding import CodedLines
from subchain.data.lines import TextSource, numbered_lines
from subchain.data.sequences import Sequences
from subchain.data.vocabulary import Vocabulary
from subchain.errors import FileFormatError, InputError, unknown_name

FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_READABLE = FIELDS[1:]
_ID = re.compile(r"[0-9]{1,9}([-.][0-9]{1,9})?")


class TaggedText(NamedTuple):
    """Words and tags of the same sentences, position by position.

    Examples
    --------
    >>> import io
    >>> from subchain.data import read_conllu
    >>> text = read_conllu(io.StringIO("1\\tDogs\\tdog\\tNOUN" + "\\t_" * 6 + "\\n\\n"))
    >>> text.words.vocabulary.decode(text.words[0]), text.tags.vocabulary.decode(text.tags[0])
    (['Dogs'], ['NOUN'])
    """

    words: Sequences
    tags: Sequences | None


class ConlluSentence(NamedTuple):
    """The words of one sentence, ten fields each, the numbers of their lines, and its `sent_id`."""

    name: str | None
    rows: list[list[str]]
    lines: list[int]

    def field(self, name: str) -> Iterator[str]:
        column = FIELDS.index(name)
        return (row[column] for row in self.rows)


def read_conllu(
    source: TextSource,
    column: str = "form",
    tags: str | None = "upos",
    lower: bool = False,
    min_count: int = 1,
    max_size: int | None = None,
    unknown: str | None = "<unk>",
    vocabulary: Vocabulary | None = None,
    tag_vocabulary: Vocabulary | None = None,
) -> TaggedText:
    """Read a treebank as sentences of coded words, with their tags.

    Parameters
    ----------
    source : path or open file
        UTF-8 text in CoNLL-U; files that end in .gz, .xz or .bz2 are decompressed.
    column : str
        The field that holds the word: "form" or "lemma", or any other but "id".
    tags : str or None
        The field that holds the tag, "upos" or "xpos"; a tag "_" is missing (-1). With None no tags are read.
    lower : bool
        Convert the words to lower case.
    min_count, max_size, unknown
        Settings of the vocabulary of the words, see :meth:`Vocabulary.build`.
    vocabulary, tag_vocabulary : Vocabulary, optional
        Existing vocabularies (of the training data) to use instead of new ones.

    Returns
    -------
    TaggedText
        ``words`` and ``tags``, one sequence per sentence each; the sequences are named by their ``sent_id`` if all
        sentences have one.

    Examples
    --------
    >>> import io
    >>> from subchain.data import read_conllu
    >>> rest = "\\t_" * 6
    >>> lines = ["# sent_id = s1", "1\\tDogs\\tdog\\tNOUN" + rest, "2\\tbark\\tbark\\tVERB" + rest, ""]
    >>> words, tags = read_conllu(io.StringIO("\\n".join(lines)))
    >>> words.values, tags.vocabulary.symbols, words.names
    (array([0, 1], dtype=int32), ('NOUN', 'VERB'), ('s1',))
    """
    for field in [column] if tags is None else [column, tags]:
        if field not in _READABLE:
            raise unknown_name("field of CoNLL-U", field, _READABLE)
    fold = str.lower if lower else str
    sentences = list(conllu_sentences(numbered_lines(source)))
    words = CodedLines()
    for sentence in sentences:
        words.append(fold(word) for word in sentence.field(column))
    if not len(words):
        raise InputError("the treebank holds no words; give a file with at least one word.")
    if vocabulary is None:
        vocabulary = words.build_vocabulary(min_count, max_size, unknown)
    names = [sentence.name for sentence in sentences if sentence.name is not None]
    shared = names if len(names) == len(sentences) else None
    coded_tags = None if tags is None else _coded_tags(sentences, tags, tag_vocabulary, shared)
    return TaggedText(words.as_lines(vocabulary, shared), coded_tags)


def _coded_tags(
    sentences: list[ConlluSentence], field: str, vocabulary: Vocabulary | None, names: list[str] | None
) -> Sequences:
    tags = CodedLines()
    for sentence in sentences:
        tags.append(None if tag == "_" else tag for tag in sentence.field(field))
    return tags.as_lines(tags.build_vocabulary() if vocabulary is None else vocabulary, names)


def conllu_sentences(lines: Iterable[tuple[int, str]]) -> Iterator[ConlluSentence]:
    """Yield the sentences of a file whose numbered lines are given."""
    name: str | None = None
    rows: list[list[str]] = []
    numbers: list[int] = []
    for number, line in lines:
        if line.startswith("#"):
            key, _, value = line[1:].partition("=")
            name = value.strip() if key.strip() == "sent_id" else name
        elif line.strip():
            fields = _fields(line, number)
            if fields[0].isdecimal():
                _check_order(fields[0], len(rows) + 1, number)
                rows.append(fields)
                numbers.append(number)
        elif rows:
            yield ConlluSentence(name, rows, numbers)
            name, rows, numbers = None, [], []
    if rows:
        yield ConlluSentence(name, rows, numbers)


def _fields(line: str, number: int) -> list[str]:
    fields = line.split("\t")
    if len(fields) != len(FIELDS):
        raise FileFormatError(
            f"line {number} has {len(fields)} of the {len(FIELDS)} fields of a CoNLL-U word, which are separated by "
            f"tabs: {line[:60]!r}."
        )
    if not _ID.fullmatch(fields[0]):
        raise FileFormatError(
            f"line {number} begins with {fields[0][:20]!r}; a word begins with its number, as in 3, 3-4 or 3.1."
        )
    return fields


def _check_order(found: str, expected: int, number: int) -> None:
    if int(found) != expected:
        raise FileFormatError(
            f"line {number} is word {found} where word {expected} was expected; a blank line may be missing between "
            "two sentences."
        )
