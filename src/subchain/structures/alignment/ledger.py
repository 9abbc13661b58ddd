"""Ledgers of collapsed inference over sentence pairs: 8 bytes a cell for the posteriors of both directions.

What a pair has put into the counts is computed from its posteriors, so that nothing else is kept of it but its jumps.
Visits are compiled (`propagation/alignment/`): of whole sentence pairs (CVI 2), or of single words (CVI 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Posterior
from subchain.core.ranges import Range
from subchain.core.statistics import Statistics
from subchain.propagation.alignment.pair import Shares, Table, Totals
from subchain.propagation.alignment.passes import NO_DRAWING, Drawing, add_shares, visit_pairs
from subchain.propagation.alignment.words import visit_words
from subchain.structures.alignment.model import AlignmentPosterior
from subchain.structures.counted_ledger import Arrays, CountedLedger

if TYPE_CHECKING:
    from subchain.structures.alignment.structure import Alignments

Index = NDArray[np.int64]

#: Sentence pairs between two checks for an interruption.
AT_ONCE = 4096
_SHARES = Range("float32", least=0.0)


class AlignmentLedger(CountedLedger):
    """The counts of sentence pairs, and the posteriors that they are the sum of; see `base.Ledger`."""

    needs_others = False

    def __init__(self, structure: Alignments, prior: Posterior) -> None:
        assert isinstance(prior, AlignmentPosterior)
        self.structure = structure
        n_pairs, n_cells = structure.n_clusters, structure.data.n_cells
        begun = structure.start or Shares(
            np.zeros((n_cells, 2), dtype=np.float32), np.zeros((n_pairs, *prior.jumps.counts.shape), dtype=np.float32)
        )
        shares: Arrays = begun._asdict()
        super().__init__(
            prior, shares, dict.fromkeys(shares, _SHARES), size=n_pairs, n_marginals=n_cells, hidden="alignments",
            at_once=AT_ONCE,
        )  # fmt: skip

    # ---- what kernels read -------------------------------------------------------------------------------------------

    @property
    def posteriors(self) -> Shares:
        """Posteriors of all cells, and expected jumps of all pairs."""
        arrays: dict[str, Any] = self.shares
        return Shares(**arrays)

    @property
    def table(self) -> Table:
        """Counts of both directions, those of the prior included."""
        return self.table_of(self.counts)

    @property
    def totals(self) -> Totals:
        """Counts of each word, summed over all its translations."""
        return self.totals_of(self.counts)

    @staticmethod
    def table_of(counts: dict[str, Any]) -> Table:
        return Table(*(counts[name] for name in Table._fields))

    @staticmethod
    def totals_of(counts: dict[str, Any]) -> Totals:
        return Totals(counts["totals_source"], counts["totals_target"])

    @property
    def concentrations(self) -> NDArray[np.float64]:
        """Concentrations of words and of jump widths, (2,)."""
        prior = self.current_prior
        assert isinstance(prior, AlignmentPosterior)
        return np.array([prior.translation.concentration, prior.jumps.concentration])

    # ---- counts ------------------------------------------------------------------------------------------------------

    def counted(self, statistics: Statistics | None) -> Arrays:
        return {name: array.copy() for name, array in self.arrays_of(statistics).items()}

    def arrays_of(self, statistics: Statistics | None) -> Arrays:
        """Return the counts of the prior and of statistics, whose own arrays may be among them."""
        prior = self.current_prior
        of = prior if statistics is None else prior.update(statistics)
        assert isinstance(of, AlignmentPosterior)
        names = ("pairs", "null_target", "null_source", "totals_source", "totals_target")
        return {name: getattr(of.translation, name) for name in names} | {"jumps": of.jumps.counts}

    def add_up(self) -> None:
        self.counts = {}  # released before their successors take as much room again
        self.counts = self.counted(None)
        data, pairs = self.structure.data, np.arange(self.size)
        starts, agrees = data.cells.starts[:-1], self.structure.model.agrees
        add_shares(data.cells, pairs, starts, pairs, self.posteriors, agrees, self.table, self.totals, data.sizes)

    @property
    def statistics(self) -> Statistics:
        """The counts without those of the prior; word pairs are not copied if it has none, until the next visit."""
        given, table = self.current_prior, self.table
        assert isinstance(given, AlignmentPosterior)
        counts = Table(
            table.pairs - given.translation.pairs if given.translation.has_counts else table.pairs,
            table.null_target - given.translation.null_target,
            table.null_source - given.translation.null_source,
            table.jumps - given.jumps.counts,
        )
        return self.structure.record(counts, np.zeros_like(counts.jumps), 0.0, self.structure.total_weight)

    # ---- a run -------------------------------------------------------------------------------------------------------

    def begin(self, statistics: Statistics) -> None:
        """Begin with the shares of an earlier stage or, if there was none, with those under the statistics."""
        if self.structure.start is None:
            self.counts = self.counted(statistics)
            self._visit_pairs(np.arange(self.size), excludes=False, puts_back=False)
        self.since = np.zeros(2)
        self.add_up()

    def visit(self, clusters: Index, *, excludes: bool, puts_back: bool) -> None:
        self._visit_pairs(clusters, excludes, puts_back)

    def draw_pairs(self, drawing: Drawing, *, excludes: bool) -> None:
        """Draw alignments of all pairs, and put them into the counts if the old ones are taken out."""
        self._visit_pairs(np.arange(self.size), excludes, excludes, drawing)

    def _visit_pairs(self, clusters: Index, excludes: bool, puts_back: bool, drawing: Drawing = NO_DRAWING) -> None:
        data, model = self.structure.data, self.structure.model
        self.since[0] += visit_pairs(
            data.cells, clusters, self.table, self.totals, self.concentrations, model, self.posteriors, excludes,
            puts_back, data.sizes, drawing,
        )  # fmt: skip

    def expected_log_joint(self) -> None:
        """Return None: entropies are not computed; the trace has the log probability of pairs given the others."""


class WordLedger(AlignmentLedger):
    """The same with visits of single words."""

    def visit(self, clusters: Index, *, excludes: bool, puts_back: bool) -> None:
        data, model = self.structure.data, self.structure.model
        self.since[0] += visit_words(
            data.cells, clusters, self.table, self.totals, self.concentrations, model, self.posteriors, excludes,
            puts_back, data.sizes,
        )  # fmt: skip
