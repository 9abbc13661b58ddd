"""Grammars with latent annotations by enumeration: all annotations of a tree, all trees of a sentence."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from subchain.data.tree import Tree
from subchain.data.unseen_words import word_class
from subchain.structures.latent.grammar import TreebankGrammar
from subchain.structures.latent.layout import Layout
from subchain.structures.latent.splitting import annotations_of

#: A rule of labels: parent and children; a word is one child in quotes.
Rule = tuple[str, ...]
#: A rule with annotations.
Version = tuple[Rule, tuple[int, ...]]


class Weights(NamedTuple):
    """Weights of annotated rules, and numbers of annotations by label."""

    versions: dict[Version, float]
    sizes: dict[str, int]
    words: set[str]
    word_counts: dict[str, int]

    def of_words(self, tag: str, annotation: int, word: str, *, is_first: bool) -> float:
        """Return the weight of a word below a tag: itself and, if it is rare, a tenth of its class."""
        kind = word_class(word, is_first=is_first)
        found = self.versions.get(((tag, f"'{word}'"), (annotation,)), 0.0)
        if word not in self.words:
            classes = [kind] if kind in self.words else [name for name in self.words if name[0] == "<"]
            return sum(self.versions.get(((tag, f"'{name}'"), (annotation,)), 0.0) for name in classes)
        if self.word_counts[word] <= 5 and kind in self.words:
            found += 0.1 * self.versions.get(((tag, f"'{kind}'"), (annotation,)), 0.0)
        return found


def weights_of(grammar: TreebankGrammar, layout: Layout, table: np.ndarray) -> Weights:
    rules, entries, annotations = annotations_of(layout)
    versions: dict[Version, float] = {}
    for rule, entry, x, y, z in zip(rules, entries, *annotations, strict=True):
        parent, left, right = grammar.rules[rule].tolist()
        arity = grammar.arity[rule]
        children = (f"'{grammar.words[left]}'",) if arity == 0 else (grammar.symbols[left],)
        if arity == 2:
            children = (*children, grammar.symbols[right])
        versions[(grammar.symbols[parent], *children), (int(x), int(y), int(z))[: arity + 1]] = float(table[entry])
    sizes = dict(zip(grammar.symbols, layout.sizes.tolist(), strict=True))
    return Weights(
        versions, sizes, set(grammar.words), dict(zip(grammar.words, grammar.word_counts.tolist(), strict=True))
    )


def versions_of(
    tree: Tree, weights: Weights, replaced: list[str] | None = None
) -> Iterator[tuple[list[Version], float]]:
    """Yield every annotation of a binarised tree: the versions of its rules, and their product.

    Words have their own rules alone if `replaced` gives the words that the rules have for them.
    """
    nodes = list(tree.subtrees())
    numbers = {id(node): number for number, node in enumerate(nodes)}
    words = iter(tree.leaves())
    place = itertools.count()
    leaves = {id(node): (next(place), next(words)) for node in nodes if isinstance(node.children[0], str)}
    for drawn in itertools.product(*(range(weights.sizes[node.label]) for node in nodes)):
        used, product = [], 1.0
        for node, x in zip(nodes, drawn, strict=True):
            if id(node) in leaves:
                number, word = leaves[id(node)]
                if replaced is None:
                    product *= weights.of_words(node.label, x, word, is_first=number == 0)
                    continue
                version: Version = ((node.label, f"'{replaced[number]}'"), (x,))
            else:
                below = [child for child in node.children if isinstance(child, Tree)]
                rule = (node.label, *(child.label for child in below))
                version = (rule, (x, *(drawn[numbers[id(child)]] for child in below)))
            used.append(version)
            product *= weights.versions.get(version, 0.0)
        yield used, product


def expected_counts(tree: Tree, weights: Weights, replaced: list[str]) -> tuple[float, Counter[Version]]:
    """Return the log likelihood of a tree, and the expected uses of annotated rules."""
    total, counts = 0.0, Counter[Version]()
    for used, product in versions_of(tree, weights, replaced):
        total += product
        for version in used:
            counts[version] += product  # type: ignore[assignment]
    return float(np.log(total)), Counter({version: value / total for version, value in counts.items()})


def all_trees(grammar: TreebankGrammar, sentence: list[str]) -> Iterator[Tree]:
    """Yield every binarised tree of a sentence, with at most one unary rule at a node, below ROOT."""
    binary: list[Rule] = []
    unary: list[Rule] = []
    for (parent, left, right), arity in zip(grammar.rules.tolist(), grammar.arity.tolist(), strict=True):
        if arity == 2:
            binary.append((grammar.symbols[parent], grammar.symbols[left], grammar.symbols[right]))
        elif arity == 1:
            unary.append((grammar.symbols[parent], grammar.symbols[left]))
    tags = sorted(
        {grammar.symbols[rule[0]] for rule, arity in zip(grammar.rules, grammar.arity, strict=True) if not arity}
    )

    def bare(i: int, j: int) -> list[Tree]:
        if j == i + 1:
            return [Tree(tag, (sentence[i],)) for tag in tags]
        found = []
        for k in range(i + 1, j):
            for left, right in itertools.product(closed(i, k), closed(k, j)):
                found += [Tree(a, (left, right)) for a, b, c in binary if (b, c) == (left.label, right.label)]
        return found

    def closed(i: int, j: int) -> list[Tree]:
        if (i, j) not in memory:
            below = bare(i, j)
            above = [Tree(a, (tree,)) for tree in below for a, b in unary if b == tree.label and a != "ROOT"]
            memory[i, j] = below + above
        return memory[i, j]

    memory: dict[tuple[int, int], list[Tree]] = {}
    tops = {b for a, b in unary if a == "ROOT"}
    return (Tree("ROOT", (tree,)) for tree in closed(0, len(sentence)) if tree.label in tops)


class Sums(NamedTuple):
    """Sums over all trees of a sentence.

    Attributes
    ----------
    total : probability of the sentence
    spans : posterior of a label over a span
    uses : posterior of a rule of labels at a place: the label, its children's labels, first word, split points, end
    best : product of the best annotated tree
    """

    total: float
    spans: Counter[tuple[str, int, int]]
    uses: dict[Tree, list[tuple[object, ...]]]
    posteriors: Counter[tuple[object, ...]]
    best: tuple[Tree, float]


def sums_over_trees(grammar: TreebankGrammar, weights: Weights, sentence: list[str]) -> Sums:
    total, best = 0.0, (Tree("ROOT", ()), 0.0)
    spans, posteriors = Counter[tuple[str, int, int]](), Counter[tuple[object, ...]]()
    uses: dict[Tree, list[tuple[object, ...]]] = {}
    for tree in all_trees(grammar, sentence):
        products = [product for _, product in versions_of(tree, weights)]
        weight = sum(products)
        if not weight:
            continue
        total += weight
        best = max(best, (tree, max(products)), key=lambda pair: pair[1])
        uses[tree] = _places(tree)
        for use in uses[tree]:
            posteriors[use] += weight  # type: ignore[assignment]
        for span in set(tree.spans()):
            spans[span] += weight  # type: ignore[assignment]
    for counted in (spans, posteriors):
        for key in counted:
            counted[key] /= total  # type: ignore[index, assignment]
    return Sums(total, spans, uses, posteriors, best)


def _places(tree: Tree) -> list[tuple[object, ...]]:
    """Return every rule of a tree with its place; that of the root stands for the label below it."""
    spans = {id(node): span[1:] for node, span in zip(tree.subtrees(), tree.spans(), strict=True)}
    found: list[tuple[object, ...]] = []
    for node in tree.subtrees():
        children = [child for child in node.children if isinstance(child, Tree)]
        places = [spans[id(child)] for child in children]
        found.append((node.label, *(child.label for child in children), spans[id(node)], *places))
    return found


def max_rule_score(tree: Tree, sums: Sums) -> float:
    """Return the logarithm of the product of the posteriors of a tree's rules."""
    return float(sum(np.log(sums.posteriors[use]) for use in sums.uses[tree]))
