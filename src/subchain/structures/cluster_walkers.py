"""Markov chains of samplers over independent clusters of any structure: parameters and what is hidden in turn."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory
from subchain.core.ranges import ANYTHING, stored
from subchain.core.stored_records import read_like
from subchain.structures.base import Moved
from subchain.structures.clusters import ClusterStructure

Array = NDArray[np.float64]


class Sweeping(Protocol):
    """An algorithm that says what a sweep is: `Gibbs`."""

    def sweep(self, prior: Any, statistics: Any, structure: Any, rng: np.random.Generator) -> tuple[Any, Any]: ...


class ClusterWalkers:
    """Makes the walkers of a run; see `structures.base.Walkers`."""

    def __init__(self, structure: ClusterStructure, algorithm: Sweeping, prior: Any, seed: int) -> None:
        self.structure = structure
        self.algorithm = algorithm
        self.prior = prior
        self.seed = seed

    def start(self, n_chains: int, state: Any) -> list[None]:
        return [None] * n_chains

    def resume(self, n_chains: int, memory: Memory) -> NDArray[Any]:
        found = np.asarray(memory.get("hidden", []))
        return stored(memory, "hidden", ANYTHING, (n_chains, *(None for _ in found.shape[1:])))

    def walker(self, number: int, hidden: Any) -> ClusterWalker:
        return ClusterWalker(self, number, hidden)

    def map(self, task: Callable[[Any], Any], walkers: list[Any]) -> list[Any]:
        return [task(walker) for walker in walkers]


class ClusterWalker:
    """One Markov chain; `hidden` is what the structure has drawn for each cluster, and `current` its statistics."""

    side_by_side = False

    def __init__(self, shared: ClusterWalkers, number: int, hidden: Any) -> None:
        self.shared = shared
        self.number = number
        self.hidden: Any = hidden
        self.prior = shared.prior
        self.current: Any = None

    def begin(self, point: Any) -> None:
        """Draw what is hidden given parameters that are drawn given the statistics of the start."""
        self._sweep(self.shared.structure.statistics(point), 0)

    def _sweep(self, statistics: Any, sweep: int) -> None:
        rng = np.random.default_rng([self.shared.seed, self.number, sweep])
        self.hidden, self.current = self.shared.algorithm.sweep(self.prior, statistics, self.shared.structure, rng)

    def sweeps(self, first: int, temperatures: Array) -> Moved:
        before = self.hidden
        for sweep in range(len(temperatures)):
            before = self.hidden
            self._sweep(self.current, first + sweep + 1)
        return Moved(float(np.mean(np.asarray(before) != np.asarray(self.hidden))))

    def statistics(self) -> Any:
        return copy.deepcopy(self.current)

    def log_joint(self) -> float:
        found = self.prior.log_evidence(self.current)
        return math.nan if found is None else float(found)

    def kept(self, statistics: Any, sweep: int, *, with_hidden: bool) -> dict[str, Any]:
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
