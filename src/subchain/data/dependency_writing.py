"""Dependency trees as files and as text: CoNLL-U, lines of heads, and drawings for the terminal."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence

import numpy as np

from subchain.core.files import writing
from subchain.data.dependencies import ROOT, Dependencies, cycle_of
from subchain.errors import InputError, unknown_name

FORMATS = ("conllu", "heads")


def write_dependencies(target: str | os.PathLike[str], text: Dependencies, format: str = "conllu") -> None:
    """Write sentences with their heads, atomically.

    Parameters
    ----------
    target : path
    text : Dependencies
    format : "conllu", ten columns with the tag in the column that it was read from, as UPOS and as XPOS if there is
        none; or "heads", one line of heads a sentence. They count from 1, 0 is the root.
    """
    with writing(target) as file:
        write_sentences(text, file.write, format)


def write_sentences(text: Dependencies, write: Callable[[str], object], format: str = "conllu") -> None:
    """Write sentences with their heads by calls of `write`; see `write_dependencies`."""
    if format not in FORMATS:
        raise unknown_name("format of dependencies", format, FORMATS)
    if text.heads is None:
        raise InputError("there are no heads to write; parse the sentences first.")
    for words, tags, heads in zip(text.words, text.tags, text.heads, strict=True):
        if format == "heads":
            write(" ".join(str(head + 1) for head in heads.tolist()) + "\n")
        elif words:
            write(_conllu(words, tags, heads.tolist(), text.column))


def _conllu(words: Sequence[str], tags: Sequence[str], heads: Sequence[int], column: str | None) -> str:
    lines = io.StringIO()
    for number, (word, tag, head) in enumerate(zip(words, tags, heads, strict=True), start=1):
        relation = "root" if head == ROOT else "dep"
        upos, xpos = ("_" if column not in (None, name) else tag for name in ("upos", "xpos"))
        lines.write(f"{number}\t{word}\t_\t{upos}\t{xpos}\t_\t{head + 1}\t{relation}\t_\t_\n")
    return lines.getvalue() + "\n"


def drawn_tree(words: Sequence[str], heads: Sequence[int]) -> str:
    """Return a tree as text: a word a line, in the order of the sentence, indented by its distance from the root.

    Examples
    --------
    >>> from subchain.grammar import drawn_tree
    >>> print(drawn_tree(["The", "dog", "barks"], [1, 2, -1]))
      ┌─ The
    ┌─ dog
    barks
    """
    heads = _tree(words, heads)
    depths = [_depth(heads, word) for word in range(len(words))]
    lines = []
    for word, head in enumerate(heads):
        corner = "" if head == ROOT else "┌─ " if word < head else "└─ "
        lines.append(f"{'  ' * max(depths[word] - 1, 0)}{corner}{words[word]}")
    return "\n".join(lines)


def _tree(words: Sequence[str], heads: Sequence[int]) -> list[int]:
    """Return heads as whole numbers; raise an `InputError` unless every word comes to a root."""
    found, n = np.asarray(heads), len(words)
    if found.shape != (n,) or (n and not np.issubdtype(found.dtype, np.integer)):
        raise InputError(f"heads must be {n} whole numbers, one for each word, not {heads!r:.80}.")
    if n and (found.min() < ROOT or found.max() >= n):
        raise InputError(f"heads of {n} words must be -1, the root, … {n - 1}, not {found.tolist()!r:.80}.")
    at = cycle_of(found)
    if at is not None:
        raise InputError(f"heads form a cycle at word {at}, counted from 0: {found.tolist()!r:.80}.")
    return [int(head) for head in found]


def _depth(heads: Sequence[int], word: int) -> int:
    depth = 0
    while heads[word] != ROOT:
        word, depth = int(heads[word]), depth + 1
    return depth
