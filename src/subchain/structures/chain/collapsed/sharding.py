"""Shards: stretches of clusters that are visited side by side, each with its own copy of the counts.

A pass is a number of rounds. In a round every shard visits its next block of clusters under the counts of the
beginning of the round and its own changes to them. Then what all shards have changed is added, in the order of the
shards. A cluster therefore sees new shares of all others, but for those that other shards have visited in the same
round: at most one in `n_rounds`, of which it sees the shares of the pass before (Newman et al. 2009 do the same
for topic models).

Shards and rounds depend on the data alone, so that results do not depend on the number of threads. Shards are stretches
of neighbours, and there are two rounds at least: clusters that read or count each other's marginals, because they are
neighbours in a sequence, are never visited in the same round, unless in the same shard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.collapsed.counts import EmissionCounts
from subchain.emissions.collapsed.shards import ShardCounts, add_differences, stacked
from subchain.errors import FileFormatError
from subchain.propagation.collapsed.pieces import How
from subchain.propagation.collapsed.rows import Rows
from subchain.propagation.collapsed.shards import Blocks

if TYPE_CHECKING:
    from subchain.structures.chain.collapsed.ledger import ChainLedger

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Most shards, and rounds of a pass: fewer cost more of the score (measured: docs/algorithms/cvi.md), more do not help.
MOST_SHARDS, FEWEST_ROUNDS, MOST_ROUNDS = 32, 16, 32
#: Work of a block: less is not worth a thread, and blocks of more are divided into further rounds. A position with a
#: states takes a² + `POSITION_WORK`, about a third of that in nanoseconds.
LEAST_WORK, MUCH_WORK, POSITION_WORK = 2e6, 4e6, 400.0


class Sharding:
    """Shards of the clusters of a ledger.

    Attributes
    ----------
    blocks : which clusters are visited side by side
    n_shards : number of shards; with a single one, clusters are visited one after the other as without shards
    visited : (n_rounds + 1,) clusters that have been visited before each round, and all
    """

    def __init__(self, ledger: ChainLedger, blocks: Blocks) -> None:
        self.ledger = ledger
        self.blocks = blocks
        self.n_shards = blocks.n_shards
        sizes = np.diff(blocks.edges).reshape(blocks.n_shards, blocks.n_rounds).sum(axis=0)
        self.visited = np.concatenate(([0], np.cumsum(sizes)))
        self._counts: ShardCounts | None = None
        self._tables: list[tuple[Array, Array]] = []

    def adopt(self, counts: EmissionCounts) -> None:
        """Take other counts of emissions, of the same kind."""
        if self.n_shards == 1:
            return
        if self._counts is None:
            self._counts = counts.shards(self.blocks)
        self._counts.adopt(counts)

    def check_cursor(self, cursor: int) -> None:
        """Raise a `FileFormatError` if a pass cannot have been left there."""
        if self.n_shards > 1 and cursor not in self.visited:
            raise FileFormatError(f"cursor holds {cursor}, where no round of the shards begins")

    def visit(self, cursor: int, how: How) -> int:
        """Do the round that begins at a cursor; return the cursor of the next."""
        ledger, emissions = self.ledger, self._counts
        assert emissions is not None, "counts are adopted before visits"
        number = int(np.searchsorted(self.visited, cursor))
        rows, run, engine = ledger.chain.counts(), ledger.visitor.kernel(ledger.emission.kernel), ledger.chains.engine
        copies, since = self._copies_of(rows), stacked(self.n_shards, ledger.since)

        def visit(shard: int) -> int:
            own = copies[shard]
            np.copyto(own.counts, rows.counts)
            np.copyto(own.totals, rows.totals)
            return run(self.blocks.of(shard, number), own, emissions.begin(shard, number), how, since[shard])

        for lost in engine.map(visit, list(range(self.n_shards))):
            ledger.visitor.check_possible(lost)
        for own in since:
            ledger.since += own
        if how.puts_back:
            add_differences(rows.counts, [own.counts for own in copies])
            emissions.merge(number, engine.map)
        return int(self.visited[number + 1])

    def _copies_of(self, rows: Rows) -> list[Rows]:
        """Return counts of transitions for each shard, with undefined contents."""
        if not self._tables:
            self._tables = list(
                zip(stacked(self.n_shards, rows.counts), stacked(self.n_shards, rows.totals), strict=True)
            )
        return [rows._replace(counts=counts, totals=totals) for counts, totals in self._tables]


def sharding_of(ledger: ChainLedger) -> Sharding:
    """Return shards of a ledger's clusters: as many as are worth the exchange of counts, one if the data are small."""
    shares, positions = ledger.shares, ledger.data.n_observations
    states = shares.marginals.size / max(positions, 1)
    clusters = ledger.clusters
    owner = np.arange(len(clusters.lengths)) % max(clusters.size, 1)
    sizes = np.bincount(owner, weights=clusters.lengths).astype(np.float64)
    n_shards, n_rounds, edges = divide(sizes, positions * (states**2 + POSITION_WORK))
    return Sharding(ledger, Blocks(edges, n_shards, n_rounds, clusters.kernel))


def divide(sizes: Array, work: float) -> tuple[int, int, Index]:
    """Divide clusters of these sizes, in positions, which take so much work; return shards, rounds and edges of blocks.

    Blocks have about the same size, and two clusters at least. The number of shards is a power of two.
    """
    n_shards = min(1 << (int(work / (LEAST_WORK * FEWEST_ROUNDS)).bit_length()), 2 * MOST_SHARDS) // 2
    while n_shards > 1:
        n_rounds = min(max(int(work / (MUCH_WORK * n_shards)), FEWEST_ROUNDS), MOST_ROUNDS)
        ends = np.cumsum(sizes + sizes.mean())  # so that no block has many clusters, or few
        inner = np.arange(1, n_shards * n_rounds) * (ends[-1] / (n_shards * n_rounds))
        edges = np.concatenate(([0], np.searchsorted(ends, inner), [len(sizes)]))
        if np.diff(edges).min() >= 2:
            return n_shards, n_rounds, edges
        n_shards //= 2
    return 1, 1, np.array([0, len(sizes)])
