"""Collapsed Gibbs sampling of alignments: each sentence pair is drawn given the counts of all others.

Parameters are summed out, and a pair is drawn from the posterior predictive of the counts without it, as if these did
not change within the pair. They do where a pair has several jumps of one width, or a word twice. There is no Metropolis
step that would correct for this, so the draws are approximately those of the posterior.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory, Point
from subchain.core.ranges import Range, stored
from subchain.core.statistics import Statistics
from subchain.propagation.alignment.pair import Shares
from subchain.propagation.alignment.passes import Drawing
from subchain.structures.alignment.ledger import AlignmentLedger
from subchain.structures.base import Hidden, Moved
from subchain.structures.cluster_walkers import ClusterWalker, ClusterWalkers

if TYPE_CHECKING:
    from subchain.structures.alignment.structure import Alignments

Array = NDArray[np.float64]
#: How often each cell was a link.
_TALLIES = Range("float32", least=0.0)


class AlignmentWalkers(ClusterWalkers):
    """Makes the walkers of a run; see `structures.base.Walkers`."""

    structure: Alignments

    def walker(self, number: int, hidden: Hidden) -> AlignmentWalker:
        return AlignmentWalker(self, number, hidden)


class AlignmentWalker(ClusterWalker):
    """One Markov chain over the alignments of all pairs; `links` and `jumps` are sums over the kept draws."""

    shared: AlignmentWalkers

    def __init__(self, shared: AlignmentWalkers, number: int, hidden: Hidden) -> None:
        super().__init__(shared, number, hidden)
        self.ledger = AlignmentLedger(shared.structure, shared.prior)
        self.links = np.zeros((shared.structure.data.n_cells, 2), dtype=np.float32)
        self.jumps = np.zeros_like(self.ledger.posteriors.jumps)

    def begin(self, point: Point) -> None:
        """Draw alignments given the expected statistics under a point."""
        self.hidden = self.shared.structure.nothing_drawn()
        self.ledger.counts = self.ledger.counted(self.shared.structure.statistics(point))
        self._draw(0, excludes=False)
        self.ledger.add_up()

    def _draw(self, sweep: int, *, excludes: bool) -> None:
        rng = np.random.default_rng([self.shared.seed, self.number, sweep])
        drawing = Drawing(rng.random((self.shared.structure.n_tokens, 2)), np.asarray(self.hidden, dtype=np.int64))
        self.ledger.draw_pairs(drawing, excludes=excludes)

    def sweeps(self, first: int, temperatures: Array) -> Moved:
        before = self.hidden
        for sweep in range(len(temperatures)):
            before, self.hidden = self.hidden, self.hidden.copy()
            self._draw(first + sweep + 1, excludes=True)
        return Moved(float(np.mean(before != self.hidden)))

    def statistics(self) -> Statistics:
        return self.ledger.statistics.scale(1.0)  # a copy: later draws change the counts of the ledger

    def log_joint(self) -> float:
        found = self.prior.log_evidence(self.ledger.statistics)
        return math.nan if found is None else found

    def kept(self, statistics: Statistics, sweep: int, *, with_hidden: bool) -> dict[str, NDArray[Any] | float]:
        self.links += self.ledger.posteriors.links
        self.jumps += self.ledger.posteriors.jumps
        return super().kept(statistics, sweep, with_hidden=with_hidden)

    def memory(self) -> Memory:
        """Return the tallies, and all that the ledger keeps."""
        mine = {f"{name}.{self.number}": array for name, array in (("links", self.links), ("jumps", self.jumps))}
        return mine | {f"ledger.{self.number}.{name}": array for name, array in self.ledger.memory.items()}

    def restore(self, memory: Memory) -> None:
        for name, tally in (("links", self.links), ("jumps", self.jumps)):
            tally[:] = stored(memory, f"{name}.{self.number}", _TALLIES, tally.shape)
        prefix = f"ledger.{self.number}."
        own = {name.removeprefix(prefix): array for name, array in memory.items() if name.startswith(prefix)}
        self.ledger.restore(own, self.shared.structure.nothing(self.jumps.shape[2]))
        tokens = Range("int64", least=-1, most=len(self.shared.structure.data.cells.source))
        self.hidden = stored({"hidden": np.asarray(self.hidden)}, "hidden", tokens, (self.shared.structure.n_tokens,))


def averaged_shares(memory: Memory, n_chains: int) -> Shares | None:
    """Return how often each cell was a link, as a share of the kept draws of all chains; None if none was kept."""
    draws = int(memory["draws"]) * n_chains
    if not draws or "links.0" not in memory:
        return None
    links, jumps = (
        np.sum([memory[f"{name}.{chain}"] for chain in range(n_chains)], axis=0) / np.float32(draws)
        for name in ("links", "jumps")
    )
    return Shares(links, jumps)
