"""Markov chains of samplers over independent clusters of any structure: parameters and what is hidden in turn."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory, Point, Posterior
from subchain.core.ranges import ANYTHING, stored
from subchain.core.statistics import Statistics
from subchain.core.stored_records import read_like
from subchain.structures.base import Hidden, Moved, Result, Walker
from subchain.structures.clusters import ClusterStructure
from subchain.structures.settings import SamplingSettings

Array = NDArray[np.float64]


class ClusterWalkers:
    """Makes the walkers of a run; see `structures.base.Walkers`.

    Parameters
    ----------
    structure : the data
    algorithm, prior, seed : of the run
    kind : class of the walkers
    """

    def __init__(
        self, structure: ClusterStructure, algorithm: SamplingSettings, prior: Posterior, seed: int,
        kind: type[ClusterWalker] | None = None,
    ) -> None:  # fmt: skip
        self.structure = structure
        self.algorithm = algorithm
        self.prior = prior
        self.seed = seed
        self.kind = ClusterWalker if kind is None else kind

    def start(self, n_chains: int, point: Point, memory: Memory) -> list[Hidden]:
        """Return nothing yet: `ClusterWalker.begin` draws it."""
        return [np.empty(0, dtype=np.int64)] * n_chains

    def resume(self, n_chains: int, memory: Memory) -> Hidden:
        found = np.asarray(memory.get("hidden", []))
        return stored(memory, "hidden", ANYTHING, (n_chains, *(None for _ in found.shape[1:])))

    def walker(self, number: int, hidden: Hidden) -> ClusterWalker:
        return self.kind(self, number, hidden)

    def map(self, task: Callable[[Walker], Result], walkers: list[Walker]) -> list[Result]:
        return [task(walker) for walker in walkers]


class ClusterWalker:
    """One Markov chain; `hidden` is what the structure has drawn for each cluster, and `current` its statistics."""

    side_by_side = False

    def __init__(self, shared: ClusterWalkers, number: int, hidden: Hidden) -> None:
        self.shared = shared
        self.structure = shared.structure
        self.number = number
        self.hidden = hidden
        self.prior = shared.prior
        self.current: Statistics

    def begin(self, point: Point) -> None:
        """Draw what is hidden given parameters that are drawn given the statistics of the start."""
        self._sweep(self.shared.structure.statistics(point), 0)

    def _sweep(self, statistics: Statistics, sweep: int) -> None:
        rng = np.random.default_rng([self.shared.seed, self.number, sweep])
        self.hidden, self.current = self.shared.algorithm.sweep(self.prior, statistics, self.shared.structure, rng)

    def sweeps(self, first: int, temperatures: Array) -> Moved:
        before = self.hidden
        for sweep in range(len(temperatures)):
            before = self.hidden
            self._sweep(self.current, first + sweep + 1)
        return Moved(float(np.mean(before != self.hidden)))

    def statistics(self) -> Statistics:
        return copy.deepcopy(self.current)

    def log_joint(self) -> float:
        found = self.prior.log_evidence(self.current)
        return math.nan if found is None else float(found)

    def kept(self, statistics: Statistics, sweep: int, *, with_hidden: bool) -> dict[str, NDArray[Any] | float]:
        return {"hidden": self.hidden} if with_hidden else {}

    def tally_shape(self) -> tuple[int, ...]:
        return (0,)

    def tally_starts(self) -> NDArray[np.int64]:
        return np.empty(0, dtype=np.int64)

    def tally(self, out: NDArray[Any]) -> None:
        """Do nothing: values of what is hidden are not counted."""

    def measures(self) -> dict[str, float]:
        return {}

    def memory(self) -> Memory:
        return {f"current.{self.number}.{key}": array for key, array in self.current.arrays().items()}

    def restore(self, memory: Memory) -> None:
        like = self.shared.structure.statistics(self.prior.mean())
        self.current = read_like(memory, f"current.{self.number}", like)
