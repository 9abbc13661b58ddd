"""One fit of a problem: restarts, checkpoint and progress around the loop."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from subchain.core.files import naming
from subchain.inference.run.algorithm import Algorithm
from subchain.inference.run.checkpoint import Checkpoint, Journey, check_resumed
from subchain.inference.run.loop import RunState
from subchain.inference.run.problem import Problem
from subchain.inference.run.progress import Progress
from subchain.inference.run.restarts import best_of


def fit_problem(
    problem: Problem,
    algorithm: Algorithm,
    starts: list[Callable[[], RunState]],
    root: np.random.SeedSequence,
    *,
    identity: dict[str, Any] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: bool | str = False,
) -> Journey:
    """Run an algorithm from every start, and return all runs with the best of them.

    Parameters
    ----------
    starts : functions that return where each run begins
    root : where the random numbers come from
    identity : what must agree between an interrupted and a resumed fit
    checkpoint : file that keeps the state of the fit
    resume : continue from the checkpoint
    progress : True, False or "auto" (if standard error is a terminal)
    """
    marks = Checkpoint(checkpoint, identity or {}, root)
    n_iterations, n_observations = algorithm.n_iterations(problem), problem.structure.n_observations
    with naming(checkpoint if resume else None):
        journey = marks.load() if resume else Journey()
        for state in (journey.best, journey.current):
            if state is not None:
                check_resumed(problem, algorithm, state)
        with Progress(progress, n_iterations, n_observations, len(starts)) as lines:
            best_of(problem, algorithm, starts, journey, marks, lines)
    assert journey.best is not None
    if journey.interrupted:
        journey.best.status = "interrupted"
    return journey
