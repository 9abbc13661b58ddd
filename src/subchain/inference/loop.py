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
        known = [value for value in self.trace.objective if not math.isnan(value)]
        return known[-1] if known else -math.inf


Watcher = Callable[[RunState], None]


def run(problem: Problem, algorithm: Algorithm, state: RunState, watch: Watcher) -> RunState:
    """Iterate until the algorithm has converged or has to stop; `watch` is told after every iteration."""
    schedule, discipline = algorithm.schedule(), algorithm.discipline()
    began = time.perf_counter() - (state.trace.seconds[-1] if state.trace.seconds else 0.0)
    try:
        while state.status is None:
            part = schedule.next(problem, state.iteration)
            context = None if state.statistics is None else discipline.context(state.statistics, part)
            posterior, surrogate = _stand_in(problem, algorithm, state, context)
            fresh = problem.statistics(surrogate, part)
            value = math.nan
            if posterior is not None:
                value = algorithm.objective(problem, posterior, state.point, fresh.log_normalizer)
            _take(problem, algorithm, state, discipline.combine(state.statistics, fresh, part), value)
            state.trace.seconds.append(time.perf_counter() - began)
            state.status = _status(problem, algorithm, state)
            watch(state)
    except KeyboardInterrupt:
        if state.statistics is None:
            raise
        state.status = "interrupted"
    return state


def _stand_in(
    problem: Problem, algorithm: Algorithm, state: RunState, context: Statistics | None
) -> tuple[ModelPosterior | None, Surrogate]:
    """The posterior (none before there are statistics) and the HMM that stands in for it."""
    if context is None:
        return None, state.point.surrogate()
    posterior = problem.prior.update(context)
    return posterior, algorithm.surrogate(posterior, state.point)


def _take(problem: Problem, algorithm: Algorithm, state: RunState, statistics: Statistics, value: float) -> None:
    """Make the new statistics the run's own, after looking for values that are not finite."""
    state.iteration += 1
    culprit = statistics.not_finite()
    if culprit is None:
        point, events = algorithm.point(problem.prior.update(statistics), statistics, state.point)
        culprit = point.not_finite()
    if culprit is not None or math.isinf(value):
        name, index = culprit or ("objective", -1)
        raise InferenceError(
            f"iteration {state.iteration}: {name} is not finite" + (f" (state {index})" if index >= 0 else "") + ". "
            "The run was stopped; its last good state is that of the iteration before. Look for observations of "
            "extreme size, or use a stronger prior."
        )
    _check_monotone(problem, algorithm, state, value)
    state.statistics, state.point = statistics, point
    state.trace.objective.append(value)
    for message in events:
        state.trace.tell(state.iteration, message)
    if problem.validation is not None:
        state.trace.validation.append(problem.held_out_score(point))


def _check_monotone(problem: Problem, algorithm: Algorithm, state: RunState, value: float) -> None:
    fall = state.objective - value
    if algorithm.monotone and problem.exact and fall > ROUNDING * max(abs(value), 1.0):
        raise InferenceError(
            f"iteration {state.iteration}: the objective of {type(algorithm).__name__} fell by {fall:.3g} "
            f"to {value:.10g}, which it never does unless rounding has destroyed the result. "
            "Rescale the data, or use a stronger prior."
        )


def _status(problem: Problem, algorithm: Algorithm, state: RunState) -> Status | None:
    known = [value for value in state.trace.objective if not math.isnan(value)]
    if len(known) > 1 and abs(known[-1] - known[-2]) <= algorithm.tolerance * abs(known[-1]):
        return "converged"
    scores = state.trace.validation
    if algorithm.patience is not None and scores and len(scores) - scores.index(max(scores)) > algorithm.patience:
        return "stopped_improving"
    if state.iteration >= algorithm.max_iter:
        return "max_iter"
    if algorithm.time_limit is not None and state.trace.seconds[-1] >= algorithm.time_limit:
        return "time_limit"
    return None
