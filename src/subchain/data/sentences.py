"""Sentences of tokens, for grammars: words, tags of treebanks, or characters."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from os import PathLike
from typing import Any

from subchain.data.dependencies import as_dependencies
from subchain.data.lines import numbered_lines
from subchain.data.tree import Tree
from subchain.errors import InputError, unknown_name

Tokens = tuple[str, ...]
#: What a token of text is, and what stands between tokens in the text.
UNITS = {"word": " ", "character": ""}


def as_sentences(source: Any, unit: str = "word", column: str | None = None) -> list[Tokens]:
    """Return the tokens of sentences.

    Parameters
    ----------
    source : list of sentences (lists of tokens, text, or trees, whose leaves are taken), a `Dependencies`,
        `Sequences` with a vocabulary, or a file: CoNLL-U, lines of word, tag and head, or text with a sentence a line
    unit : "word" or "character"
        How text is cut; lists of tokens are taken as they are.
    column : "upos", "xpos" or None
        Tags of a CoNLL-U file; "upos" by default.
    """
    if unit not in UNITS:
        raise unknown_name("unit", unit, UNITS)
    if unit == "word":
        return [tuple(sentence) for sentence in as_dependencies(source, column).tags]
    if column is not None:
        raise InputError("column= is for tags of CoNLL-U, not for unit='character'.")
    if isinstance(source, (str, PathLike)):
        source = [line for _, line in numbered_lines(source)]
    if not isinstance(source, (list, tuple)):
        raise InputError(f"sentences must be a list or a file, not a {type(source).__name__}.")
    return [_characters(sentence, number) for number, sentence in enumerate(source)]


def _characters(sentence: Any, number: int) -> Tokens:
    if isinstance(sentence, str):
        return tuple(sentence.strip())
    if isinstance(sentence, Tree):
        return tuple(sentence.leaves())
    found = tuple(sentence) if isinstance(sentence, Sequence) else (sentence,)
    wrong = next((token for token in found if not isinstance(token, str)), None)
    if wrong is not None:
        raise InputError(f"sentence {number} holds {wrong!r} of type {type(wrong).__name__}; tokens are text.")
    return found


def check_brackets(brackets: Any, sentences: Sequence[Tokens]) -> list[list[tuple[int, int]]]:
    """Return brackets of sentences; raise an `InputError` that names one which is no span of its sentence."""
    if not isinstance(brackets, (list, tuple)) or len(brackets) != len(sentences):
        raise InputError(f"brackets must be a list with the spans of each of the {len(sentences)} sentences.")
    found: list[list[tuple[int, int]]] = []
    for number, (own, sentence) in enumerate(zip(brackets, sentences, strict=True)):
        spans = []
        for span in own:
            try:
                first, last = (index(end) for end in span)
            except (TypeError, ValueError):
                first = last = -1
            if not 0 <= first < last <= len(sentence):
                raise InputError(
                    f"bracket {span!r} of sentence {number} is no span of its {len(sentence)} tokens: give the first "
                    "token, counted from 0, and the one after the last, two whole numbers."
                )
            spans.append((first, last))
        found.append(spans)
    return found
