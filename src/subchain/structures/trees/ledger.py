"""The ledger of collapsed inference over sentences: 8 bytes for each pair of words of a sentence.

What a sentence has put into the counts is computed from the posteriors of its arcs, so nothing else is kept of it.
Visits are compiled (`propagation/trees/passes.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Posterior
from subchain.core.ranges import FRACTIONS
from subchain.core.statistics import Statistics
from subchain.propagation.trees.charts import Rules
from subchain.propagation.trees.passes import Shares, add_shares, visit_trees
from subchain.structures.counted_ledger import Arrays, CountedLedger
from subchain.structures.trees.model import TreePosterior

if TYPE_CHECKING:
    from subchain.structures.trees.structure import DependencyTrees

Index = NDArray[np.int64]

#: Sentences between two checks for an interruption.
AT_ONCE = 4096


class TreeLedger(CountedLedger):
    """The counts of sentences, and the posteriors of arcs that they are the sum of; see `base.Ledger`."""

    needs_others = False

    def __init__(self, structure: DependencyTrees, prior: Posterior) -> None:
        self.structure = structure
        n_tokens = len(structure.tags.codes)
        shares: Arrays = {"arcs": np.zeros(structure.places[-1]), "childless": np.ones((n_tokens, 2))}
        super().__init__(
            prior, shares, dict.fromkeys(shares, FRACTIONS),
            size=structure.n_clusters, n_marginals=int(structure.places[-1]), hidden="dependency trees",
            at_once=AT_ONCE,
        )  # fmt: skip

    def _shares(self) -> Shares:
        arrays: dict[str, Any] = self.shares
        return Shares(**arrays)

    def _counts(self) -> tuple[Rules, NDArray[np.float64]]:
        arrays: dict[str, Any] = self.counts
        return Rules(*(arrays[name] for name in Rules._fields)), arrays["totals"]

    def counted(self, statistics: Statistics | None) -> Arrays:
        prior = self.current_prior
        assert isinstance(prior, TreePosterior)
        rules = (prior if statistics is None else prior.update(statistics)).rules()
        return {**rules._asdict(), "totals": rules.attach.sum(axis=1)}

    def add_up(self) -> None:
        self.counts = self.counted(None)
        structure, everything = self.structure, np.arange(self.size)
        starts = structure.tags.starts
        add_shares(structure.tags, everything, structure.places, starts, self._shares(), *self._counts())

    def visit(self, clusters: Index, *, excludes: bool, puts_back: bool) -> None:
        structure, prior = self.structure, self.current_prior
        counts, totals = self._counts()
        assert isinstance(prior, TreePosterior)
        self.since += visit_trees(
            structure.tags, clusters, structure.places, counts, totals, prior.floors(), self._shares(), excludes,
            puts_back, self.measures, int(structure.lengths.max(initial=0)),
        )  # fmt: skip

    def expected_log_joint(self) -> float | None:
        return self.current_prior.log_evidence(self.statistics)

    @property
    def statistics(self) -> Statistics:
        prior = self.current_prior
        assert isinstance(prior, TreePosterior)
        counts = (mine - given for mine, given in zip(self._counts()[0], prior.rules(), strict=True))
        return self.structure.record(Rules(*counts), 0.0, self.structure.total_weight)
