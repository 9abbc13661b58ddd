"""Markov chains of Metropolis-Hastings samplers over independent clusters, with the parameters summed out.

A subclass proposes and accepts what is hidden in every cluster once, and counts it. Whatever else a chain holds follows
from what is hidden, so that a checkpoint keeps nothing more.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory, Point, Posterior
from subchain.numerics.random import key_of
from subchain.structures.base import Hidden, Moved
from subchain.structures.cluster_walkers import ClusterWalker
from subchain.structures.hidden_trees import HiddenTrees


class ProposingWalker(ClusterWalker):
    """One Markov chain; `hidden` is what the structure draws for each cluster, and `current` its statistics."""

    structure: HiddenTrees

    @abstractmethod
    def propose(self, counts: Posterior, key: NDArray[np.uint64]) -> float:
        """Propose what is hidden in every cluster once, and write it to `hidden`; return the share that was accepted.

        `counts` are those of the prior and of what is hidden.
        """

    @abstractmethod
    def counted(self) -> Any:
        """Return how often each rule is used, as `record` of the structure takes it."""

    @abstractmethod
    def checked(self, hidden: Memory) -> Hidden:
        """Return `hidden["hidden"]` of a checkpoint; raise a `FileFormatError` if the structure cannot draw that."""

    def begin(self, point: Point) -> None:
        """Draw what is hidden given the point of the start."""
        rng, everything = (
            np.random.default_rng([self.shared.seed, self.number, 0]),
            np.arange(self.structure.n_clusters),
        )
        self.hidden, self.current = self.structure.draw(point, everything, rng)

    def sweeps(self, first: int, temperatures: NDArray[np.float64]) -> Moved:
        before, accepted = self.hidden, 1.0
        for sweep in range(len(temperatures)):
            before = self.hidden
            self.hidden = np.array(before, dtype=np.int64)
            number = first + sweep + 1
            key = key_of(np.random.SeedSequence([self.shared.seed, self.number, number]))
            accepted = self.propose(self.prior.update(self.current), key)
            self._count()
        return Moved(float(np.mean(before != self.hidden)), accepted)

    def _count(self) -> None:
        self.current = self.structure.record(self.counted(), 0.0, self.structure.total_weight)

    def memory(self) -> Memory:
        return {}

    def restore(self, memory: Memory) -> None:
        self.hidden = self.checked({"hidden": np.asarray(self.hidden)})
        self._count()
