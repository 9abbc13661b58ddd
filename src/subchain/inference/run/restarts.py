"""Several runs from different starts; the best by its objective is kept, the others' objectives are remembered."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import cast

import numpy as np

from subchain.errors import ImpossibleSequenceError
from subchain.inference.run.algorithm import Algorithm
from subchain.inference.run.checkpoint import Checkpoint
from subchain.inference.run.interrupts import AbortedError, Postponed
from subchain.inference.run.journey import Journey, Restart, RunSummary
from subchain.inference.run.judging import explained
from subchain.inference.run.loop import RunState, run
from subchain.inference.run.problem import Problem
from subchain.inference.run.progress import Progress
from subchain.structures.settings import StochasticSettings

#: Observations by which restarts of stochastic algorithms are compared.
JUDGED = 20_000
#: Statuses of runs that a resumed fit continues, and of those that it continues if the limit has been raised.
CUT_SHORT, AT_LIMIT = ("interrupted", "time_limit"), ("completed", "max_iter", "stopped_improving")


def best_of(
    problem: Problem,
    algorithm: Algorithm,
    starts: list[Callable[[], RunState]],
    journey: Journey,
    checkpoint: Checkpoint,
    progress: Progress,
) -> Journey:
    """Run every start that the journey has not seen the end of, and let those go on whose limit has been raised.

    An interruption and the time limit, which is one for all restarts of this call, end the journey. The checkpoint then
    has the run that was under way, which a resumed fit continues.
    """
    limit = math.inf if algorithm.time_limit is None else algorithm.time_limit
    deadline = time.perf_counter() + limit

    def after_iteration(state: RunState) -> None:
        progress.update(state)
        checkpoint.save(journey)

    def end(restart: Restart) -> None:
        """Judge a run that has ended, and forget those that are worse where nobody can resume them."""
        with problem.intact():
            worth = score_of_run(problem, algorithm, restart.state, compared=len(starts) > 1)
        restart.summary = RunSummary.of(restart.state, worth)
        if checkpoint.path is None or algorithm.files != "none":
            for loser in journey.losers:
                loser.leave_out()

    while (number := _next_run(problem, algorithm, journey, len(starts))) is not None:
        if journey.best is not None and time.perf_counter() >= deadline:
            return journey
        progress.begin(number)
        try:
            with problem.intact():
                restart = _brought_back(algorithm, starts, journey, number)
            restart.state.deadline = deadline
            state = run(problem, algorithm, restart.state, after_iteration, progress.acknowledge)
        except KeyboardInterrupt as interruption:
            if journey.best is None or isinstance(interruption, AbortedError):
                raise
            journey.interrupted = True
            return journey
        progress.end(state)
        if state.status in CUT_SHORT:
            checkpoint.save(journey, force=True)
            journey.interrupted = state.status == "interrupted"
            end(restart)
            return journey
        with Postponed() as postponed:
            end(restart)
            checkpoint.save(journey, force=True)
        if postponed.asked:
            journey.interrupted = _next_run(problem, algorithm, journey, len(starts)) is not None
            return journey
    return journey


def _next_run(problem: Problem, algorithm: Algorithm, journey: Journey, n_starts: int) -> int | None:
    """Return the number of the run that is to go on or to begin; None if all have ended.

    The run that was under way comes first: files that runs share are its own. A limit that has been raised lets runs go
    on that it had ended, except where a file of an earlier version does not say how far they came. If one whose results
    were left out is the best after all, it begins again.
    """
    for number, restart in enumerate(journey.restarts):
        if restart.summary is None or restart.state.status in CUT_SHORT:
            return number
    for number, restart in enumerate(journey.restarts):
        is_at_limit = restart.state.status in AT_LIMIT and bool(restart.state.trace.seconds)
        if is_at_limit and algorithm.why_stop(problem, restart.state) is None:
            return number
    if len(journey.restarts) < n_starts:
        return len(journey.restarts)
    winner = journey.winner
    return None if winner is None or winner.has_results else journey.restarts.index(winner)


def _brought_back(algorithm: Algorithm, starts: list[Callable[[], RunState]], journey: Journey, number: int) -> Restart:
    """Return a restart that is to go on, from the beginning if its results were left out or its file overwritten."""
    if number == len(journey.restarts):
        journey.restarts.append(Restart(starts[number]()))
    restart = journey.restarts[number]
    is_overwritten = algorithm.files == "shared" and restart.summary is not None and len(starts) > 1
    if is_overwritten or not restart.has_results:
        restart.state = starts[number]()
    restart.summary, restart.state.status = None, None
    return restart


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
