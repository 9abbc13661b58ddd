"""Markov chains over the dependency trees of sentences with the parameters summed out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory, Posterior
from subchain.core.ranges import Range, stored
from subchain.errors import FileFormatError
from subchain.propagation.trees.charts import Rules
from subchain.propagation.trees.proposals import count_rules, propose_trees
from subchain.structures.base import Hidden
from subchain.structures.proposing_walkers import ProposingWalker
from subchain.structures.trees.model import TreePosterior

if TYPE_CHECKING:
    from subchain.structures.trees.structure import DependencyTrees


class TreeWalker(ProposingWalker):
    """One Markov chain over the trees of all sentences; `hidden` are the heads of all words, −1 for roots."""

    structure: DependencyTrees

    def propose(self, counts: Posterior, key: NDArray[np.uint64]) -> float:
        assert isinstance(counts, TreePosterior)
        assert isinstance(self.prior, TreePosterior)
        rules, structure = counts.rules(), self.structure
        accepted: float = propose_trees(
            structure.tags, rules, rules.attach.sum(axis=1), self.prior.floors(), self.hidden, key,
            int(structure.lengths.max(initial=0)),
        )  # fmt: skip
        return accepted

    def counted(self) -> Rules:
        counts, _ = self.structure.nothing()
        count_rules(self.structure.tags, np.asarray(self.hidden), counts)
        return counts

    def checked(self, hidden: Memory) -> Hidden:
        lengths, n_words = self.structure.lengths, len(self.structure.tags.codes)
        heads = Range("int64", least=-1, most=float(lengths.max(initial=0)))
        found = stored(hidden, "hidden", heads, (n_words,))
        within = np.arange(n_words) - np.repeat(self.structure.tags.starts[:-1], lengths)
        if (found >= np.repeat(lengths, lengths)).any() or (found == within).any():
            raise FileFormatError("the trees of the checkpoint are none of these sentences")
        return found
