"""The loop that every algorithm runs in.

    part      = schedule.next()                       which part of the data now
    context   = discipline.context(S, part)           S, or S without what the part put in
    surrogate = prior ⊕ context                       a plain HMM
    fresh     = engine.statistics(surrogate, part)    forward-backward and friends
    S         = discipline.combine(S, fresh)

and around it what every run needs: objective, held-out score, stopping, events, checkpoints, progress. The state of a
run is one small object; a run that is resumed from it does what the first would have done, to the bit.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable

from subchain.engines.surrogate import Surrogate
from subchain.errors import InferenceError
from subchain.inference.base import Algorithm
from subchain.inference.posterior import ModelPosterior, Point
from subchain.inference.problem import Problem
from subchain.inference.trace import Status, Trace
from subchain.records import Record
from subchain.statistics import Statistics

#: Rounding lets an objective that cannot fall appear to fall by this fraction.
ROUNDING = 1e-9


@dataclasses.dataclass
class RunState:
    """Where a run stands.

    Attributes
    ----------
    statistics : what the next surrogate is made from; None before the first pass of a run that starts at a point
    point : the HMM that would be reported now
    trace : the course of the run so far
    iteration : number of iterations done
    status : why the run ended, or None while it goes on
    """

    statistics: Statistics | None
    point: Point
    trace: Trace = dataclasses.field(default_factory=Trace)
    iteration: int = 0
    status: Status | None = None

    @property
    def objective(self) -> float:
        """The latest objective; −inf before there is one."""
        known = self.trace.known_objectives()
        return known[-1] if known else -math.inf


AfterIteration = Callable[[RunState], None]


def run(problem: Problem, algorithm: Algorithm, state: RunState, after_iteration: AfterIteration) -> RunState:
    """Iterate until the algorithm has converged or has to stop.

    An interruption (Ctrl-C) ends the run with the state of the last whole iteration.
    """
    schedule, discipline = algorithm.schedule(), algorithm.discipline()
    began = time.perf_counter() - (state.trace.seconds[-1] if state.trace.seconds else 0.0)
    try:
        while state.status is None:
            part = schedule.next(problem, state.iteration)
            context = None if state.statistics is None else discipline.context(state.statistics, part)
            posterior, surrogate = _surrogate(problem, algorithm, state, context)
            fresh = problem.statistics(surrogate, part)
            objective = algorithm.objective(problem, posterior, state.point, fresh.log_normalizer)
            if objective is not None:
                _check_objective(problem, algorithm, state, objective)
            statistics = discipline.combine(state.statistics, fresh, part)
            later = _advance(problem, algorithm, state, statistics, objective, began)
            vars(state).update(vars(later))  # at once: an interruption finds the whole iteration or none of it
            after_iteration(state)
    except KeyboardInterrupt:
        if state.iteration == 0:
            raise
        state.status = "interrupted"
    return state


def _surrogate(
    problem: Problem, algorithm: Algorithm, state: RunState, context: Statistics | None
) -> tuple[ModelPosterior | None, Surrogate]:
    """The posterior (none before there are statistics) and the HMM that stands in for it."""
    if context is None:
        return None, state.point.surrogate()
    posterior = problem.prior.update(context)
    return posterior, algorithm.surrogate(posterior, state.point)


def _check_objective(problem: Problem, algorithm: Algorithm, state: RunState, objective: float) -> None:
    """Refuse an objective that is not finite, or one that fell although it never does."""
    iteration = state.iteration + 1
    if not math.isfinite(objective):
        raise _not_finite(iteration, "the objective")
    fall = state.objective - objective
    if algorithm.monotone and problem.exact and fall > ROUNDING * max(abs(objective), 1.0):
        raise InferenceError(
            f"iteration {iteration}: the objective of {type(algorithm).__name__} fell by {fall:.3g} "
            f"to {objective:.10g}, which it never does unless rounding has destroyed the result. "
            "Rescale the data, or use a stronger prior."
        )


def _advance(
    problem: Problem,
    algorithm: Algorithm,
    state: RunState,
    statistics: Statistics,
    objective: float | None,
    began: float,
) -> RunState:
    """The state after an iteration that ended with these statistics."""
    iteration, trace = state.iteration + 1, state.trace.copy()
    _check_finite(iteration, statistics)
    point, events = algorithm.point(problem.prior.update(statistics), statistics, state.point)
    _check_finite(iteration, point)
    trace.objective.append(math.nan if objective is None else objective)
    for message in events:
        trace.tell(iteration, message)
    if problem.validation is not None:
        trace.validation.append(problem.held_out_score(point))
    trace.seconds.append(time.perf_counter() - began)
    status = why_stop(algorithm, trace)
    return dataclasses.replace(
        state, statistics=statistics, point=point, trace=trace, iteration=iteration, status=status
    )


def _check_finite(iteration: int, record: Record) -> None:
    culprit = record.not_finite()
    if culprit is not None:
        name, state = culprit
        raise _not_finite(iteration, name + (f" of state {state}" if state >= 0 else ""))


def _not_finite(iteration: int, what: str) -> InferenceError:
    return InferenceError(
        f"iteration {iteration}: {what} is not finite. The run was stopped; a checkpoint holds the last good one. "
        "Look for observations of extreme size, or use a stronger prior."
    )


def why_stop(algorithm: Algorithm, trace: Trace) -> Status | None:
    """Why a run with this trace ends now; None if it goes on."""
    known = trace.known_objectives()
    if len(known) > 1 and abs(known[-1] - known[-2]) <= algorithm.tolerance * abs(known[-1]):
        return "converged"
    scores = trace.validation
    if algorithm.patience is not None and scores and len(scores) - scores.index(max(scores)) > algorithm.patience:
        return "stopped_improving"
    if len(trace) >= algorithm.max_iter:
        return "max_iter"
    if algorithm.time_limit is not None and trace.seconds[-1] >= algorithm.time_limit:
        return "time_limit"
    return None
