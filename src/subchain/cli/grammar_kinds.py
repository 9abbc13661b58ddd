"""What the commands of `subchain grammar` do differently for the kinds of grammars: how trees are found and written."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Protocol

from subchain.cli.grammar_options import read_sentences, usable
from subchain.cli.inputs import existing
from subchain.cli.output import number_of
from subchain.data import Dependencies
from subchain.data.dependency_writing import drawn_tree, write_sentences
from subchain.data.sentences import Tokens, as_sentences
from subchain.data.tree import Tree
from subchain.data.treebank_sentences import as_treebank_sentences, trees_of_phrases, words_of
from subchain.errors import InputError, unknown_name
from subchain.grammar import (
    DMV,
    PCFG,
    LatentPCFG,
    bracket_scores,
    dependency_scores,
    load_grammar,
)


class Kind(Protocol):
    """A fitted grammar, and how its sentences and trees are read and written; the first format is the usual one."""

    @property
    def model(self) -> Any: ...
    @property
    def formats(self) -> tuple[str, ...]: ...
    @property
    def usual_method(self) -> str: ...

    def read(self, path: Path, column: str | None, punctuation: bool, max_length: int | None) -> Any:
        """Return the sentences of a file."""

    def n_words(self, sentences: Any) -> int:
        """Return the number of tokens of sentences."""

    def parsed(self, sentences: Any, method: str) -> Any:
        """Return the trees of sentences."""

    def sampled(self, n: int, max_length: int, seed: int) -> Any:
        """Return sentences with their trees that the grammar generates."""

    def written(self, trees: Any, format: str) -> str:
        """Return trees as text."""

    def plain(self, trees: Any) -> dict[str, Any]:
        """Return trees as JSON values."""

    def compared(self, sentences: Any, method: str) -> tuple[dict[str, float], str] | None:
        """Return how trees compare with those of the file, as numbers and as text; None if it has none."""


@dataclasses.dataclass
class DependencyKind:
    """The dependency model with valence."""

    model: DMV
    formats = ("conllu", "heads", "tree")
    usual_method = "viterbi"

    def read(self, path: Path, column: str | None, punctuation: bool, max_length: int | None) -> Dependencies:
        return read_sentences(path, column, punctuation, max_length)

    def n_words(self, sentences: Dependencies) -> int:
        return int(sentences.lengths.sum())

    def parsed(self, sentences: Dependencies, method: str) -> Dependencies:
        return dataclasses.replace(sentences, heads=self.model.parse(sentences, method))

    def sampled(self, n: int, max_length: int, seed: int) -> Dependencies:
        return self.model.sample(n, max_length, random_state=seed)

    def written(self, trees: Dependencies, format: str) -> str:
        if format == "tree":
            pairs = zip(trees.words, trees.heads or [], strict=True)
            return "\n\n".join(drawn_tree(words, heads.tolist()) for words, heads in pairs) + "\n"
        parts: list[str] = []
        write_sentences(trees, parts.append, format)
        return "".join(parts)

    def plain(self, trees: Dependencies) -> dict[str, Any]:
        return {"tags": trees.tags, "heads": trees.heads}

    def compared(self, sentences: Dependencies, method: str) -> tuple[dict[str, float], str] | None:
        if sentences.heads is None:
            return None
        scores = dependency_scores(self.model.parse(sentences, method), sentences.heads)
        numbers = {"directed": scores.directed, "undirected": scores.undirected, "exact": scores.exact}
        return numbers, str(scores)


class _Phrases:
    """What grammars of phrases share; a sentence without a tree is an empty line in brackets."""

    model: PCFG | LatentPCFG
    formats = ("brackets", "tree")

    def n_words(self, sentences: list[Tree | Tokens]) -> int:
        return sum(map(len, words_of(sentences)))

    def parsed(self, sentences: list[Tree | Tokens], method: str) -> list[Tree | None]:
        return self.model.parse(sentences, method)

    def sampled(self, n: int, max_length: int, seed: int) -> list[Tree | None]:
        return list(self.model.sample(n, max_length, random_state=seed))

    def compared(self, sentences: list[Tree | Tokens], method: str) -> tuple[dict[str, float], str] | None:
        gold = [given for given in sentences if isinstance(given, Tree)]
        if not gold:
            return None
        found = bracket_scores(self.model.parse(gold, method), gold)
        names = ("precision", "recall", "f1", "exact", "tagging", "n_missing")
        return {name: getattr(found, name) for name in names}, str(found)

    def written(self, trees: list[Tree | None], format: str) -> str:
        if format == "tree":
            return "\n\n".join("" if tree is None else tree.pretty() for tree in trees) + "\n"
        return "".join("\n" if tree is None else f"{tree}\n" for tree in trees)

    def plain(self, trees: list[Tree | None]) -> dict[str, Any]:
        return {"trees": [None if tree is None else str(tree) for tree in trees]}


@dataclasses.dataclass
class PhraseKind(_Phrases):
    """Context-free grammars."""

    model: PCFG
    usual_method = "viterbi"

    def read(self, path: Path, column: str | None, punctuation: bool, max_length: int | None) -> list[Tree | Tokens]:
        return read_tokens(path, self.model.unit, column, punctuation, max_length)


@dataclasses.dataclass
class TreebankKind(_Phrases):
    """Grammars with latent annotations; sentences are words, or trees without their traces."""

    model: LatentPCFG
    usual_method = "max-rule"

    def read(self, path: Path, column: str | None, punctuation: bool, max_length: int | None) -> list[Tree | Tokens]:
        for name, is_given in (("column", column is not None), ("no-punctuation", not punctuation)):
            if is_given:
                raise InputError(f"--{name} is for files of tags; {str(path)!r} is read as words or as trees.")
        existing(path)
        found = as_treebank_sentences(path)
        return [found[number] for number in usable(path, list(map(len, words_of(found))), max_length)]


def learned(grammar: DMV | PCFG | LatentPCFG, given: Any) -> tuple[dict[str, int], str]:
    """Return what a grammar was learned from, and how large it is, as numbers and as text."""
    if isinstance(grammar, LatentPCFG):
        n_trees = int(grammar.grammar_.counts[grammar.grammar_.rules[:, 0] == 0].sum())
        n_symbols, n_annotated = len(grammar.symbols_), sum(grammar.annotations_.values())
        numbers = {"n_trees": n_trees, "n_symbols": n_symbols, "n_annotated_symbols": n_annotated}
        symbols = f"{number_of(n_symbols, 'symbol')}, {n_annotated:,} with annotations"
        return numbers, f"{number_of(n_trees, 'tree')}, {symbols}"
    sentences = given.tags if isinstance(grammar, DMV) else words_of(given)
    what, size = ("tag", len(grammar.tags_)) if isinstance(grammar, DMV) else ("rule", len(grammar.rules_))
    n_words = sum(map(len, sentences))
    numbers = {"n_sentences": len(sentences), "n_words": n_words, f"n_{what}s": size}
    return numbers, f"{number_of(len(sentences), 'sentence')}, {number_of(n_words, 'word')}, {number_of(size, what)}"


def read_tokens(
    path: Path, unit: str, column: str | None, punctuation: bool, max_length: int | None
) -> list[Tree | Tokens]:
    """Return the sentences of a file as tokens, or as trees over them; raise an `InputError` if none is left."""
    existing(path)
    trees = trees_of_phrases(path) if unit == "word" else None
    if trees is not None and (column is not None or not punctuation):
        name = "column" if column is not None else "no-punctuation"
        raise InputError(f"--{name} is for files of tags; {str(path)!r} has trees.")
    if unit == "word" and not punctuation:
        return [tuple(tags) for tags in read_sentences(path, column, punctuation, max_length).tags]
    found: list[Tree | Tokens] = list(as_sentences(path, unit, column)) if trees is None else trees
    return [found[number] for number in usable(path, list(map(len, words_of(found))), max_length)]


def kind_of_file(path: Path, jobs: int | None = None) -> Kind:
    """Return the grammar of a file with what its trees need."""
    model = load_grammar(path)
    model.set_params(n_jobs=jobs)
    if isinstance(model, LatentPCFG):
        return TreebankKind(model)
    return DependencyKind(model) if isinstance(model, DMV) else PhraseKind(model)


def check_format(kind: Kind, format: str | None) -> str:
    """Return the format that trees are written in; raise an `InputError` if this grammar has no such format."""
    if format is None:
        return kind.formats[0]
    if format not in kind.formats:
        raise unknown_name("value of --format:", format, kind.formats)
    return format
