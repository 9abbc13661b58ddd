"""Algorithms whose iterations visit all the data; in batch algorithms fresh statistics take the place of the old."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from subchain.core.checks import number, whole_number
from subchain.core.parts import Point, Posterior
from subchain.core.statistics import Rounds, Statistics
from subchain.errors import InferenceError
from subchain.inference.run.algorithm import Algorithm
from subchain.inference.run.interrupts import Postponed
from subchain.inference.run.loop import Known, RunState, Step, Trial
from subchain.inference.run.problem import Problem
from subchain.inference.run.trace import Status, Trace

if TYPE_CHECKING:
    from subchain.inference.run.loop import Stepper

#: Rounding lets an objective that cannot fall appear to fall by this fraction; by the second one, where large terms
#: cancel in it, as those of large counts do.
ROUNDING, COARSE_ROUNDING = 1e-9, 1e-6
#: Passes that a proposal of a search is given before it is judged.
PASSES = 2


class Iterated(Algorithm):
    """Base of the algorithms that visit all the data in every iteration.

    Parameters
    ----------
    max_iter : int
        Largest number of iterations.
    tolerance : float
        The run has converged when an iteration changes the objective by less than this fraction.
    time_limit : float, optional
        Seconds after which a call of `fit` ends with what it has; all its restarts count, an earlier call that it
        resumes does not.
    patience : int, optional
        With validation data: iterations without a better held-out score after which the run ends.
    search : bool
        Whether to look for better states once the run has settled: two states are merged, a third is split, and the
        result is kept if the objective rises. The trace says what was tried. With `HDP` their number may change.
    """

    status_at_limit = "max_iter"

    def __init__(
        self,
        max_iter: int = 200,
        tolerance: float = 1e-6,
        time_limit: float | None = None,
        patience: int | None = None,
        search: bool = True,
    ) -> None:
        self.search = search
        self.max_iter = max_iter
        self.tolerance = tolerance
        self.time_limit = time_limit
        self.patience = patience

    def check(self) -> None:
        super().check()
        whole_number(self, "max_iter")
        number(self, "tolerance", 0.0)

    def n_iterations(self, problem: Problem) -> int | None:
        return self.max_iter

    def why_stop(self, problem: Problem, state: RunState) -> Status | None:
        if state.trace.has_settled(self.tolerance) and self.may_settle(state):
            return "converged"
        return super().why_stop(problem, state)

    def may_settle(self, state: RunState) -> bool:
        """Whether an objective that hardly changes means that the run has arrived."""
        return True

    def complaint(self, trace: Trace, status: Status) -> str | None:
        if status != "max_iter" or not self.tolerance > 0.0:
            return None
        return (
            f"{type(self).__name__} stopped after {len(trace)} iterations before it settled; raise max_iter, or loosen "
            f"tolerance={self.tolerance:g}."
        )


class Batch(Iterated):
    """Base of the algorithms whose iterations replace the statistics: S = expected statistics under the surrogate."""

    #: Whether the objective never falls where the updates of all parts are exact.
    monotone: ClassVar[bool]
    #: Whether parameters alone have an objective; else a run that starts at a model first makes statistics from it.
    climbs_from_points: ClassVar[bool] = False

    @property
    def learns_ends(self) -> bool:
        return True

    def stepper(self, problem: Problem, state: RunState) -> Stepper:
        return Passes(problem, self)

    @abstractmethod
    def objective(self, prior: Any, posterior: Any, point: Any, log_normalizer: float) -> float:
        """Return the objective of the posterior, or of the point, whose weights gave this log normaliser.

        A run that starts at given parameters has no posterior in its first iteration, if the algorithm can do without.
        """


class Passes:
    """The stepper of batch algorithms: an iteration is a pass over all the data."""

    in_place = False

    def __init__(self, problem: Problem, algorithm: Batch) -> None:
        self.problem = problem
        self.algorithm = algorithm
        self.interruption = Postponed()

    def step(self, state: RunState) -> Step:
        problem, algorithm = self.problem, self.algorithm
        prior: Posterior = state.results.prior or problem.prior
        posterior: Posterior | None = None
        weights, before = state.point, state.statistics
        if before is None and not algorithm.climbs_from_points:
            before = problem.structure.statistics(weights)
        if before is not None:
            posterior = prior.update(before)
            weights = algorithm.weights(posterior, state.point)
        statistics = self.expect(posterior, weights)
        objective = algorithm.objective(prior, posterior, state.point, statistics.log_normalizer)
        events = self._check_rise(state, objective)
        if prior.is_learned:
            prior = prior.update_hyperparameters(statistics)
        return self.report(prior, statistics, objective, state.point, events)

    def expect(self, posterior: Posterior | None, weights: Point) -> Statistics:
        """Return expected statistics under the weights of a posterior or, if that is None, of a point."""
        found: Statistics = self.problem.structure.statistics(weights)
        return found

    def report(
        self, prior: Posterior, statistics: Statistics, objective: float, previous: Point, events: list[str]
    ) -> Step:
        """Return the step of an iteration that ended with these statistics."""
        point, news = self.algorithm.point(prior.update(statistics), statistics, previous)
        results = Known(statistics, point, prior=prior if prior.is_learned else None)
        return Step(results, objective, news + events, [statistics, point], {})

    def trials(self, state: RunState, step: Step) -> PassTrials:
        return PassTrials(self, state, step)

    def release(self) -> None:
        """No files are open."""

    def _check_rise(self, state: RunState, objective: float) -> list[str]:
        """Raise an error if an objective fell that never does; return an event for one that fell where it may."""
        known = state.trace.known_objectives()
        fall = known[-1] - objective if known else -math.inf
        size, structure = max(abs(objective), 1.0), self.problem.structure
        rounding = structure.rounding if isinstance(structure, Rounds) else 0.0
        if not self.algorithm.monotone or fall <= max(ROUNDING, rounding / 100.0) * size:
            return []
        if fall <= max(COARSE_ROUNDING, rounding) * size:
            return [f"the objective fell by {fall:.3g}, by rounding"]
        if self.problem.exact:
            raise InferenceError(
                f"iteration {state.iteration + 1}: the objective of {type(self.algorithm).__name__} fell by {fall:.3g} "
                f"to {objective:.10g}, which it never does unless rounding has destroyed the result. "
                "Rescale the data, or use a stronger prior."
            )
        return [f"the objective fell by {fall:.6g}, as it may where an update of the chain is approximate"]


class PassTrials:
    """What passes offer to a search over the number of states; see `Trials`."""

    every, advances = 10, True

    def __init__(self, passes: Passes, state: RunState, step: Step) -> None:
        self.passes = passes
        self.previous = state.point
        self.step = step
        self.prior: Posterior = step.results.prior or passes.problem.prior
        self.statistics: Any = step.results.statistics
        tolerance, n_observations = passes.algorithm.tolerance, passes.problem.structure.n_observations
        self.settled_at = state.trace.settled_at(tolerance, step.objective)
        self.begins_to_settle = state.trace.begins_to_settle(tolerance, step.objective)
        self.visited = float(n_observations) * (state.iteration + 1)
        self.attempt_visits = float(n_observations) * PASSES

    @contextmanager
    def open(self) -> Iterator[None]:
        yield

    def here(self) -> Trial:
        return self._run(self.prior, self.statistics)

    def attempt(self, prior: Posterior, statistics: Statistics) -> Trial:
        return self._run(prior, statistics)

    def _run(self, prior: Posterior, statistics: Statistics) -> Trial:
        objective, algorithm = -math.inf, self.passes.algorithm
        for _ in range(PASSES):
            posterior = prior.update(statistics)
            point, _ = algorithm.point(posterior, statistics, self.previous)
            statistics = self.passes.expect(posterior, algorithm.weights(posterior, point))
            objective = algorithm.objective(prior, posterior, point, statistics.log_normalizer)
            prior = prior.update_hyperparameters(statistics)
        return Trial(objective, prior, statistics)

    def keep(self, trial: Trial) -> Trial:
        return trial

    def adopt(self, trial: Trial, folded: list[tuple[int, int]]) -> Step:
        return self.passes.report(trial.prior, trial.statistics, trial.objective, self.previous, [])

    def stay(self) -> None:
        """Nothing has changed."""
