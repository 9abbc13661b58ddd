"""The ledger of collapsed inference over sentences with trees of phrases.

The share of a sentence is what is expected of its rules: 4 bytes for each structural rule and for each of its entries.
Visits are compiled (`propagation/phrases/passes.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Posterior
from subchain.core.ranges import Range
from subchain.core.statistics import Statistics
from subchain.propagation.phrases.passes import EXPECT, Counts, add_shares, visit_phrases
from subchain.structures.counted_ledger import Arrays, CountedLedger
from subchain.structures.phrases.model import PhrasePosterior, PhraseStatistics

if TYPE_CHECKING:
    from subchain.structures.phrases.structure import PhraseTrees

Index = NDArray[np.int64]
Array = NDArray[np.float64]

#: Tokens between two checks for an interruption.
AT_ONCE = 4096
_SHARES = Range("float32", least=0.0)


class PhraseLedger(CountedLedger):
    """The counts of rules, and the shares of sentences that they are the sum of; see `base.Ledger`."""

    needs_others = False

    def __init__(self, structure: PhraseTrees, prior: Posterior) -> None:
        self.structure = structure
        shares: Arrays = {"rules": np.zeros(structure.places[-1], dtype=np.float32)}
        mean = structure.n_observations / max(structure.n_clusters, 1)
        super().__init__(
            prior, shares, {"rules": _SHARES},
            size=structure.n_clusters, n_marginals=int(structure.places[-1]), hidden="trees",
            at_once=max(int(AT_ONCE / max(mean, 1.0)), 1),
        )  # fmt: skip

    def _concentration(self) -> Array:
        prior = self.current_prior
        assert isinstance(prior, PhrasePosterior)
        return prior.rules.concentration

    def _totals(self, counts: Array) -> Array:
        """Return the sums of counts by left-hand side."""
        n_symbols = len(self.structure.rules.symbols)
        return np.asarray(np.bincount(self.structure.rules.left, weights=counts, minlength=n_symbols), dtype=np.float64)

    def counted(self, statistics: Statistics | None) -> Arrays:
        counts = self._concentration().copy()
        if statistics is not None:
            posterior = self.current_prior.update(statistics)
            assert isinstance(posterior, PhrasePosterior)
            counts = posterior.rules.concentration
        return {"rules": counts, "totals": self._totals(counts)}

    def begin(self, statistics: Statistics) -> None:
        """Begin with the shares under the weights of a start, or else under the predictive weights of its counts."""
        origin = statistics.origin if isinstance(statistics, PhraseStatistics) else None
        if origin is None:
            super().begin(statistics)
            return
        places, shares = self.structure.places, self.shares["rules"]
        for some in self.structure.blocks(np.arange(self.size)):
            found = self.structure.run(EXPECT, origin.rules.weights, some)
            shares[places[some[0]] : places[some[-1] + 1]] = found.shares
        self.add_up()

    def add_up(self) -> None:
        counts: dict[str, Any] = self.counted(None)
        structure, everything = self.structure, np.arange(self.size)
        add_shares(
            structure.grammar, structure.text, everything, structure.places, self.shares["rules"], counts["rules"],
            structure.rules.left, counts["totals"],
        )  # fmt: skip
        self.counts = counts

    def visit(self, clusters: Index, *, excludes: bool, puts_back: bool) -> None:
        structure, prior = self.structure, self._concentration()
        arrays: dict[str, Any] = self.counts
        counts = Counts(arrays["rules"], arrays["totals"], structure.rules.left, prior, self._totals(prior))
        self.since += visit_phrases(
            structure.grammar, structure.text, clusters, structure.places, counts, self.shares["rules"], excludes,
            puts_back, self.measures, int(structure.lengths.max(initial=0)),
            int(np.diff(structure.text.entries).max(initial=0)),
        )  # fmt: skip

    def expected_log_joint(self) -> float | None:
        return self.current_prior.log_evidence(self.statistics)

    @property
    def statistics(self) -> Statistics:
        counts: Any = self.counts["rules"]
        return self.structure.record(counts - self._concentration(), 0.0, self.structure.total_weight)
