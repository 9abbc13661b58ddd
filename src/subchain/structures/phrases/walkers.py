"""Markov chains over the trees of sentences with the parameters summed out: proposed, then accepted or rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory, Point
from subchain.core.ranges import Range, stored
from subchain.core.statistics import Statistics
from subchain.errors import FileFormatError
from subchain.numerics.random import key_of
from subchain.propagation.phrases.passes import BEST, Counts
from subchain.propagation.phrases.proposals import propose_phrases
from subchain.structures.base import Hidden, Moved
from subchain.structures.cluster_walkers import ClusterWalker, ClusterWalkers
from subchain.structures.phrases.drawing import drawn_trees
from subchain.structures.phrases.model import PhrasePoint, PhrasePosterior

if TYPE_CHECKING:
    from subchain.structures.phrases.structure import PhraseTrees


class PhraseWalkers(ClusterWalkers):
    """Makes the walkers of a run; see `structures.base.Walkers`."""

    structure: PhraseTrees

    def walker(self, number: int, hidden: Hidden) -> PhraseWalker:
        return PhraseWalker(self, number, hidden)


class PhraseWalker(ClusterWalker):
    """One Markov chain over the trees of all sentences; `hidden` are their rules, see `PhraseTrees.draw`."""

    shared: PhraseWalkers

    def begin(self, point: Point) -> None:
        """Draw trees given the point of the start; the best ones stand in for those that have no room."""
        structure, everything = self.shared.structure, np.arange(self.shared.structure.n_clusters)
        assert isinstance(point, PhrasePoint)
        weights = point.rules.weights
        trees = drawn_trees(structure, weights, everything, np.random.default_rng([self.shared.seed, self.number, 0]))
        sizes = structure.tree_sizes(everything)
        long = np.array([number for number, tree in enumerate(trees) if len(tree) > sizes[number]], dtype=np.int64)
        for number, tree in zip(long.tolist(), structure.run(BEST, weights, long).trees or [], strict=True):
            trees[number] = tree
        self.hidden, self.current = structure.hidden(trees, everything), structure.record_of(trees, everything)

    def sweeps(self, first: int, temperatures: NDArray[np.float64]) -> Moved:
        before, accepted = self.hidden, 1.0
        for sweep in range(len(temperatures)):
            before = self.hidden
            accepted = self._propose(first + sweep + 1)
        return Moved(float(np.mean(before != self.hidden)), accepted)

    def _propose(self, sweep: int) -> float:
        """Propose a tree for every sentence; return the share that was accepted."""
        structure, prior = self.shared.structure, self.prior
        assert isinstance(prior, PhrasePosterior)
        concentration, rows = prior.rules.concentration, structure.rules.left
        counts = concentration + self._counts()
        n_symbols = len(structure.rules.symbols)
        totals, least = (
            np.bincount(rows, weights=table, minlength=n_symbols).astype(np.float64)
            for table in (counts, concentration)
        )
        trees = np.array(self.hidden, dtype=np.int64)
        accepted: float = propose_phrases(
            structure.grammar, structure.text, Counts(counts, totals, rows, concentration, least), structure.rooms,
            trees, key_of(np.random.SeedSequence([self.shared.seed, self.number, sweep])),
            int(structure.lengths.max(initial=0)), int(np.diff(structure.text.entries).max(initial=0)),
        )  # fmt: skip
        self.hidden = trees
        self.current = structure.record(self._counts(), 0.0, structure.total_weight)
        return accepted

    def _counts(self) -> NDArray[np.float64]:
        """Return how often each rule is used in the trees."""
        return self.shared.structure.counts_of(self._used())

    def _used(self) -> NDArray[np.int64]:
        """Return the rules of all trees."""
        structure, hidden = self.shared.structure, np.asarray(self.hidden)
        sizes = hidden[structure.rooms[:-1]]
        within = np.arange(len(hidden)) - np.repeat(structure.rooms[:-1], np.diff(structure.rooms))
        is_rule = (within > 0) & (within <= np.repeat(sizes, np.diff(structure.rooms)))
        return np.asarray(hidden[is_rule])

    def statistics(self) -> Statistics:
        return self.current.scale(1.0)

    def memory(self) -> Memory:
        return {}

    def restore(self, memory: Memory) -> None:
        structure = self.shared.structure
        rooms, n_rules = structure.rooms, len(structure.weight_of_rule)
        rules = Range("int64", least=0, most=float(max(n_rules - 1, np.diff(rooms).max(initial=0))))
        hidden: dict[str, Any] = {"hidden": np.asarray(self.hidden)}
        self.hidden = stored(hidden, "hidden", rules, (int(structure.rooms[-1]),))
        if (self.hidden[rooms[:-1]] >= np.diff(rooms)).any() or (self._used() >= n_rules).any():
            raise FileFormatError("the trees of the checkpoint are none of this grammar")
        self.current = structure.record(self._counts(), 0.0, structure.total_weight)
