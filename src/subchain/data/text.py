"""Reader of plain text as sequences of coded words or characters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from subchain.data.coding import CodedLines
from subchain.data.lines import TextSource, numbered_lines
from subchain.data.sequences import Sequences
from subchain.data.vocabulary import Vocabulary
from subchain.errors import InputError, unknown_name

_UNITS: dict[str, Callable[[str], list[str]]] = {"words": str.split, "characters": list}
_SEQUENCES = ("lines", "chain")


def read_text(
    source: TextSource,
    unit: Literal["words", "characters"] = "words",
    sequences: Literal["lines", "chain"] = "lines",
    lower: bool = False,
    min_count: int = 1,
    max_size: int | None = None,
    unknown: str | None = "<unk>",
    vocabulary: Vocabulary | None = None,
    end: str | None = None,
) -> Sequences:
    """Read a text file as coded words or characters.

    Blank lines are skipped.

    Parameters
    ----------
    source : path or open file
        UTF-8 text; files that end in .gz, .xz or .bz2 are decompressed.
    unit : {"words", "characters"}
        Words are separated by white space. Characters are all characters of a line except the line end.
    sequences : {"lines", "chain"}
        One sequence per line, or the whole text as one long sequence.
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
    for _, line in numbered_lines(source):
        if line.strip():
            coded.append(units(line.lower() if lower else line) + ending)
    if not len(coded):
        raise InputError(f"the text holds no {unit}; give a file that is not empty.")
    if vocabulary is None:
        vocabulary = coded.build_vocabulary(min_count, max_size, unknown)
    return coded.as_lines(vocabulary) if sequences == "lines" else coded.as_chain(vocabulary)
