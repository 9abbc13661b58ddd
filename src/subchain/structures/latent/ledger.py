"""The ledger of collapsed inference over annotated trees: a table for every rule that occurs in a group of trees.

Shares are in single precision, and the counts get exactly what is kept. Memory does not grow with nodes times H³ but
with groups times their different rules: more trees at once (`CVI(cluster_size=…)`) take less. Visits are compiled
(`propagation/latent/visits.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Posterior
from subchain.core.ranges import Range
from subchain.core.statistics import Statistics
from subchain.propagation.latent.trees import Forest
from subchain.propagation.latent.visits import Groups, add_groups, visit_groups
from subchain.structures.counted_ledger import Arrays, CountedLedger
from subchain.structures.latent.layout import Layout
from subchain.structures.latent.model import AnnotatedPosterior

if TYPE_CHECKING:
    from subchain.structures.latent.structure import AnnotatedTrees

Index = NDArray[np.int64]

#: Nodes that are visited between two checks for an interruption.
AT_ONCE = 1 << 15
#: What shares hold.
SHARES = Range("float32", least=0.0)


def groups_of(forest: Forest, layout: Layout, size: int) -> Groups:
    """Return groups of `size` trees each, and the rules that occur in them."""
    n_trees, n_rules = len(forest.starts) - 1, len(layout.rules.arity)
    trees = np.append(np.arange(0, n_trees, size), n_trees)
    group = np.repeat(np.arange(len(trees) - 1), np.diff(forest.starts[trees]))
    keys, local = np.unique(group * n_rules + forest.rules, return_inverse=True)
    used, of_group = (keys % n_rules).astype(np.int32), keys // n_rules
    first = np.searchsorted(of_group, np.arange(len(trees)))
    sizes = layout.rules.sizes[used].astype(np.int64).prod(axis=1)
    places = np.concatenate([[0], np.cumsum(sizes)])
    return Groups(trees, first, used, places, (local.ravel() - first[group]).astype(np.int32))


class AnnotatedLedger(CountedLedger):
    """The counts of annotated trees, and the shares that they are the sum of; see `base.Ledger`."""

    needs_others = False

    def __init__(self, structure: AnnotatedTrees, group_size: int, prior: Posterior) -> None:
        self.structure = structure
        self.groups = groups_of(structure.forest, structure.layout, group_size)
        n_groups, n_shares = len(self.groups.trees) - 1, int(self.groups.places[-1])
        nodes = max(len(structure.forest.rules) // max(n_groups, 1), 1)
        super().__init__(
            prior, {"uses": np.zeros(n_shares, dtype=np.float32)}, {"uses": SHARES},
            size=n_groups, n_marginals=n_shares, hidden="annotated trees", at_once=max(AT_ONCE // nodes, 1),
        )  # fmt: skip

    def _prior(self) -> AnnotatedPosterior:
        assert isinstance(self.current_prior, AnnotatedPosterior)
        return self.current_prior

    def counted(self, statistics: Statistics | None) -> Arrays:
        prior = self._prior()
        rules = (prior if statistics is None else prior.update(statistics)).rules
        return {"rules": rules.concentration.copy(), "totals": rules.totals(rules.concentration)}

    def add_up(self) -> None:
        self.counts = self.counted(None)
        layout, everything = self.structure.layout, np.arange(self.size)
        uses, counts, totals = self.shares["uses"], self.counts["rules"], self.counts["totals"]
        add_groups(layout.rules, layout.rows, self.groups, everything, uses, 1.0, counts, totals)

    def visit(self, clusters: Index, *, excludes: bool, puts_back: bool) -> None:
        structure, layout = self.structure, self.structure.layout
        least = float(self._prior().rules.concentration.min())
        self.since += visit_groups(
            structure.forest, layout.rules, layout.rows, self.groups, clusters, self.counts["rules"],
            self.counts["totals"], least, self.shares["uses"], excludes, puts_back, self.measures,
        )  # fmt: skip

    def expected_log_joint(self) -> float | None:
        return self.current_prior.log_evidence(self.statistics)

    @property
    def statistics(self) -> Statistics:
        counts = np.asarray(self.counts["rules"] - self._prior().rules.concentration, dtype=np.float64)
        return self.structure.record(counts, 0.0, self.structure.total_weight)
