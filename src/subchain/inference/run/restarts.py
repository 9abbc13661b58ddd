"""Several runs from different starts; the best by its objective is kept, the others' objectives are remembered."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np

from subchain.errors import ImpossibleSequenceError
from subchain.inference.run.algorithm import Algorithm
from subchain.inference.run.checkpoint import Checkpoint, Journey, RunSummary
from subchain.inference.run.interrupts import Postponed
from subchain.inference.run.judging import explained
from subchain.inference.run.loop import RunState, run
from subchain.inference.run.problem import Problem
from subchain.inference.run.progress import Progress
from subchain.structures.settings import StochasticSettings

#: Observations by which restarts of stochastic algorithms are compared.
JUDGED = 20_000


def best_of(
    problem: Problem,
    algorithm: Algorithm,
    starts: list[Callable[[], RunState]],
    journey: Journey,
    checkpoint: Checkpoint,
    progress: Progress,
) -> Journey:
    """Run every start that the journey has not seen the end of; an interrupted run ends the journey."""

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
        progress.begin(number)
        try:
            if journey.current is None:
                journey.current = starts[number]()
            if journey.current.status == "interrupted":
                journey.current.status = None
            state = run(problem, algorithm, journey.current, after_iteration)
        except KeyboardInterrupt:
            if journey.best is None:
                raise
            journey.interrupted = True
            return journey
        if state.status == "interrupted":
            checkpoint.save(journey, force=True)
            journey.interrupted = True
            judge(state)
            return journey
        assert state.status is not None
        with Postponed() as interruption:
            summary = RunSummary(judge(state), state.status, state.iteration, state.trace.start)
            journey.summaries.append(summary)
            journey.current = None
            checkpoint.save(journey, force=True)
        if interruption.asked:
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
    if best.status in ("max_iter", "time_limit") and algorithm.why_stop(problem, best) is None:
        best.status = None
        journey.summaries.pop()
        journey.best, journey.current = None, best
