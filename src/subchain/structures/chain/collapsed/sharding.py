"""Shards: stretches of clusters that are visited side by side, each with its own copy of the counts.

A pass is a number of rounds. In a round every shard visits its next block of clusters under the counts of the
beginning of the round and its own changes to them. Then what all shards have changed is added, in the order of the
shards. A cluster therefore sees new shares of all others, but for those that other shards have visited in the same
round: at most one in `n_rounds`, of which it sees the shares of the pass before (Asuncion et al. 2008 do the same for
topic models).

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
from subchain.propagation.collapsed.shards import Blocks

if TYPE_CHECKING:
    from subchain.structures.chain.collapsed.ledger import ChainLedger

Index = NDArray[np.int64]

#: Most shards and rounds; fewest rounds of data that have shards at all.
MOST_SHARDS, MOST_ROUNDS, FEWEST_ROUNDS = 64, 32, 4
#: Work of a block: less would not be worth a thread, nor the exchange of counts. A position with a states takes
#: a² + `POSITION_WORK`, about as many nanoseconds.
BLOCK_WORK, POSITION_WORK = 2e6, 50.0


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

    def adopt(self, counts: EmissionCounts) -> None:
        """Take other counts of emissions, of the same kind."""
        if self.n_shards == 1:
            return
        if self._counts is None:
            self._counts = counts.shards(self.blocks)
        self._counts.counts = counts

    def check_cursor(self, cursor: int) -> None:
        """Raise a `FileFormatError` if a pass cannot have been left there."""
        if self.n_shards > 1 and cursor not in self.visited:
            raise FileFormatError(f"cursor holds {cursor}, where no round of the shards begins")

    def visit(self, cursor: int, how: How) -> int:
        """Do the round that begins at a cursor; return the cursor of the next."""
        ledger, emissions = self.ledger, self._counts
        assert emissions is not None, "counts are adopted before visits"
        number = int(np.searchsorted(self.visited, cursor))
        rows = ledger.chain.counts()
        counts, totals = stacked(self.n_shards, rows.counts), stacked(self.n_shards, rows.totals)
        since = stacked(self.n_shards, ledger.since)

        def visit(shard: int) -> int:
            np.copyto(counts[shard], rows.counts)
            np.copyto(totals[shard], rows.totals)
            own = rows._replace(counts=counts[shard], totals=totals[shard])
            kernel = emissions.begin(shard, number)
            return ledger.visitor.kernel(self.blocks.of(shard, number), own, kernel, how, since[shard])

        engine = ledger.chains.engine
        for lost in engine.map(visit, list(range(self.n_shards))):
            ledger.visitor.check_possible(lost)
        for own in since:
            ledger.since += own
        if how.puts_back:
            add_differences(rows.counts, counts)
            emissions.merge(number, engine.map)
        return int(self.visited[number + 1])


def sharding_of(ledger: ChainLedger) -> Sharding:
    """Return shards of a ledger's clusters: as many as are worth the exchange of counts, one if the data are small."""
    shares, positions = ledger.shares, ledger.data.n_observations
    states = shares.marginals.size / max(positions, 1)
    n_blocks = int(positions * (states**2 + POSITION_WORK) / BLOCK_WORK)
    clusters = ledger.clusters
    sizes = np.bincount(np.arange(len(clusters.lengths)) % max(clusters.size, 1), weights=clusters.lengths)
    n_shards, n_rounds, edges = divide(sizes, n_blocks)
    return Sharding(ledger, Blocks(edges, n_shards, n_rounds, clusters.kernel))


def divide(sizes: NDArray[np.float64], n_blocks: int) -> tuple[int, int, Index]:
    """Divide clusters of these sizes, in positions, into about so many blocks; return shards, rounds and edges.

    Blocks have about the same size, and two clusters at least. The number of shards is a power of two.
    """
    while n_blocks >= 2 * FEWEST_ROUNDS:
        n_shards = min(1 << ((n_blocks // FEWEST_ROUNDS).bit_length() - 1), MOST_SHARDS)
        n_rounds = min(n_blocks // n_shards, MOST_ROUNDS)
        ends = np.cumsum(sizes + sizes.mean())  # so that no block has many clusters, or few
        inner = np.arange(1, n_shards * n_rounds) * (ends[-1] / (n_shards * n_rounds))
        edges = np.concatenate(([0], np.searchsorted(ends, inner), [len(sizes)]))
        if np.diff(edges).min() >= 2:
            return n_shards, n_rounds, edges
        n_blocks //= 2
    return 1, 1, np.array([0, len(sizes)])
