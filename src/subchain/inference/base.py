"""What an inference algorithm has to say; the loop does the rest.

An algorithm names its schedule, its discipline, its surrogate, its objective and the point it reports. It never touches
data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from subchain.components import Component
from subchain.engines.surrogate import Surrogate
from subchain.errors import InputError
from subchain.inference.disciplines import Discipline, Replace
from subchain.inference.posterior import ModelPosterior, Point
from subchain.inference.problem import Problem
from subchain.inference.schedules import Everything, Schedule
from subchain.statistics import Statistics

#: Settings that say when a run ends.
STOPPING = ("max_iter", "tolerance", "time_limit", "patience")


class Algorithm(Component, ABC):
    """Base of the batch algorithms: every iteration visits all the data and replaces all statistics.

    Parameters
    ----------
    max_iter : int
        Largest number of iterations.
    tolerance : float
        The run has converged when an iteration changes the objective by less than this fraction.
    time_limit : float, optional
        Seconds after which the run ends with what it has.
    patience : int, optional
        With validation data: iterations without a better held-out score after which the run ends.
    """

    name: ClassVar[str]
    #: Whether hyperparameters that the user left open are to be flat.
    flat: ClassVar[bool]
    #: Whether the objective can never fall.
    monotone: ClassVar[bool]

    def __init__(
        self,
        max_iter: int = 200,
        tolerance: float = 1e-6,
        time_limit: float | None = None,
        patience: int | None = None,
    ) -> None:
        self.max_iter = max_iter
        self.tolerance = tolerance
        self.time_limit = time_limit
        self.patience = patience

    def check(self) -> None:
        """Raise an `InputError` if a setting is out of range."""
        name = type(self).__name__
        if not isinstance(self.max_iter, (int, np.integer)) or self.max_iter < 1:
            raise InputError(f"{name}: max_iter must be a whole number of at least 1, not {self.max_iter!r}.")
        if not self.tolerance >= 0.0:
            raise InputError(f"{name}: tolerance must be at least 0, not {self.tolerance!r}.")
        if self.time_limit is not None and not self.time_limit > 0.0:
            raise InputError(f"{name}: time_limit must be positive, not {self.time_limit!r}.")
        if self.patience is not None and self.patience < 1:
            raise InputError(f"{name}: patience must be at least 1, not {self.patience!r}.")

    def identity(self) -> dict[str, Any]:
        """Name and settings, without those that only say when to stop: a resumed run may change these."""
        settings = {key: value for key, value in self.get_params().items() if key not in STOPPING}
        return {"algorithm": self.name} | settings

    def schedule(self) -> Schedule:
        """Which parts of the data are visited, in which order."""
        return Everything()

    def discipline(self) -> Discipline:
        """How fresh statistics enter the old ones."""
        return Replace()

    @abstractmethod
    def surrogate(self, posterior: ModelPosterior, point: Point) -> Surrogate:
        """The plain HMM that stands in for the posterior in the next pass."""

    @abstractmethod
    def point(
        self, posterior: ModelPosterior, statistics: Statistics, previous: Point | None
    ) -> tuple[Point, list[str]]:
        """The HMM to report for this posterior, and what was out of the ordinary in finding it."""

    @abstractmethod
    def objective(
        self, problem: Problem, posterior: ModelPosterior | None, point: Point, log_normalizer: float
    ) -> float | None:
        """What the algorithm climbs, for the posterior or point whose surrogate gave this normaliser.

        A run that starts at given parameters has no posterior in its first iteration; None where there is then no
        objective either.
        """
