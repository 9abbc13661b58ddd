"""The structure of context-free grammars: sentences are clusters, and what is hidden in them are trees of phrases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Posterior
from subchain.engines.threads import share
from subchain.errors import InputError
from subchain.propagation.phrases.charts import Text
from subchain.propagation.phrases.passes import (
    BEST,
    DRAW,
    EXPECT,
    POSTERIOR,
    RULES,
    SPANS,
    Found,
    add_shares,
    run_phrases,
)
from subchain.structures.cluster_walkers import ClusterWalker
from subchain.structures.hidden_trees import HiddenTrees
from subchain.structures.phrases.binary import compiled, ordered_unary
from subchain.structures.phrases.drawing import drawn_trees
from subchain.structures.phrases.ledger import PhraseLedger
from subchain.structures.phrases.model import PhrasePoint, PhraseStatistics
from subchain.structures.phrases.rules import RuleSet, Tokens
from subchain.structures.phrases.text import Spans, edges_of, starts_of
from subchain.structures.phrases.walkers import PhraseWalker
from subchain.tables import GroupedSums

Index = NDArray[np.int64]
Array = NDArray[np.float64]

#: Numbers of shares that are computed before they are added to the sums.
BLOCK_NUMBERS = 1 << 22
#: Bytes of the charts of the longest sentence on one thread.
MOST_BYTES = 4 << 30
_GIB = 1 << 30


class Phrases(NamedTuple):
    """What a pass found: shares and where each begins, log likelihoods, and trees as lists of rules (see `expanding`).

    Attributes
    ----------
    trees : a list of rules for each sentence, empty where no tree has any probability; None if none was asked for
    """

    places: Index
    shares: Array
    logs: Array
    trees: list[Index] | None


class PhraseTrees(HiddenTrees):
    """Sentences with hidden trees of phrases; see `ClusterStructure`.

    Parameters
    ----------
    sentences : tokens of each
    rules : the grammar
    brackets : spans that no phrase may cross, for each sentence
    n_jobs : threads of a pass
    is_hard : whether the best tree of each sentence is counted instead of what is expected (Viterbi EM)
    """

    def __init__(
        self,
        sentences: Sequence[Tokens],
        rules: RuleSet,
        brackets: Sequence[Spans] | None = None,
        n_jobs: int = 1,
        *,
        is_hard: bool = False,
    ) -> None:
        self.sentences = sentences
        self.rules = rules
        self.brackets = brackets
        self.n_jobs = n_jobs
        self.is_hard = is_hard
        self.grammar = compiled(rules)
        unary = [(int(a), side[0], 0) for a, side in zip(rules.left, rules.right, strict=True) if len(side) == 1]
        self.depth = ordered_unary([rule for rule in unary if rule[1] >= 0]).depth
        text = edges_of(sentences, rules, brackets)
        n_rules = np.diff(self.grammar.lexical_first)[text.edge[:, 2]]
        self.text: Text = text._replace(entries=starts_of(n_rules)[text.edges])
        self.check_size()

    @cached_property
    def lengths(self) -> Index:
        return np.diff(self.text.tokens)

    @cached_property
    def share_sizes(self) -> Index:
        """Numbers in the share of each sentence."""
        return self.rules.n_structural + np.diff(self.text.entries)

    @cached_property
    def places(self) -> Index:
        """Where the share of each sentence begins among those of all."""
        return starts_of(self.share_sizes)

    @cached_property
    def rooms(self) -> Index:
        """Where the rules of each tree have room: their number, and rules as many as a tree without cycles can have."""
        return starts_of(1 + self.tree_sizes(np.arange(self.n_clusters)))

    def tree_sizes(self, clusters: Index) -> Index:
        """Return the largest numbers of rules of a tree of sentences; cycles of unary rules are given some room."""
        return (2 * self.lengths[clusters] - 1).clip(0) * (1 + 2 * self.depth) + 8

    def chart_bytes(self, n: int) -> int:
        """Return the bytes of the charts of a sentence of n tokens on one thread."""
        return n * (n + 1) * (16 * self.grammar.n_symbols + 9)

    def part(self, clusters: Index) -> PhraseTrees:
        """Return the structure of some of the sentences."""
        chosen = clusters.tolist()
        brackets = None if self.brackets is None else [self.brackets[number] for number in chosen]
        sentences = [self.sentences[number] for number in chosen]
        return PhraseTrees(sentences, self.rules, brackets, self.n_jobs, is_hard=self.is_hard)

    def without_brackets(self, clusters: Index) -> PhraseTrees:
        """Return the structure of some of the sentences, whose phrases may be at all spans."""
        return PhraseTrees([self.sentences[number] for number in clusters.tolist()], self.rules, None, self.n_jobs)

    def check_size(self) -> None:
        """Raise an `InputError` that says what a sentence would take whose charts are too large."""
        longest = int(self.lengths.max(initial=0))
        needed = self.chart_bytes(longest)
        if needed > MOST_BYTES:
            raise InputError(
                f"sentence {int(self.lengths.argmax())} has {longest} tokens; its charts would take "
                f"{needed / _GIB:.1f} GiB on every thread, and time grows with the third power of the length. At most "
                f"{MOST_BYTES / _GIB:.0f} GiB are taken: split the sentence, or leave it out."
            )

    # ---- passes ------------------------------------------------------------------------------------------------------

    def run(
        self,
        task: int,
        weights: Array,
        clusters: Index,
        key: NDArray[np.uint64] | None = None,
        tree_sizes: Index | None = None,
    ) -> Phrases:
        """Do one of the tasks of `propagation.phrases.passes` for some sentences, on all threads.

        `tree_sizes` are the numbers of rules that there is room for, by default those of the method of this name.
        """
        with_share, with_tree = task in (EXPECT, POSTERIOR), task in (BEST, RULES, SPANS, DRAW)
        sizes = self.share_sizes[clusters] if task == EXPECT else self._symbol_sizes(clusters)
        places = starts_of(sizes if with_share else np.zeros(len(clusters), dtype=np.int64))
        tree_sizes = self.tree_sizes(clusters) if tree_sizes is None else tree_sizes
        rooms = starts_of(1 + tree_sizes if with_tree else np.zeros(len(clusters), dtype=np.int64))
        shares, trees = np.empty(places[-1]), np.zeros(rooms[-1], dtype=np.int32)
        logs, counter = np.empty(len(clusters)), np.zeros(1, dtype=np.int64)
        longest = int(self.lengths[clusters].max(initial=0))
        most = int(np.diff(self.text.entries)[clusters].max(initial=0))
        stream = np.zeros(2, dtype=np.uint64) if key is None else key

        def work() -> None:
            run_phrases(
                task, self.grammar, self.text, clusters, weights, Found(places, shares, rooms, trees, logs), stream,
                longest, most, counter,
            )  # fmt: skip

        share(work, self.n_jobs)
        found = None
        if with_tree:
            own = (trees[first:last] for first, last in pairwise(rooms.tolist()))
            found = [tree[1 : 1 + max(int(tree[0]), 0)].astype(np.int64) for tree in own]
        return Phrases(places, shares, logs, found)

    def _symbol_sizes(self, clusters: Index) -> Index:
        lengths = self.lengths[clusters]
        return lengths * (lengths + 1) * self.grammar.n_own

    def blocks(self, clusters: Index, sizes: Index | None = None) -> Iterator[Index]:
        """Yield sentences whose shares fit into a block; nothing if there are none."""
        if not len(clusters):
            return
        ends = np.cumsum(self.share_sizes[clusters] if sizes is None else sizes)
        yield from np.split(clusters, np.flatnonzero(np.diff((ends - 1) // BLOCK_NUMBERS)) + 1)

    def symbol_blocks(self) -> Iterator[Index]:
        """Yield all sentences, so many at a time that what `POSTERIOR` gives fits into a block."""
        everything = np.arange(self.n_clusters)
        return self.blocks(everything, self._symbol_sizes(everything))

    # ---- sums --------------------------------------------------------------------------------------------------------

    def record(self, counts: Array, log_normalizer: float, n: float) -> PhraseStatistics:
        """Return counts as statistics."""
        return PhraseStatistics(GroupedSums(counts), log_normalizer=log_normalizer, n_observations=n)

    @cached_property
    def weight_of_rule(self) -> Index:
        """The place of the weight of every rule of a tree, see `expanding`; −1 where it is fixed."""
        grammar = self.grammar
        found = np.concatenate([grammar.binary_weight, grammar.unary[:, 2]])
        found = np.where(found == grammar.n_structural, -1, found)
        return np.concatenate([found, grammar.lexical_weight])

    def counts_of(self, trees: Index) -> Array:
        """Return how often each rule is used in lists of rules."""
        used = self.weight_of_rule[trees]
        return np.bincount(used[used >= 0], minlength=len(self.rules)).astype(np.float64)

    def expected(self, weights: PhrasePoint, clusters: Index) -> PhraseStatistics:  # type: ignore[override]
        counts, total = np.zeros(len(self.rules)), 0.0
        rows, totals = self.rules.left, np.zeros(len(self.rules.symbols))
        for some in self.blocks(clusters):
            found = self.run(BEST if self.is_hard else EXPECT, weights.rules.weights, some)
            if found.trees is not None:
                for tree in found.trees:
                    counts += self.counts_of(tree)
            else:
                add_shares(self.grammar, self.text, some, found.places, found.shares, counts, rows, totals)
            total += float(found.logs.sum())
        return self.record(counts, total, float(self.lengths[clusters].sum()))

    def draw(  # type: ignore[override]
        self, weights: PhrasePoint, clusters: Index, rng: np.random.Generator
    ) -> tuple[Index, PhraseStatistics]:
        """Draw the rules of every tree, and write them as `hidden` does."""
        trees = drawn_trees(self, weights.rules.weights, clusters, rng)
        return self.hidden(trees, clusters), self.record_of(trees, clusters)

    def record_of(self, trees: list[Index], clusters: Index) -> PhraseStatistics:
        """Return the statistics of the trees of some sentences."""
        counts = self.counts_of(np.concatenate([*trees, np.zeros(0, dtype=np.int64)]))
        return self.record(counts, 0.0, float(self.lengths[clusters].sum()))

    def hidden(self, trees: list[Index], clusters: Index) -> Index:
        """Return trees one after the other in `rooms`, each as its number of rules and the rules that have room."""
        rooms = starts_of(1 + self.tree_sizes(clusters))
        hidden = np.zeros(rooms[-1], dtype=np.int64)
        for (first, last), tree in zip(pairwise(rooms.tolist()), trees, strict=True):
            written = tree[: last - first - 1]
            hidden[first], hidden[first + 1 : first + 1 + len(written)] = len(tree), written
        return hidden

    # ---- algorithms --------------------------------------------------------------------------------------------------

    def ledger_of(self, prior: Posterior, cluster_size: int) -> PhraseLedger:
        return PhraseLedger(self, prior)

    def collapsed_walker(self) -> type[ClusterWalker]:
        return PhraseWalker
