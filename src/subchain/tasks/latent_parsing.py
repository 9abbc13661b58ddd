"""Uses of a grammar with latent annotations: trees, log probabilities, and posteriors of labelled spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.core.treebank_labels import ROOT
from subchain.data.tree import Tree
from subchain.data.treebank import INTERMEDIATE, Chains, restored
from subchain.engines.threads import share
from subchain.propagation.latent.choosing import LEAF, ONE
from subchain.propagation.latent.parsing import MAX_RULE, SCORE, VITERBI, parse_sentences, posteriors_of_spans
from subchain.structures.latent.grammar import TreebankGrammar
from subchain.structures.latent.layout import Layout
from subchain.structures.latent.lexicon import Lexicon, chart_grammar
from subchain.structures.latent.sizes import parsing_threads

Array = NDArray[np.float64]

#: Kinds of parses by name.
METHODS = {"max-rule": MAX_RULE, "viterbi": VITERBI}


class Span(NamedTuple):
    """Posterior probability that a node with this label is over words first … end − 1."""

    label: str
    first: int
    end: int
    probability: float


class Parser:
    """A grammar and its weights, ready for sentences.

    Parameters
    ----------
    grammar : the treebank's
    layout : of annotated rules
    weights : of annotated rules
    chains : unary chains, see `data.treebank`
    pruning : posterior under the rules without annotations, from which on a symbol over a span is kept
    n_jobs : threads
    """

    def __init__(
        self, grammar: TreebankGrammar, layout: Layout, weights: Array, chains: Chains, pruning: float, n_jobs: int
    ) -> None:
        self.grammar, self.layout, self.weights, self.chains = grammar, layout, weights, chains
        self.pruning, self.n_jobs = pruning, n_jobs
        self.rules = chart_grammar(grammar)
        self.lexicon = Lexicon(grammar)
        parents = grammar.rules[:, 0]
        self.coarse = grammar.counts / np.bincount(parents, grammar.counts)[parents]

    def _run(self, task: int, sentences: Sequence[Sequence[str]]) -> tuple[Array, list[list[list[int]]]]:
        """Return log probabilities, and the nodes of the trees from the top down, symbol and kind."""
        codes = self.lexicon.encode(sentences)
        lengths = np.diff(codes.starts)
        n_jobs = parsing_threads(lengths.tolist(), self.grammar.n_symbols, self.n_jobs)
        logs, counts = np.empty(len(lengths)), np.zeros(len(lengths), dtype=np.int64)
        nodes = np.empty((4 * len(codes.words), 2), dtype=np.int32)
        counter, longest = np.zeros(1, dtype=np.int64), int(lengths.max(initial=0))

        def work() -> None:
            parse_sentences(
                task, self.rules, self.coarse, self.layout.rules, self.weights, codes, self.pruning, longest, logs,
                counts, nodes, counter,
            )  # fmt: skip

        share(work, n_jobs)
        firsts = 4 * codes.starts[:-1]
        return logs, [nodes[a : a + n].tolist() for a, n in zip(firsts.tolist(), counts.tolist(), strict=True)]

    def trees(self, sentences: Sequence[Sequence[str]], method: str) -> list[Tree | None]:
        """Return the tree of every sentence, None where there is none."""
        _, found = self._run(METHODS[method], sentences)
        return [self._tree(nodes, words) if nodes else None for nodes, words in zip(found, sentences, strict=True)]

    def _tree(self, nodes: list[list[int]], words: Sequence[str]) -> Tree:
        """Return a tree of nodes from the top down, without what binarisation has added."""
        left, stack = list(words), list[Tree]()
        for symbol, kind in reversed(nodes):
            children = (left.pop(),) if kind == LEAF else tuple(stack.pop() for _ in range(1 if kind == ONE else 2))
            stack.append(Tree(self.grammar.symbols[symbol], children))
        return restored(Tree(ROOT, (stack[0],)), self.chains)

    def logs(self, sentences: Sequence[Sequence[str]]) -> Array:
        """Return the log probability of every sentence."""
        return self._run(SCORE, sentences)[0]

    def spans(self, sentences: Sequence[Sequence[str]]) -> tuple[Array, list[list[Span]]]:
        """Return log probabilities, and the labelled spans of every sentence, the most probable first."""
        parsing_threads([len(sentence) for sentence in sentences], self.grammar.n_symbols, 1)
        codes = self.lexicon.encode(sentences)
        logs, found = np.zeros(len(sentences)), list[list[Span]]()
        for number, (first, last) in enumerate(zip(codes.starts[:-1], codes.starts[1:], strict=True)):
            own: list[Span] = []
            if first < last:
                logs[number], spans, posteriors = posteriors_of_spans(
                    self.rules, self.coarse, self.layout.rules, self.weights, codes.words[first:last],
                    codes.factors[first:last], self.pruning,
                )  # fmt: skip
                for row in np.argsort(-posteriors, kind="stable").tolist():
                    label = self.grammar.symbols[spans[row, 0]]
                    if not label.startswith(INTERMEDIATE):
                        own.append(Span(label, int(spans[row, 1]), int(spans[row, 2]), float(posteriors[row])))
            found.append(own)
        return logs, found
