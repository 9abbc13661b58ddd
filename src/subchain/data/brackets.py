"""Treebanks in bracketed form, `(S (NP (DT the) (NN dog)) (VP (VBZ barks)))`: read and written.

Trees may span lines, and a line may hold several. The outer bracket without a label of the Penn Treebank is taken away.
"""

from __future__ import annotations

import gzip
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from subchain.core.files import writing
from subchain.data.lines import TextSource, name_of_source, numbered_lines
from subchain.data.tree import ESCAPES, Tree
from subchain.errors import FileFormatError, InputError

_TOKEN = re.compile(r"[()]|[^\s()]+", re.ASCII)
#: Label of a tree whose outer bracket has none, and several children.
TOP = "ROOT"


class _Open(NamedTuple):
    """A bracket that is still open: its line, label, and the children so far."""

    line: int
    label: list[str]
    children: list[Tree | str]


def read_trees(source: TextSource) -> list[Tree]:
    """Return the trees of a bracketed treebank; use `LatentPCFG.fit` to learn from them.

    Parameters
    ----------
    source : path or open file
        Files that end in .gz, .xz or .bz2 are unpacked.

    Returns
    -------
    list of Tree

    Examples
    --------
    >>> import io
    >>> from subchain.grammar import read_trees
    >>> [tree] = read_trees(io.StringIO("( (S (NP (NNS dogs)) (VP (VBP bark))) )"))
    >>> tree.leaves()
    ['dogs', 'bark']
    """
    return list(_trees(numbered_lines(source), name_of_source(source)))


def parse_bracketed(text: str) -> Tree:
    """Return the one tree of a text.

    Examples
    --------
    >>> from subchain.grammar import parse_bracketed
    >>> print(parse_bracketed("(NP (DT the) (NN dog))"))
    (NP (DT the) (NN dog))
    """
    found = list(_trees(enumerate(text.splitlines(), start=1), "the text"))
    if len(found) != 1:
        raise InputError(f"the text has {len(found)} trees, not one: {text!r:.80}.")
    return found[0]


def _trees(lines: Iterable[tuple[int, str]], name: str) -> Iterator[Tree]:
    """Yield trees; the stack holds what is open, so depth is not limited by Python's."""
    stack: list[_Open] = []
    for number, line in lines:
        for token in _TOKEN.findall(line):
            if token == "(":
                stack.append(_Open(number, [], []))
            elif not stack:
                what = "a closing bracket without an opening one" if token == ")" else f"{token!r:.60} outside of trees"
                raise FileFormatError(f"line {number} of {name} has {what}.")
            elif token == ")":
                tree = _closed(stack.pop(), number, name, is_outer=not stack)
                if stack:
                    stack[-1].children.append(tree)
                else:
                    yield tree
            elif not stack[-1].label and not stack[-1].children:
                stack[-1].label.append(token)
            else:
                stack[-1].children.append(token)
    if stack:
        raise FileFormatError(
            f"{name} ends, but {len(stack)} brackets are open, the first of them from line {stack[0].line} on; "
            "close them."
        )


def _closed(bracket: _Open, line: int, name: str, *, is_outer: bool) -> Tree:
    """Return the tree of a bracket that is closed on a line."""
    label, children = "".join(bracket.label), tuple(bracket.children)
    if not children:
        raise FileFormatError(f"line {line} of {name} has an empty bracket, ({label}); every node needs a child.")
    if label:
        return Tree(label, children)
    if not is_outer or not all(isinstance(child, Tree) for child in children):
        raise FileFormatError(f"line {line} of {name} has a bracket without a label inside of a tree.")
    first = children[0]
    return first if len(children) == 1 and isinstance(first, Tree) else Tree(TOP, children)


def write_trees(target: str | os.PathLike[str], trees: Iterable[Tree | None]) -> None:
    """Write trees in bracketed form, one a line, atomically; a file that ends in .gz is compressed.

    None, a sentence without a tree, is an empty line, which `read_trees` passes over. Brackets and blanks
    within labels and words are written as in `Tree`; a text that is empty is an error.
    """
    lines = "".join("\n" if tree is None else f"{_checked(tree)}\n" for tree in trees).encode()
    packs = Path(target).suffix.lower() == ".gz"
    with writing(target, "wb") as file:
        file.write(gzip.compress(lines, mtime=0) if packs else lines)


def _checked(tree: Tree) -> str:
    """Return a tree in brackets; raise an `InputError` if it could not be read back."""
    for text in itertools.chain((node.label for node in tree.subtrees()), tree.leaves()):
        if not re.fullmatch(r"[^\s()]+", text.translate(ESCAPES), re.ASCII):
            raise InputError(f"the label or word {text!r:.60} cannot be written in bracketed form.")
    empty = next((node.label for node in tree.subtrees() if not node.children), None)
    if empty is not None:
        raise InputError(f"the node {empty!r} has no child and cannot be written in bracketed form.")
    return str(tree)
