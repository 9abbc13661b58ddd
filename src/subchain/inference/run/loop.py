"""The loop that every run goes through.

A stepper does the inference, an iteration at a time; around it is what every run needs: objective, held-out score,
stopping, events, checkpoints, progress. The state of a run is one small object; a run that is resumed from it does what
the first would have done, to the bit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from subchain.core.parts import Memory, Point, Posterior
from subchain.core.records import Record
from subchain.core.statistics import Statistics
from subchain.errors import InferenceError
from subchain.inference.run.interrupts import AbortedError, Postponed
from subchain.inference.run.problem import Problem
from subchain.inference.run.trace import Status, Trace

if TYPE_CHECKING:
    from subchain.inference.run.algorithm import Algorithm


class Results(Protocol):
    """What a run has found so far; properties may be computed when they are read.

    Attributes
    ----------
    statistics : what the next surrogate is made from; None before the first pass of a run that starts at a point
    reported : the statistics that the point is made from, in general the same
    point : the parameters that would be reported now
    prior : the prior that goes with the statistics, where the run has changed it; None if it is the problem's
    memory : whatever else the next iteration needs, by name
    """

    @property
    def statistics(self) -> Statistics | None: ...
    @property
    def reported(self) -> Statistics | None: ...
    @property
    def point(self) -> Point: ...
    @property
    def prior(self) -> Posterior | None: ...
    @property
    def memory(self) -> Memory: ...


@dataclasses.dataclass
class Known:
    """Results that are there already."""

    statistics: Statistics | None
    point: Point
    memory: Memory = dataclasses.field(default_factory=dict)
    average: Statistics | None = None
    prior: Posterior | None = None

    @property
    def reported(self) -> Statistics | None:
        return self.statistics if self.average is None else self.average


class Step(NamedTuple):
    """What an iteration gave: results, objective, events, records that must be finite, and measures for the trace."""

    results: Results
    objective: float | None
    events: list[str]
    checked: list[Record]
    measures: dict[str, float]


@dataclasses.dataclass
class RunState:
    """Where a run stands.

    Attributes
    ----------
    results : what it has found
    trace : the course of the run so far
    iteration : number of iterations done
    status : why the run ended, or None while it goes on
    seed : where the run's random numbers come from
    deadline : time of `time.perf_counter` at which the run ends if nothing else has ended it; not kept in checkpoints
    """

    results: Results
    trace: Trace = dataclasses.field(default_factory=Trace)
    iteration: int = 0
    status: Status | None = None
    seed: int = 0
    deadline: float = math.inf

    @property
    def statistics(self) -> Statistics | None:
        return self.results.statistics

    @property
    def point(self) -> Point:
        return self.results.point


class Trial(NamedTuple):
    """Where a few passes lead from given statistics: objective, prior, statistics, and what is needed to go on."""

    objective: float
    prior: Any
    statistics: Any
    state: Any = None


class Trials(Protocol):
    """What a stepper offers to a search: attempts from other statistics, and a way to go on from the best of them.

    Attributes
    ----------
    every : iterations between two searches, at first
    advances : whether attempts are passes of the run itself, so that going on from where it stands gains something
    settled_at : the highest objective so far, if the run has settled and would end
    begins_to_settle : whether the objective has just begun to change slowly
    prior, statistics : where the run stands
    visited : positions that the run has visited so far, as often as it has
    attempt_visits : positions that an attempt visits; here and above, a position that is visited in Python counts as
        often as compiled code would have visited it in the time
    """

    every: int
    advances: bool
    prior: Any
    statistics: Any
    visited: float
    begins_to_settle: bool

    @property
    def settled_at(self) -> float | None: ...
    @property
    def attempt_visits(self) -> float: ...

    def open(self) -> AbstractContextManager[None]:
        """Postpone interruptions, and clean up when the search ends."""

    def here(self) -> Trial | None:
        """Return where the run gets by itself in as many passes as an attempt has; None if that cannot be judged."""

    def attempt(self, prior: Any, statistics: Any) -> Trial:
        """Return where a few passes lead from a proposal."""

    def keep(self, trial: Trial) -> Trial:
        """Return an accepted trial with what is needed to return to it."""

    def adopt(self, trial: Trial, folded: list[tuple[int, int]]) -> Step:
        """Go on from a trial; `folded` are the pairs (into, gone) of states that were merged."""

    def stay(self) -> None:
        """Go on from where the run stood before the search."""


class Stepper(Protocol):
    """Does one iteration after the other.

    An interruption that comes out of `step` leaves `state` as it was, or its results further on but whole. The loop
    postpones those that come while it records the results of an iteration.

    Attributes
    ----------
    interruption : postpones interruptions
    in_place : whether a step changes the results themselves, so that it must be recorded once it has been done; it then
        asks for interruptions where it can stop
    """

    interruption: Postponed
    in_place: bool

    def step(self, state: RunState) -> Step: ...
    def trials(self, state: RunState, step: Step) -> Trials | None:
        """Return what a search after this step may use; None if this is no time for a search."""

    def release(self) -> None:
        """Close files, which the next run may use: results, or a traceback, keep the stepper of an ended run alive."""


class Search(Protocol):
    """Looks for better states than those a run has found.

    Attributes
    ----------
    round : number of updates of a stochastic run that count as one iteration
    hurries : whether short stochastic runs are searched too, each time their number of updates has doubled
    """

    round: int
    hurries: bool

    def improve(self, trials: Trials, state: RunState, step: Step) -> Step:
        """Return the step, or a better one that the trials have led to."""


AfterIteration = Callable[[RunState], None]


def run(
    problem: Problem,
    algorithm: Algorithm,
    state: RunState,
    after_iteration: AfterIteration,
    acknowledge: Callable[[], None] | None = None,
) -> RunState:
    """Iterate until the algorithm has converged or has to stop.

    An interruption (Ctrl-C) ends the run with the state of the last whole iteration; `acknowledge` is called if it has
    to wait for the end of a step. A second one while the first is waiting is raised as `AbortedError`.
    """
    began = time.perf_counter() - (state.trace.seconds[-1] if state.trace.seconds else 0.0)
    stepper: Stepper | None = None
    try:
        if state.iteration:
            state.status = algorithm.why_stop(problem, state)
        stepper = algorithm.stepper(problem, state)
        if acknowledge is not None:
            stepper.interruption.acknowledge = acknowledge
        while state.status is None:
            with stepper.interruption if stepper.in_place else contextlib.nullcontext():
                with problem.intact():
                    step = _search(problem, stepper, state, stepper.step(state))
                with stepper.interruption:
                    _advance(problem, state, step, began)
                    state.status = algorithm.why_stop(problem, state)
                    after_iteration(state)
            stepper.interruption.check()
    except AbortedError:
        raise
    except KeyboardInterrupt:
        if state.iteration == 0:
            raise
        with problem.intact():  # the results may be those of half a step
            state.status = "interrupted"
    finally:
        if stepper is not None:
            stepper.release()
    return state


def _search(problem: Problem, stepper: Stepper, state: RunState, step: Step) -> Step:
    """Return the step, or where a search over the number of states has led from it."""
    trials = None if problem.search is None else stepper.trials(state, step)
    return step if trials is None or problem.search is None else problem.search.improve(trials, state, step)


def _advance(problem: Problem, state: RunState, step: Step, began: float) -> None:
    """Write down what an iteration gave: first everything that can fail, then all at once."""
    iteration, trace = state.iteration + 1, state.trace
    if step.objective is not None and not math.isfinite(step.objective):
        raise _not_finite(iteration, "the objective")
    for record in step.checked:
        culprit = record.not_finite()
        if culprit is not None:
            name, of_state = culprit
            raise _not_finite(iteration, name + (f" of state {of_state}" if of_state >= 0 else ""))
    measures = dict(step.measures)
    if problem.validation is not None:
        before = time.perf_counter()
        with problem.intact():
            score = problem.validation.score(step.results.point)
        measures["scoring"] = time.perf_counter() - before
        trace.validation.append(score)
    trace.objective.append(math.nan if step.objective is None else step.objective)
    for message in step.events:
        trace.tell(iteration, message)
    for name, value in measures.items():
        trace.measures.setdefault(name, []).append(value)
    trace.seconds.append(time.perf_counter() - began)
    state.results, state.iteration = step.results, iteration


def _not_finite(iteration: int, what: str) -> InferenceError:
    return InferenceError(
        f"iteration {iteration}: {what} is not finite. The run was stopped; a checkpoint holds the last good one. "
        "Look for observations of extreme size, or use a stronger prior."
    )
