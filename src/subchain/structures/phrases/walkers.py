"""Markov chains over the trees of sentences with the parameters summed out: proposed, then accepted or rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory, Point, Posterior
from subchain.core.ranges import Range, stored
from subchain.errors import FileFormatError
from subchain.propagation.phrases.passes import BEST, Counts
from subchain.propagation.phrases.proposals import propose_phrases
from subchain.structures.base import Hidden
from subchain.structures.phrases.drawing import drawn_trees
from subchain.structures.phrases.model import PhrasePoint, PhrasePosterior
from subchain.structures.proposing_walkers import ProposingWalker

if TYPE_CHECKING:
    from subchain.structures.phrases.structure import PhraseTrees


class PhraseWalker(ProposingWalker):
    """One Markov chain over the trees of all sentences; `hidden` are their rules, see `PhraseTrees.draw`."""

    structure: PhraseTrees

    def begin(self, point: Point) -> None:
        """Draw trees given the point of the start; the best ones stand in for those that have no room."""
        structure, everything = self.structure, np.arange(self.structure.n_clusters)
        assert isinstance(point, PhrasePoint)
        weights = point.rules.weights
        trees = drawn_trees(structure, weights, everything, np.random.default_rng([self.shared.seed, self.number, 0]))
        sizes = structure.tree_sizes(everything)
        long = np.array([number for number, tree in enumerate(trees) if len(tree) > sizes[number]], dtype=np.int64)
        for number, tree in zip(long.tolist(), structure.run(BEST, weights, long).trees or [], strict=True):
            trees[number] = tree
        self.hidden, self.current = structure.hidden(trees, everything), structure.record_of(trees, everything)

    def propose(self, counts: Posterior, key: NDArray[np.uint64]) -> float:
        assert isinstance(counts, PhrasePosterior)
        assert isinstance(self.prior, PhrasePosterior)
        structure, own, prior = self.structure, counts.rules.concentration, self.prior.rules.concentration
        rows, n_symbols = structure.rules.left, len(structure.rules.symbols)
        totals, least = (
            np.bincount(rows, weights=table, minlength=n_symbols).astype(np.float64) for table in (own, prior)
        )
        accepted: float = propose_phrases(
            structure.grammar, structure.text, Counts(own, totals, rows, prior, least), structure.rooms, self.hidden,
            key, int(structure.lengths.max(initial=0)), int(np.diff(structure.text.entries).max(initial=0)),
        )  # fmt: skip
        return accepted

    def counted(self) -> NDArray[np.float64]:
        return self.structure.counts_of(self._used())

    def _used(self) -> NDArray[np.int64]:
        """Return the rules of all trees."""
        structure, hidden = self.structure, np.asarray(self.hidden)
        sizes = hidden[structure.rooms[:-1]]
        within = np.arange(len(hidden)) - np.repeat(structure.rooms[:-1], np.diff(structure.rooms))
        is_rule = (within > 0) & (within <= np.repeat(sizes, np.diff(structure.rooms)))
        return np.asarray(hidden[is_rule])

    def checked(self, hidden: Memory) -> Hidden:
        rooms, n_rules = self.structure.rooms, len(self.structure.weight_of_rule)
        rules = Range("int64", least=0, most=float(max(n_rules - 1, np.diff(rooms).max(initial=0))))
        self.hidden = stored(hidden, "hidden", rules, (int(rooms[-1]),))
        if (self.hidden[rooms[:-1]] >= np.diff(rooms)).any() or (self._used() >= n_rules).any():
            raise FileFormatError("the trees of the checkpoint are none of this grammar")
        return self.hidden
