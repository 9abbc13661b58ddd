"""The sentences of a page on a grammar, with gold trees where they have any."""

from __future__ import annotations

from os import PathLike
from typing import Any, NamedTuple

from subchain.data.dependencies import as_dependencies
from subchain.data.sentences import Tokens, as_sentences
from subchain.data.tree import Tree
from subchain.data.treebank_sentences import as_treebank_sentences, trees_of_phrases, words_of
from subchain.models.dmv import DMV
from subchain.models.latent_pcfg import LatentPCFG
from subchain.models.pcfg import PCFG


class GrammarText(NamedTuple):
    """Sentences.

    Attributes
    ----------
    words : what is shown of each
    given : what the grammar is given: tags, or the words themselves
    gold : heads of each sentence, or its tree, None where it has none; None if there are no gold trees at all
    """

    words: list[Tokens]
    given: list[Any]
    gold: list[Any] | None


def read_text(grammar: DMV | PCFG | LatentPCFG, x: Any) -> GrammarText:
    """Return sentences in any form that the grammar parses."""
    if isinstance(grammar, DMV):
        text = as_dependencies(x)
        return GrammarText([tuple(words) for words in text.words], text.tags, text.heads)
    found = as_treebank_sentences(x) if isinstance(grammar, LatentPCFG) else _tokens(grammar, x)
    words = words_of(found)
    gold = [given if isinstance(given, Tree) else None for given in found]
    return GrammarText(words, list(words), gold if any(tree is not None for tree in gold) else None)


def _tokens(grammar: PCFG, x: Any) -> list[Tree | Tokens]:
    """Return sentences of tokens, and trees as they are given."""
    if isinstance(x, (str, PathLike)) and grammar.unit == "word":
        trees = trees_of_phrases(x)
        if trees is not None:
            return trees
    tokens = as_sentences(x, grammar.unit)
    given = x if isinstance(x, (list, tuple)) else tokens
    return [one if isinstance(one, Tree) else own for one, own in zip(given, tokens, strict=True)]
