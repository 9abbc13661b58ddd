"""What an inference algorithm has to say; the loop does the rest.

An algorithm makes a stepper, which does one iteration after the other, and says when a run is over and what it is
worth. `batch` and `stochastic` hold the two kinds of steppers that there are; what is left for an algorithm's own file
is the name of its surrogate, the point that it reports and its objective.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from subchain.core.components import Component
from subchain.core.statistics import Statistics
from subchain.engines.surrogate import Surrogate
from subchain.errors import InputError
from subchain.inference.run.posterior import ModelPosterior, Point
from subchain.inference.run.problem import Problem
from subchain.inference.run.trace import Status, Trace

if TYPE_CHECKING:
    from subchain.inference.run.loop import RunState, Stepper

#: Marginals of all positions: numbers, and the legal states they belong to, or empty offsets and states if all are.
Lists = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int32]]
#: Settings that say when a run ends.
STOPPING = ("max_iter", "max_updates", "max_passes", "tolerance", "time_limit", "patience")


class Algorithm(Component, ABC):
    """Base of all algorithms."""

    name: ClassVar[str]
    #: Whether hyperparameters that the user left open are to be flat.
    flat: ClassVar[bool]
    #: Whether what is learned of a prior is moved between iterations.
    updates_hyperparameters: ClassVar[bool] = True
    time_limit: float | None
    patience: int | None

    def itself(self) -> Algorithm:
        """The algorithm that runs: this one, or another that its settings ask for."""
        return self

    def check(self) -> None:
        """Raise an `InputError` if a setting is out of range."""
        if self.time_limit is not None:
            positive_number(self, "time_limit")
        if self.patience is not None:
            whole_number(self, "patience")

    def identity(self) -> dict[str, Any]:
        """Name and settings, without those that only say when to stop: a resumed run may change these."""
        settings = {key: value for key, value in self.get_params(deep=False).items() if key not in STOPPING}
        return {"algorithm": self.name} | settings

    @abstractmethod
    def stepper(self, problem: Problem, state: RunState) -> Stepper:
        """What does the iterations of a run that stands at `state`."""

    @abstractmethod
    def surrogate(self, posterior: ModelPosterior, point: Point) -> Surrogate:
        """The plain HMM that stands in for the posterior, or for the point, in the next pass."""

    @abstractmethod
    def point(
        self, posterior: ModelPosterior, statistics: Statistics, previous: Point | None
    ) -> tuple[Point, list[str]]:
        """The HMM to report for this posterior, and what was out of the ordinary in finding it."""

    @abstractmethod
    def n_iterations(self, problem: Problem) -> int | None:
        """How many iterations a run has at most; None if nobody knows."""

    def why_stop(self, problem: Problem, state: RunState) -> Status | None:
        """Why a run that stands at `state` ends now; None if it goes on."""
        trace, scores = state.trace, state.trace.validation
        if self.patience is not None and scores and len(scores) - scores.index(max(scores)) > self.patience:
            return "stopped_improving"
        limit = self.n_iterations(problem)
        if limit is not None and len(trace) >= limit:
            return "max_iter"
        if self.time_limit is not None and trace.seconds and trace.seconds[-1] >= self.time_limit:
            return "time_limit"
        return None

    def worth(self, problem: Problem, state: RunState, compared: bool) -> float:
        """How well a run has ended; what restarts are compared by if there are several."""
        known = state.trace.known_objectives()
        return known[-1] if known else -np.inf

    def kept_bytes(self, lengths: NDArray[np.int64], n_states: int) -> int:
        """Memory that a run takes for what it keeps of every position of sequences of these lengths."""
        return 0

    def marginals(self, problem: Problem, state: RunState) -> Lists | None:
        """What a run that stands at `state` believes of each training position; None if it keeps nothing."""
        return None

    def samples(self, state: RunState) -> Any:
        """Draws from the posterior that a run has kept; None if it makes none."""
        return None

    def complaint(self, trace: Trace, status: Status) -> str | None:
        """What a user should be warned of, given how the run ended."""
        return None


def whole_number(owner: Any, name: str, least: int = 1) -> None:
    """Raise an `InputError` unless a setting is a whole number of at least `least`."""
    value = getattr(owner, name)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{type(owner).__name__}: {name} must be a whole number of at least {least}, not {value!r}.")


def positive_number(owner: Any, name: str) -> None:
    """Raise an `InputError` unless a setting is a positive, finite number."""
    value = getattr(owner, name)
    if not isinstance(value, (int, float, np.number)) or not 0.0 < value < np.inf:
        raise InputError(f"{type(owner).__name__}: {name} must be positive and finite, not {value!r}.")


def number(owner: Any, name: str, least: float) -> None:
    """Raise an `InputError` unless a setting is a number of at least `least`."""
    value = getattr(owner, name)
    if not isinstance(value, (int, float, np.number)) or not value >= least:
        raise InputError(f"{type(owner).__name__}: {name} must be a number of at least {least:g}, not {value!r}.")
