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
from subchain.core.ranges import FINITE, SUM_TOLERANCE, Range, stored
from subchain.core.records import Record
from subchain.core.statistics import Statistics
from subchain.engines.threads import share
from subchain.errors import FileFormatError, InputError
from subchain.propagation.alignment.pair import Shares, Table, Totals
from subchain.propagation.alignment.passes import NO_DRAWING, Drawing, add_shares, visit_pairs
from subchain.propagation.alignment.rounds import Changes, apply_changes, visit_round
from subchain.propagation.alignment.words import visit_words
from subchain.structures.alignment.model import AlignmentPosterior
from subchain.structures.passes import Passes

if TYPE_CHECKING:
    from subchain.structures.alignment.structure import Alignments

Index = NDArray[np.int64]

#: Sentence pairs between two checks for an interruption, and most of a round that is visited side by side.
AT_ONCE, ROUND = 4096, 256
#: Rounds of a pass, at least: pairs of one round do not see each other's new shares.
FEWEST_ROUNDS = 64
_SHARES = Range("float32", least=0.0)


def _ends(sizes: Index) -> Index:
    """Return where stretches of these sizes begin, one after the other, and where the last ends."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])


class AlignmentLedger(Passes):
    """The counts of sentence pairs, and the posteriors that they are the sum of; see `base.Ledger`.

    Attributes
    ----------
    by_word : whether single words are visited (CVI 1), not whole sentence pairs (CVI 2)
    counts, totals : counts of both directions, those of the prior included
    shares : posteriors of all cells, and expected jumps of all pairs
    in_rounds : whether pairs are visited side by side, a round after the other
    """

    is_compiled, needs_others = True, False
    log_scale = 0.0

    def __init__(self, structure: Alignments, prior: Posterior, by_word: bool = False, in_rounds: bool = False) -> None:
        assert isinstance(prior, AlignmentPosterior)
        self.structure = structure
        self.by_word, self.in_rounds = by_word, in_rounds
        self._prior = prior
        super().__init__(structure.n_clusters)
        self.n_marginals = structure.data.n_cells
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
        self.__dict__.pop("counts", None)  # released before their successors take as much room again
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
            if self.in_rounds:
                self._begin_in_rounds()
            else:
                self._visit_pairs(np.arange(self.size), excludes=False, puts_back=False)
        self.since = np.zeros(2)
        self.add_up()

    def _begin_in_rounds(self) -> None:
        """Write the shares of all pairs under the counts as they are, on all threads."""
        starts = self.structure.data.cells.starts
        for first in range(0, self.size, ROUND):
            last = min(first + ROUND, self.size)
            fresh = self._new_shares(np.arange(first, last), excludes=False).fresh
            self.shares.links[starts[first] : starts[last]] = fresh.links
            self.shares.jumps[first:last] = fresh.jumps

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
        if self.in_rounds:
            size = max(min(ROUND, self.size // FEWEST_ROUNDS), 1)
            for begin in range(0, len(some), size):
                self._visit_round(some[begin : begin + size], excludes)
        else:
            self.visit(some, excludes=excludes, puts_back=puts_back)
        self.cursor += len(some)

    def _visit_round(self, pairs: Index, excludes: bool) -> None:
        """Update sentence pairs side by side, on all threads."""
        changes, agrees, n_jobs = self._new_shares(pairs, excludes), self.structure.model.agrees, self.structure.n_jobs
        cells, counter = self.structure.data.cells, np.zeros(1, dtype=np.int64)
        share(
            lambda: apply_changes(
                cells, pairs, self.shares, changes, agrees, self.counts, self.totals, n_jobs, counter
            ),
            n_jobs,
        )  # fmt: skip
        self.since[0] += changes.logs.sum()

    def _new_shares(self, pairs: Index, excludes: bool) -> Changes:
        """Return what sentence pairs would change, each under the counts as they are."""
        data, model, prior = self.structure.data, self.structure.model, self._concentrations
        cells, n_buckets = data.cells, self.counts.jumps.shape[1]
        places = _ends(cells.starts[pairs + 1] - cells.starts[pairs])
        words = cells.source_starts[pairs + 1] - cells.source_starts[pairs]
        words += cells.target_starts[pairs + 1] - cells.target_starts[pairs]
        tokens = _ends(words)
        fresh = Shares(
            np.empty((places[-1], 2), dtype=np.float32), np.zeros((len(pairs), 2, n_buckets), dtype=np.float32)
        )
        changes = Changes(fresh, places, tokens, np.empty((tokens[-1], 2)), np.empty(len(pairs)))
        counter = np.zeros(1, dtype=np.int64)
        share(
            lambda: visit_round(
                cells, pairs, self.counts, self.totals, prior, model, self.shares, changes, excludes, data.sizes,
                counter,
            ),
            self.structure.n_jobs,
        )  # fmt: skip
        return changes

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
        """The counts without those of the prior; word pairs are not copied if it has none, until the next visit."""
        given = self.current_prior
        counts = Table(
            self.counts.pairs - given.translation.pairs if given.translation.has_counts else self.counts.pairs,
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
            **self.pass_memory(),
        }

    def restore(self, memory: Memory, statistics: Statistics) -> None:
        self.restore_passes(memory)
        links = stored(memory, "links", _SHARES, self.shares.links.shape)
        self.shares = Shares(links.copy(), stored(memory, "jumps", _SHARES, self.shares.jumps.shape).copy())
        self.set_counts(statistics)
        for name, array in self._exact().items():
            array[:] = stored(memory, name, FINITE, array.shape)
