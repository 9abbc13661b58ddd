"""The structure of annotated treebanks: trees are clusters, and what is hidden are the annotations of their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Posterior
from subchain.engines.threads import share
from subchain.propagation.latent.passes import count_drawn, count_rules, draw_annotations, run_forest
from subchain.propagation.latent.trees import WORD, Forest
from subchain.propagation.latent.visits import Groups
from subchain.structures.cluster_walkers import ClusterWalker
from subchain.structures.hidden_trees import HiddenTrees
from subchain.structures.latent.layout import Layout
from subchain.structures.latent.ledger import AnnotatedLedger, groups_of
from subchain.structures.latent.model import AnnotatedPoint, AnnotatedStatistics
from subchain.structures.latent.walkers import AnnotationWalker
from subchain.tables import GroupedSums

Index = NDArray[np.int64]
Array = NDArray[np.float64]

#: Entries of inside vectors that are computed before counts are added up.
BLOCK_ENTRIES = 1 << 23


class Pass(NamedTuple):
    """What a pass over some trees found: inside vectors and slopes of their nodes, log likelihoods of the trees."""

    inside: Array
    slopes: Array
    logs: Array


class AnnotatedTrees(HiddenTrees):
    """Given trees with hidden annotations; see `ClusterStructure`.

    Parameters
    ----------
    forest : the trees as rules of nodes
    layout : where the weights of the rules are
    n_jobs : threads of a pass
    """

    has_groups = True

    def __init__(self, forest: Forest, layout: Layout, n_jobs: int = 1) -> None:
        self.forest = forest
        self.layout = layout
        self.n_jobs = n_jobs
        self.width = int(layout.sizes.max()) + 1

    @cached_property
    def lengths(self) -> Index:
        are_words = self.layout.rules.arity[self.forest.rules] == WORD
        return np.add.reduceat(are_words, self.forest.starts[:-1], dtype=np.int64)

    # ---- parts of the data -------------------------------------------------------------------------------------------

    def take(self, clusters: Index) -> Forest:
        """Return some of the trees."""
        starts = self.forest.starts
        if len(clusters) == self.n_clusters and np.array_equal(clusters, np.arange(self.n_clusters)):
            return self.forest
        sizes = starts[clusters + 1] - starts[clusters]
        ends = np.cumsum(sizes)
        nodes = np.repeat(starts[clusters] - (ends - sizes), sizes) + np.arange(int(sizes.sum()))
        return Forest(self.forest.rules[nodes], self.forest.backs[nodes], np.concatenate([[0], ends]))

    def blocks(self, clusters: Index) -> Iterator[Index]:
        """Yield trees whose vectors fit into a block; nothing if there are none."""
        if not len(clusters):
            return
        ends = np.cumsum(np.diff(self.forest.starts)[clusters])
        number = (ends - 1) // max(BLOCK_ENTRIES // self.width, 1)
        yield from np.split(clusters, np.flatnonzero(np.diff(number)) + 1)

    @cached_property
    def _sorted(self) -> tuple[Index, Index]:
        """The nodes of all trees by their rules; see `_by_rule`."""
        return _by_rule(self.forest)

    # ---- passes ------------------------------------------------------------------------------------------------------

    def run(self, weights: Array, forest: Forest, *, with_slopes: bool) -> Pass:
        """Do the inside pass, and the outside pass if slopes are wanted, on all threads."""
        n_nodes, n_trees = len(forest.rules), len(forest.starts) - 1
        inside = np.empty((n_nodes, self.width))
        slopes = np.empty((n_nodes if with_slopes else 0, self.width))
        logs, counter = np.empty(n_trees), np.zeros(1, dtype=np.int64)
        share(lambda: run_forest(forest, self.layout.rules, weights, inside, slopes, logs, counter), self.n_jobs)
        return Pass(inside, slopes, logs)

    def record(self, counts: Array, log_normalizer: float, n: float) -> AnnotatedStatistics:
        """Return counts as statistics."""
        return AnnotatedStatistics(GroupedSums(counts), log_normalizer=log_normalizer, n_observations=n)

    def score(self, weights: AnnotatedPoint) -> Array:
        """Return the log likelihood of every tree."""
        found = [
            self.run(weights.rules.weights, self.take(some), with_slopes=False).logs
            for some in self.blocks(np.arange(self.n_clusters))
        ]
        return np.concatenate(found) if found else np.zeros(0)

    def expected(self, weights: AnnotatedPoint, clusters: Index) -> AnnotatedStatistics:  # type: ignore[override]
        counts, total = np.zeros(self.layout.n_entries), 0.0
        table, rules = weights.rules.weights, self.layout.rules
        for some in self.blocks(clusters):
            forest = self.take(some)
            found = self.run(table, forest, with_slopes=True)
            order, bounds = self._sorted if forest is self.forest else _by_rule(forest)
            counter = np.zeros(1, dtype=np.int64)

            def work(
                forest: Forest = forest, order: Index = order, bounds: Index = bounds, found: Pass = found,
                counter: Index = counter,
            ) -> None:  # fmt: skip
                count_rules(forest, order, bounds, rules, table, found.inside, found.slopes, counts, counter)

            share(work, self.n_jobs)
            total += float(found.logs.sum())
        return self.record(counts, total, float(self.lengths[clusters].sum()))

    def draw(  # type: ignore[override]
        self, weights: AnnotatedPoint, clusters: Index, rng: np.random.Generator
    ) -> tuple[Index, AnnotatedStatistics]:
        """Draw the annotation of every node."""
        counts = np.zeros(self.layout.n_entries)
        drawn = [np.zeros(0, dtype=np.int64)]
        for some in self.blocks(clusters):
            forest = self.take(some)
            inside = self.run(weights.rules.weights, forest, with_slopes=False).inside
            annotations = np.empty(len(forest.rules), dtype=np.int64)
            uniforms = rng.random(len(forest.rules))
            draw_annotations(forest, self.layout.rules, weights.rules.weights, inside, uniforms, annotations)
            count_drawn(forest, self.layout.rules, annotations, counts)
            drawn.append(annotations)
        return np.concatenate(drawn), self.record(counts, 0.0, float(self.lengths[clusters].sum()))

    # ---- algorithms --------------------------------------------------------------------------------------------------

    def ledger_of(self, prior: Posterior, cluster_size: int) -> AnnotatedLedger:
        return AnnotatedLedger(self, cluster_size, prior)

    def collapsed_walker(self) -> type[ClusterWalker]:
        return AnnotationWalker

    @cached_property
    def groups(self) -> Groups:
        """The rules that occur in each tree."""
        return groups_of(self.forest, self.layout, 1)


def _by_rule(forest: Forest) -> tuple[Index, Index]:
    """Return the nodes sorted by their rules, in order within a rule, and where each rule's nodes begin."""
    order = np.argsort(forest.rules, kind="stable")
    changes = np.flatnonzero(np.diff(forest.rules[order])) + 1
    return order, np.concatenate([[0], changes, [len(order)]])
