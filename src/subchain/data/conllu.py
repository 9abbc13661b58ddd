"""Treebanks in the CoNLL-U format: the words of each sentence and, beside them, their tags.

Every word is a line of ten fields separated by tabs; a blank line ends a sentence. Lines of multiword tokens ("1-2"),
empty nodes ("1.1") and comments are skipped, so that what remains are the syntactic words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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


class _Sentence(NamedTuple):
    name: str | None
    rows: list[list[str]]

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
        UTF-8 text in CoNLL-U; paths that end in .gz, .xz or .bz2 are unpacked on the way.
    column : str
        The field that is the word: "form" or "lemma", or any other but "id".
    tags : str or None
        The field that is the tag, "upos" or "xpos"; a tag "_" is missing (-1). With None no tags are read.
    lower : bool
        Turn the words into lower case.
    min_count, max_size, unknown
        How the vocabulary of the words is built, see :meth:`Vocabulary.build`.
    vocabulary, tag_vocabulary : Vocabulary, optional
        Code with these (those of the training part) instead of building them.

    Returns
    -------
    TaggedText
        ``words`` and ``tags``, both one sequence per sentence; the names are the ``sent_id`` where all have one.

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
    sentences = list(_sentences(source))
    words = CodedLines()
    for sentence in sentences:
        words.append(fold(word) for word in sentence.field(column))
    if not len(words):
        raise InputError("the treebank holds no words; there is nothing to learn from.")
    if vocabulary is None:
        vocabulary = words.build_vocabulary(min_count, max_size, unknown)
    names = [sentence.name for sentence in sentences if sentence.name is not None]
    shared = names if len(names) == len(sentences) else None
    coded_tags = None if tags is None else _coded_tags(sentences, tags, tag_vocabulary, shared)
    return TaggedText(words.as_lines(vocabulary, shared), coded_tags)


def _coded_tags(
    sentences: list[_Sentence], field: str, vocabulary: Vocabulary | None, names: list[str] | None
) -> Sequences:
    tags = CodedLines()
    for sentence in sentences:
        tags.append(None if tag == "_" else tag for tag in sentence.field(field))
    return tags.as_lines(tags.build_vocabulary() if vocabulary is None else vocabulary, names)


def _sentences(source: TextSource) -> Iterator[_Sentence]:
    """Collect the lines of one sentence after the other."""
    name: str | None = None
    rows: list[list[str]] = []
    for number, line in numbered_lines(source):
        if line.startswith("#"):
            key, _, value = line[1:].partition("=")
            name = value.strip() if key.strip() == "sent_id" else name
        elif line.strip():
            fields = _fields(line, number)
            if fields[0].isdecimal():
                _check_order(fields[0], len(rows) + 1, number)
                rows.append(fields)
        elif rows:
            yield _Sentence(name, rows)
            name, rows = None, []
    if rows:
        yield _Sentence(name, rows)


def _fields(line: str, number: int) -> list[str]:
    fields = line.split("\t")
    if len(fields) != len(FIELDS):
        raise FileFormatError(
            f"line {number} has {len(fields)} of the {len(FIELDS)} fields, separated by tabs, of a word of CoNLL-U: "
            f"{line[:60]!r}."
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
