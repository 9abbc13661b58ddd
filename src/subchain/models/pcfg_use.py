"""What a context-free grammar is used for: trees, probabilities and new sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.sentences import as_sentences
from subchain.data.tree import Tree
from subchain.engines.threads import n_threads
from subchain.errors import InputError, unknown_name
from subchain.models.underivable import warn_underivable
from subchain.numerics.perplexity import perplexity
from subchain.numerics.seeds import seed_sequence
from subchain.propagation.phrases.passes import POSTERIOR, SCORE
from subchain.structures.phrases.drawing import drawn_trees
from subchain.structures.phrases.model import PhrasePoint
from subchain.structures.phrases.rules import RuleSet
from subchain.structures.phrases.structure import PhraseTrees
from subchain.tasks.phrase_rules import rule_table
from subchain.tasks.phrase_sampling import sample_trees
from subchain.tasks.phrase_trees import METHODS, TreeBuilder, parsed

Array = NDArray[np.float64]
PER = ("token", "sentence")


class PCFGUse:
    """Methods of `PCFG` that use its rules."""

    unit: str
    n_jobs: int | None
    kind_: str

    def _fitted_rules(self) -> RuleSet:
        raise NotImplementedError

    def _point(self) -> PhrasePoint:
        raise NotImplementedError

    def _structure(self, sentences: Any, column: str | None) -> PhraseTrees:
        return PhraseTrees(
            as_sentences(sentences, self.unit, column), self._fitted_rules(), n_jobs=n_threads(self.n_jobs)
        )

    def parse(self, sentences: Any, method: str = "viterbi", column: str | None = None) -> list[Tree | None]:
        """Return a tree for every sentence; None, with a warning that names it, where the grammar cannot derive it.

        Parameters
        ----------
        sentences, column : as in `fit`
        method : "viterbi", the most probable tree; "max-rule", that with the largest product of posterior probabilities
            of its rules; or "mbr", minimum Bayes risk: the tree with the largest expected number of right phrases
        """
        if method not in METHODS:
            raise unknown_name("method of parsing", method, METHODS)
        structure = self._structure(sentences, column)
        trees, impossible = parsed(structure, self._point().rules.weights, method)
        self._warn(structure, impossible, "they have no tree")
        return trees

    def posterior(self, sentences: Any, column: str | None = None) -> list[Array]:
        """Return the expected number of phrases at every span, an array (symbols, n, n) for each sentence of n tokens.

        Entry [a, i, j] is that of symbol ``symbols_[a]`` over tokens i to j, both included. It is the probability of
        such a phrase, and more than that only where unary rules form cycles. For a sentence that the grammar cannot
        derive all are zero, and a warning names it.
        """
        structure, weights = self._structure(sentences, column), self._point().rules.weights
        found: list[Array] = []
        impossible: list[int] = []
        n_own = structure.grammar.n_own
        for some in structure.symbol_blocks():
            pass_ = structure.run(POSTERIOR, weights, some)
            impossible += some[np.isneginf(pass_.logs)].tolist()
            for at, n in enumerate(structure.lengths[some].tolist()):
                table = pass_.shares[pass_.places[at] : pass_.places[at + 1]].reshape(n, n + 1, n_own)
                found.append(np.ascontiguousarray(table[:, 1:].transpose(2, 0, 1)))
        self._warn(structure, impossible, "their posteriors are zero")
        return found

    @property
    def symbols_(self) -> list[str]:
        """The symbols, in the order of `posterior`."""
        return list(self._fitted_rules().symbols)

    def score_samples(self, sentences: Any, column: str | None = None) -> Array:
        """Return the log probability of every sentence; -inf, with a warning, where the grammar cannot derive it."""
        structure = self._structure(sentences, column)
        logs = structure.run(SCORE, self._point().rules.weights, np.arange(structure.n_clusters)).logs
        self._warn(structure, np.flatnonzero(np.isneginf(logs)).tolist(), "their log probability is -inf")
        return logs

    def score(self, sentences: Any, column: str | None = None) -> float:
        """Return the log probability of all sentences."""
        return float(self.score_samples(sentences, column).sum())

    def perplexity(self, sentences: Any, per: str = "token", column: str | None = None) -> float:
        """Return the inverse geometric mean of the probability of a token, or of a sentence."""
        if per not in PER:
            raise unknown_name("unit of perplexity", per, PER)
        given = as_sentences(sentences, self.unit, column)
        n = sum(map(bool, given)) if per == "sentence" else sum(map(len, given))
        if n == 0:
            raise InputError(f"there is no {per} to take a mean over.")
        return perplexity(self.score([list(sentence) for sentence in given]), n)

    def sample(self, n_sentences: int = 1, max_length: int = 40, random_state: Any = None) -> list[Tree]:
        """Return trees of sentences that the grammar generates, those of at most `max_length` tokens.

        Longer sentences are drawn again, so lengths follow the grammar's distribution given that they are at most this.
        """
        rng = np.random.default_rng(seed_sequence(random_state))
        return sample_trees(self._fitted_rules(), self._point().rules.weights, n_sentences, max_length, rng)

    def sample_trees(self, sentences: Any, random_state: Any = None, column: str | None = None) -> list[Tree | None]:
        """Return a tree of every sentence drawn from its posterior; None, with a warning, where it has none."""
        structure = self._structure(sentences, column)
        rng = np.random.default_rng(seed_sequence(random_state))
        drawn = drawn_trees(structure, self._point().rules.weights, np.arange(structure.n_clusters), rng)
        builder = TreeBuilder(structure.grammar, structure.rules)
        trees = [builder.tree(rules.tolist()) for rules in drawn]
        impossible = [number for number, tree in enumerate(trees) if tree is None and structure.lengths[number]]
        self._warn(structure, impossible, "they have no tree")
        return trees

    @property
    def rules_(self) -> NDArray[Any]:
        """The rules, as a structured array: `left`, `right`, `probability` and `count`.

        `right` is text, tokens in quotes; `count` the expected uses in the training sentences, nan without any. Rows
        are sorted by the left-hand side in the order of `symbols_`, then by decreasing probability. Rules that are not
        allowed are left out.
        """
        return rule_table(self._fitted_rules(), self._point().rules.weights, self._counts())

    def _counts(self) -> Array:
        raise NotImplementedError

    def memory_estimate(self, sentences: Any, column: str | None = None) -> int:
        """Return the bytes that charts of the longest of these sentences take, on all threads."""
        structure = self._structure(sentences, column)
        return structure.chart_bytes(int(structure.lengths.max(initial=0))) * structure.n_jobs

    @staticmethod
    def _warn(structure: PhraseTrees, impossible: list[int], what: str) -> None:
        if impossible:
            first = structure.rules.joint.join(structure.sentences[impossible[0]])
            warn_underivable(impossible, first, what)
