"""What an inference algorithm has to say; the loop does the rest.

An algorithm makes a stepper, which does one iteration after the other, and says when a run ends and how it is judged.
There are four kinds of steppers: passes over all the data (`batch`), updates from minibatches (`stochastic`), visits of
clusters (`collapsed`) and sweeps of a sampler (`sampling`). An algorithm's own file says which weights stand in for the
posterior, what it reports and its objective.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from subchain.core.checks import positive_number, truth_value, whole_number
from subchain.core.components import Component
from subchain.core.parts import Point, Posterior, Treatment
from subchain.core.statistics import Statistics
from subchain.inference.run.problem import Problem
from subchain.inference.run.trace import Status, Trace

if TYPE_CHECKING:
    from subchain.emissions import Emission
    from subchain.inference.run.loop import RunState, Stepper

#: Marginals of all positions: numbers, and the legal states they belong to, or empty offsets and states if all are.
Lists = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int32]]
#: Files of the state of a run: none, files of its own, or one that the next run overwrites.
Files = Literal["none", "own", "shared"]
#: Settings that say when a run ends.
STOPPING = ("max_iter", "max_updates", "max_passes", "tolerance", "time_limit", "patience")


class Algorithm(Component, ABC):
    """Base of all algorithms."""

    name: ClassVar[str]
    #: Whether objectives of several runs can be compared; those of minibatches differ by more than runs do.
    comparable: ClassVar[bool] = True
    #: Whether hyperparameters that the user left open are to be flat.
    flat: ClassVar[bool]
    #: Whether the weights of a pass are those of the point that was reported before it.
    weighs_points: ClassVar[bool] = False
    #: Whether what is learned of a prior is moved between iterations.
    updates_hyperparameters: ClassVar[bool] = True
    #: Whether a run ends with as many states as it begins with.
    keeps_states: ClassVar[bool] = True
    #: Treatment of parameters with a hierarchical prior; None if the algorithm cannot learn such a prior.
    hierarchy_treatment: ClassVar[Treatment | None] = None
    #: Status of a run that has done as many iterations as it may.
    status_at_limit: ClassVar[Status] = "completed"
    time_limit: float | None
    patience: int | None
    #: Whether a run looks for better states than those that it converges to.
    search: bool = True

    @property
    def needs_matrix(self) -> bool:
        """Whether the algorithm works with all K² transitions, even if most of them are impossible."""
        return False

    @property
    def learns_ends(self) -> bool:
        """Whether the algorithm can learn the probabilities of ending (`Dirichlet(final="learned")`)."""
        return False

    @property
    def files(self) -> Files:
        """Where a run keeps parts of its state that take no memory."""
        return "none"

    def suited_to(self, emission: Emission) -> Algorithm:
        """Return the algorithm with settings that were left open chosen for a family of emissions."""
        return self

    def measured(self, trace: Trace) -> set[str]:
        """Names of the measures that every iteration adds to a trace of a run."""
        return set(trace.measures)

    def check(self) -> None:
        """Raise an `InputError` if a setting is out of range."""
        truth_value(self, "search")
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
    def weights(self, posterior: Any, point: Any) -> Any:
        """Return the weights of the parts that stand in for the posterior, or for the point, in the next pass."""

    def point(self, posterior: Posterior, statistics: Statistics, previous: Point | None) -> tuple[Any, list[str]]:
        """Return the parameters to report for this posterior, by default its mean, and events worth reporting."""
        return posterior.mean(), []

    @abstractmethod
    def n_iterations(self, problem: Problem) -> int | None:
        """Return the largest number of iterations of a run; None if no limit is known beforehand."""

    def visited(self, problem: Problem) -> float:
        """Return the number of observations that an iteration visits."""
        return float(problem.structure.n_observations)

    @property
    def may_end_early(self) -> bool:
        """Whether a run may end before its last iteration because it has arrived."""
        return self.status_at_limit == "max_iter" or self.patience is not None

    def is_at_limit(self, problem: Problem, trace: Trace) -> bool:
        """Return whether a run with this trace has done as much as it may."""
        limit = self.n_iterations(problem)
        return limit is not None and len(trace) >= limit

    def why_stop(self, problem: Problem, state: RunState) -> Status | None:
        """Why a run that stands at `state` ends now; None if it goes on."""
        trace, scores = state.trace, state.trace.validation
        if self.patience is not None and scores and len(scores) - scores.index(max(scores)) > self.patience:
            return "stopped_improving"
        if self.is_at_limit(problem, trace):
            return self.status_at_limit
        if time.perf_counter() >= state.deadline:
            return "time_limit"
        return None

    def final_objective(self, state: RunState) -> float:
        """Return the objective by which a run that has ended is compared with other restarts."""
        known = state.trace.known_objectives()
        return known[-1] if known else -np.inf

    def kept_bytes(self, lengths: NDArray[np.int64], n_states: int) -> int:
        """Memory that a run takes for what it keeps of every position of sequences of these lengths."""
        return 0

    def working_bytes(self, lengths: NDArray[np.int64], n_states: int, n_jobs: int, *, has_symbols: bool) -> int | None:
        """Memory of the tables that an iteration works in; None if these are those of a pass over all the data."""
        return None

    def marginals(self, problem: Problem, state: RunState) -> Lists | None:
        """What a run that stands at `state` believes of each training position; None if it keeps nothing."""
        return None

    def samples(self, state: RunState) -> Any:
        """Draws from the posterior that a run has kept; None if it makes none."""
        return None

    def complaint(self, trace: Trace, status: Status) -> str | None:
        """What a user should be warned of, given how the run ended."""
        return None
