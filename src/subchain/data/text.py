"""Reader of plain text as sequences of coded words or characters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from os import PathLike
from typing import Literal

from subchain.data.coding import CodedLines
from subchain.data.lines import TextSource, numbered_lines
from subchain.data.sequences import Sequences
from subchain.data.vocabulary import Vocabulary
from subchain.errors import InputError, unknown_name

_UNITS: dict[str, Callable[[str], list[str]]] = {"words": str.split, "characters": list}
_SEQUENCES = ("lines", "chain", "paragraphs")


def read_text(
    source: TextSource,
    unit: Literal["words", "characters"] = "words",
    sequences: Literal["lines", "chain", "paragraphs"] = "lines",
    lower: bool = False,
    min_count: int = 1,
    max_size: int | None = None,
    unknown: str | None = "<unk>",
    vocabulary: Vocabulary | None = None,
    end: str | None = None,
) -> Sequences:
    """Read a text file as coded words or characters.

    Blank lines are not observed.

    Parameters
    ----------
    source : path or open file
        UTF-8 text; files that end in .gz, .xz or .bz2 are decompressed.
    unit : {"words", "characters"}
        Words are separated by white space. Characters are all characters of a line except the line end.
    sequences : {"lines", "chain", "paragraphs"}
        One sequence per line, the whole text as one long sequence, or one sequence per paragraph: lines up to a blank
        line. Paragraphs are named by their numbers, from 0.
    lower : bool
        Convert everything to lower case.
    min_count, max_size, unknown
        Settings of the vocabulary, see :meth:`Vocabulary.build`.
    vocabulary : Vocabulary, optional
        Existing vocabulary (of the training text) to use instead of a new one.
    end : str, optional
        Symbol appended to each line, such as "</s>" or a line end.

    Returns
    -------
    Sequences
        Codes, shape (N,), of type int32, with their ``vocabulary``.

    Examples
    --------
    >>> import io
    >>> from subchain.data import read_text
    >>> text = read_text(io.StringIO("the cat\\n\\nthe dog saw the cat\\n"), unknown=None)
    >>> text.lengths, text.values
    (array([2, 5]), array([0, 1, 0, 2, 3, 0, 1], dtype=int32))
    >>> text.vocabulary.decode(text[1])
    ['the', 'dog', 'saw', 'the', 'cat']
    """
    if unit not in _UNITS:
        raise unknown_name("unit of text", unit, _UNITS)
    if sequences not in _SEQUENCES:
        raise unknown_name("value of sequences", sequences, _SEQUENCES)
    units = _UNITS[unit]
    ending = [] if end is None else [end]
    coded = CodedLines()
    lines = (line.lower() if lower else line for _, line in numbered_lines(source))
    for passage in _paragraphs(lines) if sequences == "paragraphs" else ([line] for line in lines if line.strip()):
        coded.append(symbol for line in passage for symbol in units(line) + ending)
    if not len(coded):
        raise InputError(f"the text holds no {unit}; give a file that is not empty.")
    if vocabulary is None:
        vocabulary = coded.build_vocabulary(min_count, max_size, unknown)
    if sequences == "chain":
        return coded.as_chain(vocabulary)
    return coded.as_lines(vocabulary, names=range(coded.n_lines) if sequences == "paragraphs" else None)


def _paragraphs(lines: Iterable[str]) -> Iterator[Iterable[str]]:
    """Yield the lines between blank lines."""
    return (passage for has_text, passage in groupby(lines, lambda line: bool(line.strip())) if has_text)


def has_one_word_a_line(path: str | PathLike[str]) -> bool:
    """Return whether no line of a text file has two words: logs of events, tokens with blank lines between sentences.

    Lines are read up to the first with two words.
    """
    return all(len(line.split(maxsplit=2)) < 2 for _, line in numbered_lines(path))
