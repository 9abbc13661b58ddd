"""Sentences for a grammar of a treebank: files are told apart by what they hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from subchain.data.treebank_sentences import as_treebank_sentences, words_of
from subchain.errors import FileFormatError
from subchain.grammar import Tree, parse_bracketed, read_dependencies

WORDS = [("dogs", "bark"), ("the", "cat")]
ROWS = ["1\tdogs", "2\tbark", "", "1\tthe", "2\tcat"]
CONLLU = "\n".join(["# sent_id = 1", *(row and row + "\t_" * 8 for row in ROWS)])
FILES = {
    "bank.mrg": "\n( (S (NP-SBJ\n\t(NNS dogs)) (VP (VBP bark) (NP (-NONE- *)))))\n(NP (DT the) (NN cat))\n",
    "bank.conllu": CONLLU,
    "bank.txt": CONLLU,
    "heads.tsv": "dogs\tNNS\t2\nbark\tVBP\t0\n\nthe\tDT\t2\ncat\tNN\t0\n",
    "text": "dogs bark\nthe cat\n",
}


@pytest.mark.parametrize("name", FILES)
def test_words_are_those_of_any_kind_of_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FILES[name], encoding="utf8")
    for path in tmp_path / name, str(tmp_path / name):
        assert words_of(as_treebank_sentences(path)) == WORDS


def test_trees_are_cleaned_and_those_of_traces_alone_have_no_words(tmp_path: Path) -> None:
    text = "(S (NP-SBJ (NNS dogs)) (VP (VBP bark)))\n(S (NP (-NONE- *)))\n"
    (tmp_path / "bank").write_text(text, encoding="utf8")
    trees = [parse_bracketed(line) for line in text.splitlines()]
    for source in tmp_path / "bank", trees:
        tree, empty = as_treebank_sentences(source)
        assert str(tree) == "(S (NP (NNS dogs)) (VP (VBP bark)))"
        assert empty == ()
    mixed = as_treebank_sentences([trees[0], "dogs bark", ["dogs"], ""])
    assert isinstance(mixed[0], Tree)
    assert mixed[1:] == [("dogs", "bark"), ("dogs",), ()]


def test_the_words_of_dependencies_are_taken_not_the_tags(tmp_path: Path) -> None:
    (tmp_path / "heads.tsv").write_text(FILES["heads.tsv"], encoding="utf8")
    assert words_of(as_treebank_sentences(read_dependencies(tmp_path / "heads.tsv"))) == WORDS


def test_a_bracket_may_be_a_word_with_its_fields(tmp_path: Path) -> None:
    (tmp_path / "heads").write_text("(\t-LRB-\t0\n", encoding="utf8")
    assert as_treebank_sentences(tmp_path / "heads") == [("(",)]
    (tmp_path / "bad.conllu").write_text("1\tdogs\n", encoding="utf8")
    with pytest.raises(FileFormatError, match=r"bad\.conllu"):
        as_treebank_sentences(tmp_path / "bad.conllu")
