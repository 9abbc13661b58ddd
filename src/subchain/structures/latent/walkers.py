"""Markov chains over the annotations of given trees with the parameters summed out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory, Posterior
from subchain.core.ranges import Range, stored
from subchain.errors import FileFormatError
from subchain.propagation.latent.passes import count_drawn
from subchain.propagation.latent.proposals import propose_annotations
from subchain.structures.base import Hidden
from subchain.structures.latent.model import AnnotatedPosterior
from subchain.structures.proposing_walkers import ProposingWalker

if TYPE_CHECKING:
    from subchain.structures.latent.structure import AnnotatedTrees


class AnnotationWalker(ProposingWalker):
    """One Markov chain over the annotations of all nodes, which are `hidden`."""

    structure: AnnotatedTrees

    def propose(self, counts: Posterior, key: NDArray[np.uint64]) -> float:
        assert isinstance(counts, AnnotatedPosterior)
        assert isinstance(self.prior, AnnotatedPosterior)
        layout, own = self.structure.layout, counts.rules.concentration
        accepted: float = propose_annotations(
            self.structure.forest, layout.rules, layout.rows, self.structure.groups, own, counts.rules.totals(own),
            float(self.prior.rules.concentration.min()), self.hidden, key,
        )  # fmt: skip
        return accepted

    def counted(self) -> NDArray[np.float64]:
        counts = np.zeros(self.structure.layout.n_entries)
        count_drawn(self.structure.forest, self.structure.layout.rules, np.asarray(self.hidden), counts)
        return counts

    def checked(self, hidden: Memory) -> Hidden:
        layout, forest = self.structure.layout, self.structure.forest
        annotations = Range("int64", least=0, most=float(layout.sizes.max()))
        found = stored(hidden, "hidden", annotations, (len(forest.rules),))
        if (found >= layout.rules.sizes[forest.rules, 0]).any():
            raise FileFormatError("the annotations of the checkpoint are none of these trees")
        return found
