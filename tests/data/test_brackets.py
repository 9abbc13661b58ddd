"""Bracketed treebanks are read and written; what is wrong with a file is said with its line."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from subchain.errors import FileFormatError, InputError
from subchain.grammar import Tree, parse_bracketed, read_trees, write_trees

TEXT = """( (S (NP (DT the) (NN dog))
     (VP (VBZ barks))) )
(S (VP (VB go))) (X (Y a\u00a0b))
( (A a) (B b) )
"""


def test_trees_may_span_lines_and_share_them() -> None:
    trees = read_trees(io.StringIO(TEXT))
    assert [str(tree) for tree in trees] == [
        "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))", "(S (VP (VB go)))", "(X (Y a\u00a0b))", "(ROOT (A a) (B b))",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["trees.txt", "trees.txt.gz"])
def test_written_trees_are_read_again(name: str, tmp_path: Path) -> None:
    trees = [*read_trees(io.StringIO(TEXT)), Tree("S", (Tree("-LRB-", ("(",)),))]
    write_trees(tmp_path / name, trees)
    again = read_trees(tmp_path / name)
    assert again[:-1] == trees[:-1]
    assert again[-1].leaves() == ["-LRB-"]
    packed = (tmp_path / name).read_bytes()
    write_trees(tmp_path / name, trees)
    assert (tmp_path / name).read_bytes() == packed
    if name.endswith(".gz"):
        assert gzip.decompress(packed).decode().count("\n") == len(trees)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NP a)\n(VP b)\n", "ends, but 1 brackets are open, the first of them from line 1 on"),
        ("(S a)\n(S b))\n", "line 2 of the open file has a closing bracket without an opening one"),
        ("(S a)\nword\n", "line 2 of the open file has 'word' outside of trees"),
        ("(S a)\n(S (NP))\n", "line 2 of the open file has an empty bracket"),
        ("()", "empty bracket"),
        ("(S ((NP a)))", "line 1 of the open file has a bracket without a label inside of a tree"),
    ],
)
def test_unbalanced_brackets_are_named(text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        read_trees(io.StringIO(text))


def test_nothing_is_written_of_trees_that_could_not_be_read_again(tmp_path: Path) -> None:
    for wrong in (Tree("S", ("",)), Tree("", ("a",)), Tree("S", ()), Tree("S", (Tree("NP", ()), "a"))):
        with pytest.raises(InputError, match="cannot be written"):
            write_trees(tmp_path / "trees.txt", [Tree("S", ("a",)), wrong])
    assert not (tmp_path / "trees.txt").exists()
    with pytest.raises(InputError, match="2 trees, not one"):
        parse_bracketed("(S a) (S b)")


def test_deep_trees_need_no_recursion() -> None:
    text = "(X " * 5000 + "a" + ")" * 5000
    assert parse_bracketed(text).leaves() == ["a"]


def test_a_sentence_without_a_tree_is_an_empty_line(tmp_path: Path) -> None:
    tree = parse_bracketed("(S (VB go))")
    write_trees(tmp_path / "trees.txt", [None, tree, None])
    assert (tmp_path / "trees.txt").read_text(encoding="utf8") == "\n(S (VB go))\n\n"
    assert read_trees(tmp_path / "trees.txt") == [tree]
