"""Scores of parsed trees against gold trees by the rules of evalb (Sekine & Collins 1997), with its usual parameters.

A bracket is a label over a span. Punctuation and empty nodes are taken out of the words; the top label, nodes over
single words that are their tags, and brackets that are left without words do not count. Labels are cut at function
tags, and PRT is the same as ADVP. Which words are punctuation is up to the tags of the gold tree.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from subchain.core.treebank_labels import EMPTY, TOPS, base_label
from subchain.errors import InputError

#: Tags of words that do not count.
LEFT_OUT = frozenset({",", ":", "``", "''", "."})
#: Labels that are the same as another.
SAME = {"PRT": "ADVP"}


class PhraseTree(Protocol):
    """What is asked of a tree; `subchain.data.Tree` is one."""

    @property
    def label(self) -> str: ...
    @property
    def children(self) -> tuple[Any, ...]: ...
    def subtrees(self) -> Iterator[Any]: ...
    def leaves(self) -> list[str]: ...
    def spans(self) -> list[tuple[str, int, int]]: ...


class BracketScores(NamedTuple):
    """Counts of brackets, and what follows from them, from 0 to 1; see :func:`bracket_scores`.

    Attributes
    ----------
    n_matched, n_found, n_gold : int
        Brackets that agree, of the parsed and of the gold trees.
    exact : float
        Share of sentences whose brackets are all right.
    tagging : float
        Share of words, without punctuation, whose tag is right; words without a tag in the gold tree do not count.
    n_sentences, n_missing : int
        Sentences, and those without a tree, whose gold brackets count as not found.
    """

    n_matched: int
    n_found: int
    n_gold: int
    exact: float
    tagging: float
    n_sentences: int
    n_missing: int

    @property
    def precision(self) -> float:
        """Share of the parsed brackets that are right."""
        return self.n_matched / self.n_found if self.n_found else 0.0

    @property
    def recall(self) -> float:
        """Share of the gold brackets that were found."""
        return self.n_matched / self.n_gold if self.n_gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.n_found + self.n_gold
        return 2.0 * self.n_matched / total if total else 0.0

    def __str__(self) -> str:
        return (
            f"sentences   {self.n_sentences:,}\nno tree     {self.n_missing:,}\n"
            f"precision   {self.precision:7.2%}\nrecall      {self.recall:7.2%}\nF1          {self.f1:7.2%}\n"
            f"exact       {self.exact:7.2%}\ntags        {self.tagging:7.2%}"
        )


def bracket_scores(found: Iterable[PhraseTree | None], gold: Iterable[PhraseTree]) -> BracketScores:
    """Return labelled precision, recall, F1 and exact match of parsed trees, as evalb counts them.

    Parameters
    ----------
    found : trees, or None for a sentence without one
    gold : trees over the same words, which may still have traces and function tags

    Examples
    --------
    >>> from subchain.grammar import parse_bracketed
    >>> from subchain.metrics import bracket_scores
    >>> gold = parse_bracketed("(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (PRP it))) (. .))")
    >>> parsed = parse_bracketed("(S (NP (DT the) (NN dog)) (VP (VBZ sees)) (NP (PRP it)) (. .))")
    >>> scores = bracket_scores([parsed], [gold])
    >>> scores.n_matched, scores.n_found, scores.n_gold
    (3, 4, 4)
    """
    parsed, right = list(found), list(gold)
    if len(parsed) != len(right):
        raise InputError(f"there are {len(parsed)} parsed trees and {len(right)} gold trees.")
    if not right:
        raise InputError("there are no trees to compare.")
    counts: Counter[str] = Counter()
    for number, (mine, theirs) in enumerate(zip(parsed, right, strict=True)):
        gold_leaves = _leaves(theirs)
        kept = [leaf.tag not in LEFT_OUT for leaf in gold_leaves if leaf.tag != EMPTY]
        gold_brackets = _brackets(theirs, gold_leaves, kept)
        counts["gold"] += sum(gold_brackets.values())
        is_tagged = [leaf.tag not in LEFT_OUT | {""} for leaf in gold_leaves if leaf.tag != EMPTY]
        counts["words"] += sum(is_tagged)
        if mine is None:
            counts["missing"] += 1
            continue
        leaves = _leaves(mine)
        pairs = _pairs(leaves, gold_leaves, number)
        brackets = _brackets(mine, leaves, kept)
        counts["found"] += sum(brackets.values())
        counts["matched"] += sum((brackets & gold_brackets).values())
        counts["exact"] += brackets == gold_brackets
        counts["tags"] += sum(k and own == gold_tag for k, (own, gold_tag) in zip(is_tagged, pairs, strict=True))
    n, words = len(right), counts["words"]
    return BracketScores(
        counts["matched"], counts["found"], counts["gold"], counts["exact"] / n,
        counts["tags"] / words if words else 0.0, n, counts["missing"],
    )  # fmt: skip


def _is_tag(node: PhraseTree) -> bool:
    """Return whether a node has a word as its only child."""
    return len(node.children) == 1 and isinstance(node.children[0], str)


class _Leaf(NamedTuple):
    """A word and its tag."""

    word: str
    tag: str


def _leaves(tree: PhraseTree) -> list[_Leaf]:
    """Return the words of a tree with their tags, with traces; a word beside other children has the tag ""."""
    found: list[_Leaf] = []
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            found.append(_Leaf(node, ""))
        elif _is_tag(node):
            found.append(_Leaf(str(node.children[0]), node.label))
        else:
            waiting += reversed(node.children)
    return found


def _pairs(found: Sequence[_Leaf], gold: Sequence[_Leaf], number: int) -> list[tuple[str, str]]:
    """Return the tags of each word in both trees; raise an `InputError` if their words differ."""
    mine, theirs = ([leaf for leaf in leaves if leaf.tag != EMPTY] for leaves in (found, gold))
    if [leaf.word for leaf in mine] != [leaf.word for leaf in theirs]:
        raise InputError(
            f"sentence {number}: the parsed tree is over {' '.join(leaf.word for leaf in mine)!r:.60}, the gold tree "
            f"over {' '.join(leaf.word for leaf in theirs)!r:.60}."
        )
    return [(own.tag, right.tag) for own, right in zip(mine, theirs, strict=True)]


def _brackets(tree: PhraseTree, leaves: Sequence[_Leaf], kept: Sequence[bool]) -> Counter[tuple[str, int, int]]:
    """Return the brackets of a tree; `kept` says which of the words that are no traces count."""
    rest = iter(kept)
    ends = [0, *itertools.accumulate(leaf.tag != EMPTY and next(rest) for leaf in leaves)]
    found: Counter[tuple[str, int, int]] = Counter()
    for node, (label, first, last) in zip(tree.subtrees(), tree.spans(), strict=True):
        cut = base_label(label)
        if not _is_tag(node) and ends[first] < ends[last] and cut not in TOPS:
            found[SAME.get(cut, cut), ends[first], ends[last]] += 1
    return found
