"""Visitors: they hand clusters to the kernels that give them new marginals.

Counts of built-in families are compiled, and a kernel visits many clusters in one call. A family without counts of its
own is visited in Python: its share is taken out, the predictive likelihoods of the cluster are put into a table, the
same kernel runs the cluster, and its new share is put back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.collapsed.counts import EmissionCounts, TabledLogs
from subchain.errors import InputError, impossible_error
from subchain.propagation.collapsed import marginal_states  # noqa: F401  (implements the steps of `visit_states`)
from subchain.propagation.collapsed.pieces import How, Pieces, visit_pieces
from subchain.propagation.collapsed.rows import Rows
from subchain.propagation.collapsed.states import Ends, visit_states
from subchain.propagation.verbs import kernel_for
from subchain.structures.settings import CollapsedSettings
from subchain.transitions.base import ChainSums

if TYPE_CHECKING:
    from subchain.structures.chain.collapsed.ledger import ChainLedger

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class PieceVisitor:
    """Visits sequences or subchains."""

    #: Positions between which a run may be interrupted, where visits are compiled.
    positions_at_once = 50_000
    #: The kernel that visits clusters.
    visit_clusters: ClassVar[Any] = staticmethod(visit_pieces)

    def __init__(self, settings: CollapsedSettings, ledger: ChainLedger) -> None:
        self.settings = settings
        self.ledger = ledger
        self.check(ledger.current_prior.chain.incremental(_nothing(ledger.n_states)).counts())
        self._rows_of_positions = np.zeros(0, dtype=np.int64)

    def check(self, rows: Rows) -> None:
        """Raise an `InputError` if such transitions cannot be visited."""
        has_neighbours = not bool(self.ledger.clusters.is_first.all())
        if self.settings.by_counts and has_neighbours and not rows.concentration[:-1].any():
            raise InputError(
                "CVI: neighbour_weighting='counts' weighs rows by their counts, which frozen transitions do not have; "
                "use neighbour_weighting='probabilities'."
            )

    @property
    def places(self) -> Pieces | Ends:
        """Where clusters lie, for kernels."""
        return self.ledger.clusters.kernel

    @cached_property
    def at_once(self) -> int:
        clusters = self.ledger.clusters
        if not isinstance(self.ledger.emission, EmissionCounts):
            return max(100 // self.settings.cluster_size, 1)
        return max(self.positions_at_once * clusters.size // max(int(clusters.lengths.sum()), 1), 1)

    def visit(self, clusters: Index, *, excludes: bool, puts_back: bool) -> None:
        emission, how = self.ledger.emission, self.how(excludes, puts_back)
        rows = self.ledger.chain.counts()
        if isinstance(emission, EmissionCounts):
            self._run(clusters, rows, emission.kernel, how)
        else:
            for cluster in clusters.tolist():
                self._visit_in_python(cluster, rows, how)

    def how(self, excludes: bool, puts_back: bool) -> How:
        """Return how clusters are visited, for kernels."""
        return How(excludes, puts_back, self.settings.by_counts, self.ledger.measures)

    def _run(self, clusters: Index, rows: Rows, emissions: Any, how: How) -> None:
        self.check_possible(self.kernel(emissions)(clusters, rows, emissions, how, self.ledger.since))

    def check_possible(self, lost: int) -> None:
        """Raise an error for a position that no state explains, unless it is −1."""
        if lost >= 0:
            offsets = self.ledger.data.offsets
            sequence = int(np.searchsorted(offsets, lost, side="right")) - 1
            raise impossible_error({sequence: int(lost - offsets[sequence])})

    def kernel(self, emissions: Any) -> Callable[[Index, Rows, Any, How, Array], int]:
        """Return the kernel for counts of emissions like these.

        It visits clusters under counts of transitions and emissions, adds log normalisers and entropies to an array
        (2,), and returns a position that no state explains, −1 if there is none.
        """
        visit, shares, places = kernel_for(self.visit_clusters, emissions), self.ledger.shares.kernel, self.places
        return lambda clusters, *counts_and_how: int(visit(shares, clusters, places, *counts_and_how))

    def _visit_in_python(self, cluster: int, rows: Rows, how: How) -> None:
        ledger, emission = self.ledger, self.ledger.emission
        pieces = ledger.clusters.pieces(cluster)
        own = ledger.emission_share(cluster)
        if how.excludes:
            emission.blend(1.0, -1.0, own)
        surrogate = emission.surrogate("predictive")
        self._run(np.array([cluster]), rows, self._tabled(surrogate, ledger.clusters.positions(pieces)), how)
        new = ledger.accumulate(surrogate, pieces, ledger.shares.new)
        ledger.keep_emission_share(cluster, new)
        if how.excludes != how.puts_back:
            emission.blend(1.0, 1.0 if how.excludes else -1.0, own)
        if how.puts_back:
            emission.blend(1.0, 1.0, new)

    def _tabled(self, surrogate: Any, positions: Index) -> TabledLogs:
        """Log likelihoods of some positions for a kernel."""
        data = self.ledger.data
        if not len(self._rows_of_positions):
            self._rows_of_positions = np.zeros(data.n_observations, dtype=np.int64)
        self._rows_of_positions[positions] = np.arange(len(positions))
        logs = surrogate.log_likelihood(data.at(positions))
        return TabledLogs(np.ascontiguousarray(logs.T), self._rows_of_positions)


class StateVisitor(PieceVisitor):
    """Visits single positions with the thesis's expected counts of transitions (algorithm 1)."""

    visit_clusters = staticmethod(visit_states)

    @property
    def places(self) -> Ends:
        return Ends(self.ledger.clusters.is_first, self.ledger.clusters.is_last)

    def check(self, rows: Rows) -> None:
        if not rows.is_full:
            raise InputError(
                "CVI(cluster='state') needs Dirichlet rows without masked, fixed or frozen transitions; use "
                "cluster='sequence' or cluster='subchain'."
            )
        if self.ledger.clusters.weights is not None:
            raise InputError("CVI(cluster='state') takes no sample_weight; use cluster='sequence'.")
        if self.settings.neighbour_weighting == "probabilities":
            raise InputError(
                "CVI(cluster='state'): neighbour_weighting='probabilities' goes with corrections=False; the "
                "corrections are those of neighbour_weighting='counts'."
            )


def _nothing(n_states: int) -> ChainSums:
    return ChainSums(np.zeros(n_states), np.zeros((n_states, n_states)))
