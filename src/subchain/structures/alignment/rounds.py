"""The ledger whose sentence pairs are visited side by side, a round after the other, on all threads."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Posterior
from subchain.core.statistics import Statistics
from subchain.engines.threads import share
from subchain.propagation.alignment.pair import Shares, Table, Totals
from subchain.propagation.alignment.rounds import CLAIMED, Changes, How, apply_changes, visit_round
from subchain.structures.alignment.ledger import AlignmentLedger

if TYPE_CHECKING:
    from subchain.structures.alignment.structure import Alignments

Index = NDArray[np.int64]

#: Sentence pairs of a round, at most, and rounds of a pass, at least: pairs of a round do not see each other's new
#: shares.
ROUND, FEWEST_ROUNDS = 1024, 64


class RoundLedger(AlignmentLedger):
    """The ledger of sentence pairs that are visited in rounds."""

    def __init__(self, structure: Alignments, prior: Posterior) -> None:
        super().__init__(structure, prior)
        self._room = _Room()

    def begin(self, statistics: Statistics) -> None:
        """Begin with the shares of an earlier stage, whose sum the statistics are, or else with those under them.

        The arrays of the statistics become those of the ledger: a table of word pairs less in memory.
        """
        self.since, self.counts = np.zeros(2), self.arrays_of(statistics)
        if self.structure.start is not None:
            return
        found = self.counted(None)
        table, totals = self.table_of(found), self.totals_of(found)
        for first in range(0, self.size, ROUND):
            pairs = np.arange(first, min(first + ROUND, self.size))
            self._apply(pairs, self._renew_shares(pairs, How(excludes=False, begins=True)), table, totals)
        self.counts = found

    def visit_next(self, order: Index, *, excludes: bool, puts_back: bool) -> None:
        some = order[self.cursor : self.cursor + self.at_once]
        size = max(min(ROUND, self.size // FEWEST_ROUNDS), 1)
        for begin in range(0, len(some), size):
            self.visit_round(some[begin : begin + size], excludes)
        self.cursor += len(some)

    def visit_round(self, pairs: Index, excludes: bool) -> None:
        """Update sentence pairs side by side."""
        changes = self._renew_shares(pairs, How(excludes, begins=False))
        self._apply(pairs, changes, self.table, self.totals)
        self.since[0] += changes.logs[: len(pairs)].sum()

    def _apply(self, pairs: Index, changes: Changes, table: Table, totals: Totals) -> None:
        """Put changes into counts."""
        data, agrees, counter = self.structure.data, self.structure.model.agrees, np.zeros(1, dtype=np.int64)
        cells, cuts, sizes = data.cells, self._cuts, data.sizes
        share(
            lambda: apply_changes(cells, pairs, changes, agrees, table, totals, cuts, sizes, counter),
            self.structure.n_jobs,
        )

    @cached_property
    def _cuts(self) -> Index:
        """Source words between which the table of word pairs is cut, when the counts change."""
        return self.structure.data.cut_words(self.structure.n_jobs)

    def _renew_shares(self, pairs: Index, how: How) -> Changes:
        """Write new shares of sentence pairs, each under the counts as they are; return what they change."""
        data, model, prior, counter = (
            self.structure.data, self.structure.model, self.concentrations, np.zeros(1, dtype=np.int64),
        )  # fmt: skip
        cells, table, totals = data.cells, self.table, self.totals
        shares = Shares(self.posteriors.links.reshape(-1), self.posteriors.jumps)
        places = _ends(cells.starts[pairs + 1] - cells.starts[pairs])
        words = cells.source_starts[pairs + 1] - cells.source_starts[pairs]
        words += cells.target_starts[pairs + 1] - cells.target_starts[pairs]
        changes = self._room.changes(places, _ends(words), 1 if model.agrees else 2, table.jumps.shape[1])
        share(
            lambda: visit_round(cells, pairs, table, totals, prior, model, shares, changes, how, data.sizes, counter),
            self.structure.n_jobs,
        )
        return changes


class _Room:
    """Room for the changes of a round, which all rounds use: fresh memory would be cleared by the system each time."""

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[np.float64]] = {}

    def changes(self, places: Index, tokens: Index, n_sides: int, n_buckets: int) -> Changes:
        """Return room for pairs with these first cells and tokens; see `Changes`."""
        n, n_cells, n_tokens = len(places) - 1, int(places[-1]), int(tokens[-1])
        shapes: dict[str, tuple[int, ...]] = {
            "links": (n_cells * n_sides,), "totals": (n_tokens,), "nulls": (n_tokens,),
            "jumps": (math.ceil(n / CLAIMED), 2, n_buckets), "logs": (n,),
        }  # fmt: skip
        for name, shape in shapes.items():
            if name not in self._kept or len(self._kept[name]) < shape[0]:
                self._kept[name] = np.empty(shape)
        return Changes(places, tokens, **self._kept)


def _ends(sizes: Index) -> Index:
    """Return where stretches of these sizes begin, one after the other, and where the last ends."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
