"""The results of a stochastic run: a posterior that changes a little at a time, and its average over the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from subchain.core.parts import IncrementalPosterior, Memory, Point, Posterior
from subchain.core.ranges import FINITE, WHOLE_NUMBERS, stored, stored_number
from subchain.core.statistics import Statistics
from subchain.core.stored_records import read_like
from subchain.inference.stochastic.rates import Falling
from subchain.structures.base import Minibatches

if TYPE_CHECKING:
    from subchain.inference.stochastic.settings import Stochastic


class StochasticResults:
    """What a stochastic run has found, and what it needs to go on.

    Parameters
    ----------
    algorithm : the algorithm whose run it is
    prior, statistics : where the run begins
    minibatches, rates : what else a checkpoint has to keep

    Attributes
    ----------
    model : the posterior, ready for small changes
    update : number of updates so far
    since : (2,) log normalisers, and numbers of observations, since the last report
    """

    #: Checkpoints leave out the point: it is the algorithm's point of the prior and the reported statistics.
    point_follows = True

    def __init__(
        self, algorithm: Stochastic, prior: Posterior, statistics: Statistics, minibatches: Minibatches, rates: Falling
    ) -> None:
        self.algorithm = algorithm
        self.minibatches = minibatches
        self.rates = rates
        self.model = IncrementalPosterior(prior, statistics)
        self.averages = Averages() if algorithm.average else None
        self.update = 0
        self.since = np.zeros(2)
        self._known: dict[str, Any] = {}

    def changed(self, updates: int = 0) -> None:
        """Note that updates were done, or the prior has changed: derived values are out of date."""
        self.update += updates
        self._known.clear()

    def report(self) -> float:
        """Take part in the average; return the mean log normaliser of an observation since the last report.

        A report before its time, at the end of a run, takes no part: a resumed run would not have it in the middle.
        The others also apply pending factors, so that checkpoints hold the statistics and no second form of them.
        """
        if self.update % self.algorithm.report_every == 0:
            self.model.apply_factors()
            self._known.clear()
            if self.averages is not None:
                self.averages.add(self.statistics)
        objective = self.since[0] / max(self.since[1], 1.0)
        self.since = np.zeros(2)
        return float(objective)

    @property
    def current_prior(self) -> Posterior:
        """The prior with its present hyperparameters."""
        return self.model.prior

    @property
    def statistics(self) -> Statistics:
        if "statistics" not in self._known:
            self._known["statistics"] = self.model.statistics()
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
            posterior = self.current_prior.update(self.reported)
            self._known["point"], _ = self.algorithm.point(posterior, self.reported, None)
        found: Point = self._known["point"]
        return found

    @property
    def prior(self) -> Posterior | None:
        return self.current_prior if self.current_prior.is_learned else None

    def update_hyperparameters(self, seed: list[int], rate: float) -> None:
        """Move the learned hyperparameters of the prior as far as the last updates have moved the statistics."""
        self.minibatches.observe(self.model, seed, rate)
        self.model.update_hyperparameters(rate)
        self.changed()

    def leap(self, prior: Posterior, statistics: Statistics) -> None:
        """Continue from other statistics under another prior."""
        self.model = IncrementalPosterior(prior, statistics)
        if self.averages is not None:
            self.averages = Averages()
        self.changed()

    @property
    def memory(self) -> Memory:
        memory: Memory = {"update": np.array(self.update), "since": self.since.copy()}
        for owner in (self.rates, self.minibatches, self.averages, self.model):
            if owner is not None:
                memory |= owner.memory()
        return memory

    def checkpointed(self) -> None:
        """Note that a checkpoint has been written."""
        self.minibatches.checkpointed()

    def restore(self, memory: Memory, statistics: Statistics) -> None:
        """Undo `memory`."""
        self.update, self.since = stored_number(memory, "update"), np.array(stored(memory, "since", FINITE, (2,)))
        self.rates.restore(memory, self.minibatches.signal(statistics.part(self.minibatches.watched)))
        self.minibatches.restore(memory)
        self.model.restore(memory)
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
        self.reports, *counts = stored(memory, "average.counts", WHOLE_NUMBERS, (3,)).tolist()
        totals = [
            read_like(memory, f"average.{number_}", like) if count else None for number_, count in enumerate(counts)
        ]
        self.sums = list(zip(counts, totals, strict=True))
