"""What a stochastic run has found: a model that moves in small steps, and the mean of where it has been."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.records import build_record
from subchain.core.statistics import Statistics
from subchain.inference.run.loop import Memory
from subchain.inference.run.posterior import ModelPosterior, Point
from subchain.inference.run.problem import Problem
from subchain.inference.stochastic.boundaries import OpenBoundary

if TYPE_CHECKING:
    from subchain.inference.stochastic.updates import Stochastic

Array = NDArray[np.float64]


class IncrementalModel:
    """What a stochastic run has found: a model that moves, and what is needed to go on."""

    def __init__(self, problem: Problem, algorithm: Stochastic, statistics: Statistics, prior: ModelPosterior) -> None:
        self.present = prior
        self.algorithm = algorithm
        self.chain = prior.chain.incremental(statistics.initial, statistics.pairs)
        self.emission = prior.emission.incremental(statistics.emission)
        self.n_observations = float(problem.whole.data.n_observations)
        self.averages = Averages() if algorithm.average else None
        self.update = 0
        #: Sum of the log normalisers since the last report, and the number of observations behind it.
        self.since = np.zeros(2)
        self.companions: list[Any] = []
        self._known: dict[str, Any] = {}

    def moved(self, updates: int = 1) -> None:
        """More updates are done: what was spelt out is out of date."""
        self.update += updates
        self._known.clear()

    def report(self) -> float:
        """Take part in the average; the objective since the last report."""
        if self.averages is not None:
            self.averages.add(self.statistics)
            self._known = {"statistics": self.statistics}
        objective = self.since[0] / max(self.since[1], 1.0)
        self.since = np.zeros(2)
        return float(objective)

    @property
    def statistics(self) -> Statistics:
        if "statistics" not in self._known:
            self._known["statistics"] = Statistics(
                self.chain.initial.copy(), self.chain.pairs.copy(), self.emission.sums(), 0.0, self.n_observations
            )
        found: Statistics = self._known["statistics"]
        return found

    @property
    def reported(self) -> Statistics:
        if self.averages is None:
            return self.statistics
        if "reported" not in self._known:
            self._known["reported"] = self.averages.mean(self.statistics)
        found: Statistics = self._known["reported"]
        return found

    @property
    def point(self) -> Point:
        if "point" not in self._known:
            self._known["point"], _ = self.algorithm.point(self.present.update(self.reported), self.reported, None)
        found: Point = self._known["point"]
        return found

    @property
    def prior(self) -> ModelPosterior | None:
        return self.present if self.present.is_learned else None

    def update_hyperparameters(self, rate: float, surplus: tuple[Array, Array] | None) -> None:
        """Move what is learned of the prior; `surplus` is what `Excerpt` has to say of moves that hardly happen."""
        chain, emission = self.present.chain, self.present.emission
        if surplus is not None:
            chain = chain.observe(*surplus, rate)
        chain = chain.update_hyperparameters(self.chain.initial, self.chain.pairs, rate)
        if emission.is_learned:
            emission = emission.update_hyperparameters(self.emission.sums(), rate)
            self.emission.adopt(emission)
        self.present = ModelPosterior(chain, emission)
        self.chain.adopt(chain)
        self._known.clear()

    def leap(self, prior: ModelPosterior, statistics: Statistics) -> None:
        """Go on with other statistics under another prior."""
        self.present = prior
        self.chain = prior.chain.incremental(statistics.initial, statistics.pairs)
        self.emission = prior.emission.incremental(statistics.emission)
        if self.averages is not None:
            self.averages = Averages()
        self._known.clear()

    @property
    def memory(self) -> Memory:
        memory: Memory = {"update": np.array(self.update), "since": self.since.copy()}
        for companion in (*self.companions, self.averages):
            if companion is not None:
                memory |= companion.memory()
        return memory | {f"emission.{key}": array for key, array in self.emission.memory().items()}

    def kept(self) -> None:
        """A checkpoint has been written."""
        for companion in self.companions:
            if isinstance(companion, OpenBoundary):
                companion.kept()

    def restore(self, memory: Memory, statistics: Statistics) -> None:
        self.update, self.since = int(memory["update"]), np.array(memory["since"])
        own = {key.removeprefix("emission."): array for key, array in memory.items() if key.startswith("emission.")}
        self.emission.restore(own)
        if self.averages is not None:
            self.averages.restore(memory, statistics)


class Averages:
    """Mean of the statistics over about the last half of a run of unknown length.

    Two sums are kept, over the reports since the last power of two and over those between it and the one before.
    """

    def __init__(self) -> None:
        self.reports = 0
        self.sums: list[tuple[int, Statistics | None]] = [(0, None), (0, None)]

    def add(self, statistics: Statistics) -> None:
        """Another report."""
        self.reports += 1
        if self.reports & (self.reports - 1) == 0:
            self.sums = [self.sums[1], (0, None)]
        count, total = self.sums[1]
        self.sums[1] = count + 1, statistics if total is None else total + statistics

    def mean(self, latest: Statistics) -> Statistics:
        """The mean, or the latest statistics before there is one."""
        known = [(count, total) for count, total in self.sums if total is not None]
        if not known:
            return latest
        total = known[0][1]
        for _, more in known[1:]:
            total = total + more
        mean = total.scale(1.0 / sum(count for count, _ in known))
        mean.n_observations = latest.n_observations
        return mean

    def memory(self) -> Memory:
        """What has to be kept in a checkpoint."""
        memory: Memory = {"average.counts": np.array([self.reports, *(count for count, _ in self.sums)])}
        for number_, (_, total) in enumerate(self.sums):
            if total is not None:
                memory |= {f"average.{number_}.{key}": array for key, array in total.arrays().items()}
        return memory

    def restore(self, memory: Memory, like: Statistics) -> None:
        """The inverse of `memory`; sums have the form of `like`."""
        self.reports, *counts = (int(count) for count in memory["average.counts"])
        totals: list[Any] = [
            build_record(like.schema(), memory, f"average.{number_}.") if count else None
            for number_, count in enumerate(counts)
        ]
        self.sums = list(zip(counts, totals, strict=True))
