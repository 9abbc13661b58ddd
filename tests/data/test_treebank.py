"""Trees are made ready for latent annotations, and come back."""

from __future__ import annotations

import pytest

from subchain.core.treebank_labels import base_label
from subchain.data.treebank import clean_tree, prepare_trees, restored
from subchain.data.unseen_words import word_class
from subchain.errors import InputError
from subchain.grammar import parse_bracketed


def test_traces_and_function_tags_are_taken_away() -> None:
    tree = parse_bracketed(
        "(S (NP-SBJ-1 (NP (NNP Bell)) (-NONE- *)) (VP (VBD was) (VP (VBN sold) (NP (-NONE- *-1)))) "
        "(ADVP|PRT=2 (RB up)))"
    )
    assert str(clean_tree(tree)) == "(S (NP (NNP Bell)) (VP (VBD was) (VP (VBN sold))) (ADVP (RB up)))"
    assert clean_tree(parse_bracketed("(S (NP (-NONE- *)))")) is None
    assert str(clean_tree(parse_bracketed("(X (X (X (X (A a) (B b)))))"))) == "(X (A a) (B b))"
    assert str(clean_tree(parse_bracketed("(X (X a))"))) == "(X (X a))"  # the lower one is a tag
    with pytest.raises(InputError, match="a word beside other children"):
        clean_tree(parse_bracketed("(S the (NN dog))"))


def test_nodes_are_binarised_to_the_right_and_come_back() -> None:
    texts = [
        "(S (A a) (B b) (C c) (D d))", "(S (NP (A a) (B b) (C c)) (VP (V v)))", "(ROOT (S (A a) (B b)))",
        "(ROOT (A a) (B b) (C c))", "(NP (N n))", "(N n)",
    ]  # fmt: skip
    found = prepare_trees(map(parse_bracketed, texts))
    assert str(found.trees[0]) == "(ROOT (S (A a) (@S (B b) (@S (C c) (D d)))))"
    assert str(found.trees[3]) == "(ROOT (@ROOT (A a) (@ROOT (B b) (C c))))"
    for text, tree in zip(texts, found.trees, strict=True):
        below = text.removeprefix("(ROOT ").removesuffix(")") if text.startswith("(ROOT") else text
        assert str(restored(tree, found.chains)) == f"(ROOT {below})"


def test_the_middles_of_unary_chains_come_back_as_they_were_most_often() -> None:
    trees = [parse_bracketed("(S (VP (VB go)))")] * 2 + [parse_bracketed("(S (NP (QP (VB go))))")]
    found = prepare_trees(trees)
    assert [str(tree) for tree in found.trees] == ["(ROOT (S (VB go)))"] * 3
    assert found.chains == {("S", "VB"): ("VP",)}
    assert str(restored(found.trees[0], found.chains)) == "(ROOT (S (VP (VB go))))"
    plain = prepare_trees([*trees, *[parse_bracketed("(S (VB go))")] * 3])
    assert plain.chains == {}


def test_long_flat_and_deep_trees_need_no_recursion() -> None:
    flat = parse_bracketed("(S " + "(A a)" * 3000 + ")")
    found = prepare_trees([flat])
    assert restored(found.trees[0], found.chains).children[0] == flat


@pytest.mark.parametrize(
    ("label", "base"), [("NP-SBJ=2", "NP"), ("-NONE-", "-NONE-"), ("PRP$", "PRP$"), ("WHNP|X", "WHNP"), ("=", "=")]
)
def test_labels_are_cut_at_function_tags(label: str, base: str) -> None:
    assert base_label(label) == base


def test_words_have_classes() -> None:
    classes = [word_class(word) for word in ("walking", "U.S.", "49-year-old", "s", "McDonald", "x", "")]
    assert classes == [
        "<ing>", "<Capital-capitals>", "<digit-dash>", "<word>", "<Capital-capitals>", "<word>", "<word>",
    ]  # fmt: skip
    assert word_class("The", is_first=True) == "<First>" != word_class("The")
