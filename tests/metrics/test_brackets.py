"""Brackets are counted as evalb counts them."""

from __future__ import annotations

import pytest

from subchain.errors import InputError
from subchain.grammar import Tree, parse_bracketed
from subchain.metrics import bracket_scores

GOLD = "(ROOT (S (NP-SBJ (DT the) (NN dog)) (VP (VBZ sees) (NP (-NONE- *)) (PRT (RP up))) (. .)))"


def counts(found: str, gold: str = GOLD) -> tuple[int, int, int]:
    scores = bracket_scores([parse_bracketed(found)], [parse_bracketed(gold)])
    return scores.n_matched, scores.n_found, scores.n_gold


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # the same: S, NP, VP and PRT count; ROOT, tags and the trace do not, and function tags are cut
        (GOLD, (4, 4, 4)),
        ("(TOP (S (NP (DT the) (NN dog)) (VP (VBZ sees) (ADVP (RB up))) (. .)))", (4, 4, 4)),
        # a full stop within the verb phrase changes no bracket; a phrase of punctuation alone is none
        ("(S (NP (DT the) (NN dog)) (VP (VBZ sees) (PRT (RP up)) (X (. .))))", (4, 4, 4)),
        # one label is wrong, one bracket is missing, and one stands twice
        ("(S (ADJP (DT the) (NN dog)) (VP (VBZ sees) (PRT (RP up))) (. .))", (3, 4, 4)),
        ("(S (NP (DT the) (NN dog)) (VBZ sees) (PRT (RP up)) (. .))", (3, 3, 4)),
        ("(S (NP (NP (DT the) (NN dog))) (VP (VBZ sees) (PRT (RP up))) (. .))", (4, 5, 4)),
        # what is punctuation is up to the gold tags
        ("(S (NP (DT the) (NN dog)) (VP (VBZ sees) (PRT (RP up))) (NN .))", (4, 4, 4)),
        ("(S (NP (DT the) (: dog)) (VP (VBZ sees) (PRT (RP up)) (. .)))", (4, 4, 4)),
    ],
)
def test_brackets_of_small_trees(found: str, expected: tuple[int, int, int]) -> None:
    assert counts(found) == expected


def test_scores_follow_from_counts() -> None:
    gold = [parse_bracketed(GOLD)] * 3
    found = [gold[0], parse_bracketed("(S (NP (DT the) (NN dog)) (NN sees) (PRT (RP up)) (. .))"), None]
    scores = bracket_scores(found, gold)
    assert (scores.n_matched, scores.n_found, scores.n_gold) == (7, 7, 12)
    assert scores.precision == 1.0
    assert scores.recall == pytest.approx(7 / 12)
    assert scores.f1 == pytest.approx(14 / 19)
    assert scores.exact == pytest.approx(1 / 3)
    assert scores.tagging == pytest.approx(7 / 12)  # four words of a sentence count
    assert (scores.n_sentences, scores.n_missing) == (3, 1)
    assert "58.33%" in str(scores)
    assert bracket_scores([None], gold[:1]).f1 == 0.0


def test_trees_that_cannot_be_compared_are_refused() -> None:
    one = parse_bracketed(GOLD)
    for found, gold, message in (
        ([], [], "no trees"),
        ([one], [], "1 parsed trees and 0 gold trees"),
        ([parse_bracketed("(S (A other))")], [one], "sentence 0: the parsed tree is over 'other'"),
    ):
        with pytest.raises(InputError, match=message):
            bracket_scores(found, gold)


def test_words_beside_other_children_have_no_tag() -> None:
    """As in trees of a grammar that writes tokens among symbols."""
    gold = parse_bracketed("(S (NP a (N b)) c (VP d e))")
    found = Tree("S", (Tree("NP", ("a", Tree("N", ("b",)))), Tree("VP", ("c", Tree("VP", ("d", "e"))))))
    scores = bracket_scores([found], [gold])
    assert (scores.n_matched, scores.n_found, scores.n_gold) == (3, 4, 3)
    assert scores.tagging == 1.0  # one word has a tag
