"""The structure of dependency grammars: sentences are clusters, and what is hidden in them are trees."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Posterior
from subchain.engines.threads import share
from subchain.errors import InputError
from subchain.propagation.trees.charts import N_TABLES, Rules
from subchain.propagation.trees.passes import BEST, DRAW, EXPECT, SCORE, Shares, Tags, add_shares, run_trees
from subchain.structures.cluster_walkers import ClusterWalker
from subchain.structures.hidden_trees import HiddenTrees
from subchain.structures.trees.ledger import TreeLedger
from subchain.structures.trees.model import TreePoint, TreeStatistics
from subchain.structures.trees.walkers import TreeWalker
from subchain.tables import RuleSums

Index = NDArray[np.int64]

#: Posteriors of arcs that are computed before they are added to the sums.
BLOCK_CELLS = 1 << 20
#: Words of the longest sentence: its charts take 128 bytes times the square of them on every thread.
MOST_WORDS = 1000
#: Tags of the largest table of attachments, which takes 16 bytes times the square of them; a fit holds several.
MOST_TAGS = 5000
_GIB = 1 << 30


class Trees(NamedTuple):
    """What a pass found: shares, and for each sentence its first arc, its first token, and its log likelihood.

    Attributes
    ----------
    heads : of the tokens of these sentences, −1 for roots, −2 where no tree has any probability; empty if none was
        asked for
    """

    shares: Shares
    places: Index
    rows: Index
    logs: NDArray[np.float64]
    heads: Index


class DependencyTrees(HiddenTrees):
    """Sentences of tags with hidden dependency trees; see `ClusterStructure`.

    Parameters
    ----------
    tags : codes of the sentences
    n_tags : number of tags
    n_jobs : threads of a pass
    is_hard : whether the best tree of each sentence is counted instead of what is expected (Viterbi EM)
    """

    def __init__(self, tags: Tags, n_tags: int, n_jobs: int = 1, *, is_hard: bool = False) -> None:
        self.tags = tags
        self.n_tags = n_tags
        self.n_jobs = n_jobs
        self.is_hard = is_hard
        self.check_size()

    def check_size(self) -> None:
        """Raise an `InputError` that says what a too long sentence, or a table of too many tags, would take."""
        if self.n_tags > MOST_TAGS:
            raise InputError(
                f"there are {self.n_tags:,} tags; every table of attachments would take "
                f"{16 * self.n_tags**2 / _GIB:.1f} GiB. At most {MOST_TAGS:,} are possible: give tags or classes of "
                "words, not words."
            )
        longest = int(self.lengths.max(initial=0))
        if longest > MOST_WORDS:
            needed = N_TABLES * 8 * longest**2 / _GIB
            raise InputError(
                f"sentence {int(self.lengths.argmax())} has {longest} words; its charts would take {needed:.1f} GiB on "
                f"every thread, and time grows with the third power of the length. At most {MOST_WORDS} words are "
                "parsed: split the sentence, or leave it out."
            )

    @cached_property
    def lengths(self) -> Index:
        return np.diff(self.tags.starts)

    @cached_property
    def places(self) -> Index:
        """First arc of each sentence among the shares of all, (S + 1,)."""
        return np.concatenate([[0], np.cumsum(self.lengths**2)])

    # ---- sums --------------------------------------------------------------------------------------------------------

    def nothing(self) -> tuple[Rules, NDArray[np.float64]]:
        """Return counts, and totals of attachments, that are all zero."""
        shapes = (1, self.n_tags), (4 * self.n_tags, 2), (2 * self.n_tags, self.n_tags)
        return Rules(*(np.zeros(shape) for shape in shapes)), np.zeros(2 * self.n_tags)

    def record(self, counts: Rules, log_normalizer: float, n: float) -> TreeStatistics:
        """Return counts as statistics."""
        return TreeStatistics(*(RuleSums(table) for table in counts), log_normalizer=log_normalizer, n_observations=n)

    def add(self, found: Trees, clusters: Index, counts: Rules, totals: NDArray[np.float64]) -> None:
        """Add the shares of some sentences to counts."""
        add_shares(self.tags, clusters, found.places, found.rows, found.shares, counts, totals)

    # ---- passes ------------------------------------------------------------------------------------------------------

    def run(self, task: int, rules: Rules, clusters: Index, uniforms: NDArray[np.float64] | None = None) -> Trees:
        """Do one of the tasks of `propagation.trees.passes` for some sentences, on all threads.

        What it takes grows with these sentences, not with the data.
        """
        if task == BEST:
            with np.errstate(divide="ignore"):
                rules = Rules(*(np.log(table) for table in rules))
        lengths = self.lengths[clusters]
        arcs, rows = np.cumsum(lengths**2), np.cumsum(lengths)
        places, rows = arcs - lengths**2, rows - lengths
        n_tokens, n_arcs = int(lengths.sum()), int((lengths**2).sum())
        shares = Shares(np.empty(0 if task == SCORE else n_arcs), np.empty((0 if task == SCORE else n_tokens, 2)))
        n_parsed = n_tokens if task in (BEST, DRAW) else 0
        heads = np.full(n_parsed, -2, dtype=np.int64)
        random = np.full(2 * n_parsed, -1.0) if uniforms is None else uniforms
        logs, counter = np.empty(len(clusters)), np.zeros(1, dtype=np.int64)
        longest = int(lengths.max(initial=0))

        def work() -> None:
            run_trees(
                task, self.tags, clusters, places, rows, rules, shares, random, heads, logs, longest, counter
            )  # fmt: skip

        share(work, self.n_jobs)
        return Trees(shares, places, rows, logs, heads)

    def blocks(self, clusters: Index) -> Iterator[Index]:
        """Yield sentences whose arcs fit into a block; nothing if there are none."""
        if not len(clusters):
            return
        ends = np.cumsum(self.lengths[clusters] ** 2)
        number = (ends - 1) // BLOCK_CELLS
        yield from np.split(clusters, np.flatnonzero(np.diff(number)) + 1)

    def drawn(self, rules: Rules, clusters: Index, rng: np.random.Generator) -> Iterator[tuple[Index, Trees]]:
        """Draw trees of some sentences, a block at a time; blocks do not change what is drawn."""
        for some in self.blocks(clusters):
            yield some, self.run(DRAW, rules, some, rng.random(2 * int(self.lengths[some].sum())))

    def expected(self, weights: TreePoint, clusters: Index) -> TreeStatistics:  # type: ignore[override]
        rules, total = weights.rules(), 0.0
        counts, totals = self.nothing()
        for some in self.blocks(clusters):
            found = self.run(BEST if self.is_hard else EXPECT, rules, some)
            self.add(found, some, counts, totals)
            total += float(found.logs.sum())
        return self.record(counts, total, float(self.lengths[clusters].sum()))

    def draw(  # type: ignore[override]
        self, weights: TreePoint, clusters: Index, rng: np.random.Generator
    ) -> tuple[Index, TreeStatistics]:
        """Draw the head of every word, counted within its sentence, −1 for roots."""
        counts, totals = self.nothing()
        heads = [np.zeros(0, dtype=np.int64)]
        for some, found in self.drawn(weights.rules(), clusters, rng):
            self.add(found, some, counts, totals)
            heads.append(found.heads)
        return np.concatenate(heads), self.record(counts, 0.0, float(self.lengths[clusters].sum()))

    # ---- algorithms --------------------------------------------------------------------------------------------------

    def ledger_of(self, prior: Posterior, cluster_size: int) -> TreeLedger:
        return TreeLedger(self, prior)

    def collapsed_walker(self) -> type[ClusterWalker]:
        return TreeWalker
