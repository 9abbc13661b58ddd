"""Algorithms whose iterations visit all the data; in batch algorithms fresh statistics take the place of the old."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from subchain.core.statistics import Statistics
from subchain.engines.surrogate import Surrogate
from subchain.errors import InferenceError
from subchain.inference.run.algorithm import Algorithm, number, whole_number
from subchain.inference.run.interrupts import Postponed
from subchain.inference.run.loop import Known, RunState, Step
from subchain.inference.run.posterior import ModelPosterior, Point
from subchain.inference.run.problem import Problem
from subchain.inference.run.trace import Status, Trace
from subchain.inference.search.search import PASSES, Search, Trial

if TYPE_CHECKING:
    from subchain.inference.run.loop import Stepper

#: Rounding lets an objective that cannot fall appear to fall by this fraction.
ROUNDING = 1e-9


class Iterated(Algorithm):
    """Base of the algorithms that visit all the data in every iteration.

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
    """Base of the batch algorithms."""

    #: Whether the objective can never fall.
    monotone: ClassVar[bool]
    #: Whether parameters alone have an objective; else a run that starts at a model first learns what it expects.
    climbs_from_points: ClassVar[bool] = False

    def stepper(self, problem: Problem, state: RunState) -> Stepper:
        return Passes(problem, self)

    @abstractmethod
    def objective(
        self, prior: ModelPosterior, posterior: ModelPosterior | None, point: Point, log_normalizer: float
    ) -> float:
        """What the algorithm climbs, for the posterior or point whose surrogate gave this normaliser.

        A run that starts at given parameters has no posterior in its first iteration, if the algorithm can do without.
        """


class Passes:
    """Iterations that are passes over all the data."""

    def __init__(self, problem: Problem, algorithm: Batch) -> None:
        self.problem = problem
        self.algorithm = algorithm
        self.interruption = Postponed()

    def step(self, state: RunState) -> Step:
        problem, algorithm = self.problem, self.algorithm
        prior = state.results.prior or problem.prior
        posterior: ModelPosterior | None = None
        surrogate, before = state.point.surrogate(), state.statistics
        if before is None and not algorithm.climbs_from_points:
            before = problem.statistics(surrogate, problem.whole)
        if before is not None:
            posterior = prior.update(before)
            surrogate = algorithm.surrogate(posterior, state.point)
        statistics = self.expect(posterior, surrogate)
        objective = algorithm.objective(prior, posterior, state.point, statistics.log_normalizer)
        news = self._check_rise(state, objective)
        if prior.is_learned:
            prior = prior.update_hyperparameters(statistics)
        look = Search(problem, algorithm, state.seed, state.iteration + 1)
        settled_at = state.trace.settled_at(algorithm.tolerance, objective)
        if look.is_due(prior, statistics, settled_at=settled_at):
            best, found = look.improve(self.go_on(prior, statistics), self.attempt)
            if found or settled_at is None:  # a run that has settled, and finds nothing, stays where it is
                prior, statistics, objective = best.prior, best.statistics, best.objective
                self.adopt(best)
            news += found
        point, events = algorithm.point(prior.update(statistics), statistics, state.point)
        events += news
        results = Known(statistics, point, prior=prior if prior.is_learned else None)
        return Step(results, objective, events, [statistics, point], {})

    def release(self) -> None:
        """Nothing is held."""

    def go_on(self, prior: ModelPosterior, statistics: Statistics) -> Trial:
        """Where a few passes lead from here."""
        objective = -math.inf
        for _ in range(PASSES):
            posterior = prior.update(statistics)
            point = posterior.mean()
            statistics = self.expect(posterior, self.algorithm.surrogate(posterior, point))
            objective = self.algorithm.objective(prior, posterior, point, statistics.log_normalizer)
            prior = prior.update_hyperparameters(statistics)
        return Trial(objective, prior, statistics)

    def attempt(self, prior: ModelPosterior, statistics: Statistics) -> Trial:
        """Where a few passes lead from elsewhere."""
        return self.go_on(prior, statistics)

    def adopt(self, trial: Trial) -> None:
        """Go on where a trial has led."""

    def expect(self, posterior: ModelPosterior | None, surrogate: Surrogate) -> Statistics:
        """What is expected of all the data under a surrogate, which is that of a posterior or, if None, of a point."""
        return self.problem.statistics(surrogate, self.problem.whole)

    def _check_rise(self, state: RunState, objective: float) -> list[str]:
        """Refuse an objective that fell although it never does; tell of one that fell where it may."""
        known = state.trace.known_objectives()
        fall = known[-1] - objective if known else -math.inf
        if not self.algorithm.monotone or fall <= ROUNDING * max(abs(objective), 1.0):
            return []
        if self.problem.exact:
            raise InferenceError(
                f"iteration {state.iteration + 1}: the objective of {type(self.algorithm).__name__} fell by {fall:.3g} "
                f"to {objective:.10g}, which it never does unless rounding has destroyed the result. "
                "Rescale the data, or use a stronger prior."
            )
        return [f"the objective fell by {fall:.6g}, as it may where an update of the chain is approximate"]
