"""Several runs from different starts; the best by its objective is kept, the others' objectives are remembered."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import cast

import numpy as np

from subchain.errors import ImpossibleSequenceError
from subchain.inference.run.algorithm import Algorithm
from subchain.inference.run.checkpoint import Checkpoint, Journey, RunSummary
from subchain.inference.run.interrupts import AbortedError, Postponed
from subchain.inference.run.judging import explained
from subchain.inference.run.loop import RunState, run
from subchain.inference.run.problem import Problem
from subchain.inference.run.progress import Progress
from subchain.structures.settings import StochasticSettings

#: Observations by which restarts of stochastic algorithms are compared.
JUDGED = 20_000
#: Statuses of runs that a resumed fit continues.
CUT_SHORT = ("interrupted", "time_limit")


def best_of(
    problem: Problem,
    algorithm: Algorithm,
    starts: list[Callable[[], RunState]],
    journey: Journey,
    checkpoint: Checkpoint,
    progress: Progress,
) -> Journey:
    """Run every start that the journey has not seen the end of.

    An interruption and the time limit, which is one for all restarts of this call, end the journey. The checkpoint then
    has the run that was under way, which a resumed fit continues.
    """
    limit = math.inf if algorithm.time_limit is None else algorithm.time_limit
    deadline = time.perf_counter() + limit

    def after_iteration(state: RunState) -> None:
        progress.update(state)
        checkpoint.save(journey)

    def judge(state: RunState) -> float:
        """Return the score of a run, and remember the run if it is better than all that have ended."""
        worth = score_of_run(problem, algorithm, state, compared=len(starts) > 1)
        if journey.best is None or worth > max(summary.objective for summary in journey.summaries):
            journey.best = state
        return worth

    _reopen(problem, algorithm, starts, journey)
    for number in range(len(journey.summaries), len(starts)):
        if journey.best is not None and time.perf_counter() >= deadline:
            return journey
        progress.begin(number)
        try:
            if journey.current is None:
                journey.current = starts[number]()
            if journey.current.status in CUT_SHORT:
                journey.current.status = None
            journey.current.deadline = deadline
            state = run(problem, algorithm, journey.current, after_iteration, progress.acknowledge)
        except KeyboardInterrupt as interruption:
            if journey.best is None or isinstance(interruption, AbortedError):
                raise
            journey.interrupted = True
            return journey
        progress.end(state)
        if state.status in CUT_SHORT:
            checkpoint.save(journey, force=True)
            journey.interrupted = state.status == "interrupted"
            journey.summaries.append(RunSummary.of(state, judge(state)))
            return journey
        with Postponed() as postponed:
            journey.summaries.append(RunSummary.of(state, judge(state)))
            journey.current = None
            checkpoint.save(journey, force=True)
        if postponed.asked:
            journey.interrupted = number + 1 < len(starts)
            return journey
    return journey


def score_of_run(problem: Problem, algorithm: Algorithm, state: RunState, compared: bool) -> float:
    """Return the score by which restarts are compared.

    That is the final objective; for algorithms whose objectives are those of the minibatches that a run happened to
    draw, the held-out score, or the bound (for point estimates the likelihood) of an excerpt that is the same for all.
    """
    found = state.results.reported
    if algorithm.comparable or not (state.trace.validation or (compared and found is not None)):
        return algorithm.final_objective(state)
    if state.trace.validation:
        return state.trace.validation[-1]
    assert found is not None
    structure, prior = problem.structure, state.results.prior or problem.prior
    length = structure.plan(cast(StochasticSettings, algorithm)).length
    excerpt = structure.excerpt(length, max(JUDGED // length, 1), np.random.default_rng(0))
    try:
        seen, of_prior = explained(algorithm, excerpt, prior, found)
    except ImpossibleSequenceError:  # the run cannot explain the excerpt
        return -math.inf
    return float(seen.log_normalizer + of_prior) / max(float(seen.n_observations), 1.0)


def _reopen(problem: Problem, algorithm: Algorithm, starts: list[Callable[[], RunState]], journey: Journey) -> None:
    """Let the one run of a finished journey go on if a limit that has been raised since had ended it."""
    best = journey.best
    if best is None or len(starts) > 1 or len(journey.summaries) < len(starts):
        return
    if best.status in ("completed", "max_iter", "time_limit") and algorithm.why_stop(problem, best) is None:
        best.status = None
        journey.summaries.pop()
        journey.best, journey.current = None, best
