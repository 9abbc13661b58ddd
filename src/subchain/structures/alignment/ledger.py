"""The ledger of collapsed inference over sentence pairs: 8 bytes a cell for the posteriors of both directions.

What a pair has put into the counts is computed from its posteriors, so that nothing else is kept of it but its jumps.
Visits are compiled (`propagation/alignment/passes.py`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory, Point, Posterior
from subchain.core.ranges import FINITE, SINCE, SUM_TOLERANCE, Range, stored, stored_cursor
from subchain.core.records import Record
from subchain.core.statistics import Statistics
from subchain.errors import FileFormatError, InputError
from subchain.propagation.alignment.pair import Shares, Table, Totals
from subchain.propagation.alignment.passes import NO_DRAWING, Drawing, add_shares, visit_pairs
from subchain.propagation.alignment.words import visit_words
from subchain.structures.alignment.model import AlignmentPosterior
from subchain.structures.base import NO_PASS

if TYPE_CHECKING:
    from subchain.structures.alignment.structure import Alignments

Index = NDArray[np.int64]

#: Sentence pairs between two checks for an interruption.
AT_ONCE = 4096
_SHARES = Range("float32", least=0.0)


class AlignmentLedger:
    """The counts of sentence pairs, and the posteriors that they are the sum of; see `base.Ledger`.

    Attributes
    ----------
    by_word : whether single words are visited (CVI 1), not whole sentence pairs (CVI 2)
    counts, totals : counts of both directions, those of the prior included
    shares : posteriors of all cells, and expected jumps of all pairs
    """

    is_compiled, needs_others = True, False
    log_scale = 0.0

    def __init__(self, structure: Alignments, prior: Posterior, by_word: bool = False) -> None:
        assert isinstance(prior, AlignmentPosterior)
        self.structure = structure
        self.by_word = by_word
        self._prior = prior
        self.size, self.n_marginals = structure.n_clusters, structure.data.n_cells
        self.cursor, self.iteration, self.measures, self.since = 0, 0, True, np.zeros(2)
        self.last_pass = NO_PASS
        self.counts: Table
        self.totals: Totals
        n_buckets = prior.jumps.counts.shape[1]
        self.shares = structure.start or Shares(
            np.zeros((self.n_marginals, 2), dtype=np.float32), np.zeros((self.size, 2, n_buckets), dtype=np.float32)
        )

    @property
    def current_prior(self) -> AlignmentPosterior:
        return self._prior

    # ---- counts ------------------------------------------------------------------------------------------------------

    def set_counts(self, statistics: Statistics | None) -> None:
        """Let the counts be those of the prior and of statistics."""
        of = self.current_prior if statistics is None else self.current_prior.update(statistics)
        table = of.translation
        copied = [array.copy() for array in (table.pairs, table.null_target, table.null_source, of.jumps.counts)]
        self.counts = Table(*copied)
        self.totals = Totals(table.totals_source.copy(), table.totals_target.copy())

    def _exact(self) -> dict[str, NDArray[np.float64]]:
        """Return the arrays of the counts by name."""
        named = {f"counts.{name}": array for name, array in self.counts._asdict().items()}
        return named | {f"totals.{name}": array for name, array in self.totals._asdict().items()}

    def add_up(self) -> None:
        """Sum all shares afresh."""
        self.set_counts(None)
        data, pairs = self.structure.data, np.arange(self.size)
        starts, agrees = data.cells.starts[:-1], self.structure.model.agrees
        add_shares(data.cells, pairs, starts, pairs, self.shares, agrees, self.counts, self.totals, data.sizes)

    def check_sum(self, statistics: Statistics) -> None:
        kept = self.counts, self.totals
        self.add_up()
        mine, parts = self.statistics, self.current_prior.parts()
        self.counts, self.totals = kept
        if not all(statistics.part(name).is_close(mine.part(name), SUM_TOLERANCE) for name in parts):
            raise FileFormatError("the statistics are not the sum of the shares of all clusters")

    # ---- a run -------------------------------------------------------------------------------------------------------

    def adopt(self, prior: Posterior) -> None:
        assert isinstance(prior, AlignmentPosterior)
        self._prior = prior

    def begin(self, statistics: Statistics) -> None:
        """Begin with the shares of an earlier stage or, if there was none, with those under the statistics."""
        if self.structure.start is None:
            self.set_counts(statistics)
            self._visit_pairs(np.arange(self.size), excludes=False, puts_back=False)
        self.since = np.zeros(2)
        self.add_up()

    def draw(self, kind: str, seed: int) -> None:
        raise InputError(f"init={kind!r} draws hidden states of a chain; alignments have none.")

    def visit(self, clusters: Index, *, excludes: bool, puts_back: bool, drawing: Drawing = NO_DRAWING) -> None:
        if not self.by_word:
            self._visit_pairs(clusters, excludes, puts_back, drawing)
            return
        data, model = self.structure.data, self.structure.model
        self.since[0] += visit_words(
            data.cells, clusters, self.counts, self.totals, self._concentrations, model, self.shares, excludes,
            puts_back, data.sizes,
        )  # fmt: skip

    def _visit_pairs(self, clusters: Index, excludes: bool, puts_back: bool, drawing: Drawing = NO_DRAWING) -> None:
        data, model = self.structure.data, self.structure.model
        self.since[0] += visit_pairs(
            data.cells, clusters, self.counts, self.totals, self._concentrations, model, self.shares, excludes,
            puts_back, data.sizes, drawing,
        )  # fmt: skip

    @property
    def _concentrations(self) -> NDArray[np.float64]:
        """Concentrations of words and of jump widths."""
        return np.array([self.current_prior.translation.concentration, self.current_prior.jumps.concentration])

    def visit_next(self, order: Index, *, excludes: bool, puts_back: bool) -> None:
        some = order[self.cursor : self.cursor + AT_ONCE]
        self.visit(some, excludes=excludes, puts_back=puts_back)
        self.cursor += len(some)

    @contextlib.contextmanager
    def writing(self, in_place: bool) -> Iterator[None]:
        before = None if in_place else Shares(self.shares.links.copy(), self.shares.jumps.copy())
        try:
            yield
        except KeyboardInterrupt:
            if before is not None:
                self.shares = before
            raise

    def trying(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def update_hyperparameters(self) -> None:
        """Do nothing: no hyperparameters are learned."""

    def expected_log_joint(self) -> None:
        """Return None: entropies are not computed; the trace has the log probability of pairs given the others."""

    # ---- results -----------------------------------------------------------------------------------------------------

    def marginals(self) -> None:
        """Return None: posteriors of links are in `shares`."""

    @property
    def checked(self) -> list[Record]:
        return [self.statistics]

    @property
    def statistics(self) -> Statistics:
        given = self.current_prior
        counts = Table(
            self.counts.pairs - given.translation.pairs,
            self.counts.null_target - given.translation.null_target,
            self.counts.null_source - given.translation.null_source,
            self.counts.jumps - given.jumps.counts,
        )
        return self.structure.record(counts, np.zeros_like(counts.jumps), 0.0, self.structure.total_weight)

    reported = statistics

    @property
    def point(self) -> Point:
        return self.current_prior.update(self.statistics).mean()

    @property
    def prior(self) -> Posterior | None:
        return None

    @property
    def memory(self) -> Memory:
        """Shares, and counts, which have a rounding of their own."""
        return {
            "links": self.shares.links.copy(),
            "jumps": self.shares.jumps.copy(),
            **{name: array.copy() for name, array in self._exact().items()},
            "cursor": np.array([self.cursor, self.iteration]),
            "since": self.since.copy(),
            "last_pass": self.last_pass,
        }

    def restore(self, memory: Memory, statistics: Statistics) -> None:
        self.cursor, self.iteration = stored_cursor(memory, self.size)
        self.since = np.array(stored(memory, "since", SINCE, (2,)))
        self.last_pass = stored(memory, "last_pass", SINCE, (3,))
        links = stored(memory, "links", _SHARES, self.shares.links.shape)
        self.shares = Shares(links.copy(), stored(memory, "jumps", _SHARES, self.shares.jumps.shape).copy())
        self.set_counts(statistics)
        for name, array in self._exact().items():
            array[:] = stored(memory, name, FINITE, array.shape)
