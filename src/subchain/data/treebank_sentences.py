"""Sentences for a grammar of a treebank, with their trees if they have any; files are told apart by what they hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

from subchain.data.brackets import read_trees
from subchain.data.dependencies import Dependencies, has_word_lines, words_of_lines
from subchain.data.lines import numbered_lines
from subchain.data.sentences import Tokens, as_sentences
from subchain.data.tree import Tree
from subchain.data.treebank import clean_tree, is_preterminal


def as_treebank_sentences(source: Any) -> list[Tree | Tokens]:
    """Return cleaned trees where they are given, and words where not; a tree of traces alone has no words.

    Parameters
    ----------
    source : list of sentences (trees, lists of words, or text), `Dependencies`, or a file: a treebank in brackets,
        CoNLL-U (its forms), lines of word, tag and head, or text with a sentence a line
    """
    if isinstance(source, (str, PathLike)):
        return _sentences_of_file(source)
    if isinstance(source, Dependencies):
        source = source.words
    if not isinstance(source, (list, tuple)):
        return list(as_sentences(source))
    words = as_sentences([() if isinstance(given, Tree) else given for given in source])
    return [_cleaned(given) if isinstance(given, Tree) else own for given, own in zip(source, words, strict=True)]


def words_of(sentences: Sequence[Tree | Tokens]) -> list[Tokens]:
    """Return the words of sentences."""
    return [tuple(given.leaves()) if isinstance(given, Tree) else given for given in sentences]


def is_bracketed(lines: Iterable[tuple[int, str]]) -> bool:
    """Return whether the numbered lines of a file are bracketed trees."""
    first = next((line for _, line in lines if line.strip()), "")
    return first.lstrip().startswith("(") and not first.startswith("(\t")  # else the word "(" with its fields


def trees_of_phrases(path: str | PathLike[str]) -> list[Tree | Tokens] | None:
    """Return the bracketed trees of a file whose leaves are tokens of any grammar; None if it has other contents.

    Where every word has a tag of its own, as in a treebank, traces and function tags are taken away; a tree of traces
    alone has no tokens.
    """
    if not is_bracketed(numbered_lines(path)):
        return None
    return [_cleaned(tree) if _has_tags(tree) else tree for tree in read_trees(path)]


def _has_tags(tree: Tree) -> bool:
    """Return whether every token is the only child of its node."""
    nodes = (node for node in tree.subtrees() if any(isinstance(child, str) for child in node.children))
    return all(map(is_preterminal, nodes))


def _sentences_of_file(path: str | PathLike[str]) -> list[Tree | Tokens]:
    lines = list(numbered_lines(path))
    if is_bracketed(lines):
        return [_cleaned(tree) for tree in read_trees(path)]
    if has_word_lines(path, lines):
        return [tuple(sentence) for sentence in words_of_lines(path, lines)]
    return [tuple(line.split()) for _, line in lines]


def _cleaned(tree: Tree) -> Tree | Tokens:
    found = clean_tree(tree)
    return () if found is None else found
