"""One fit of a problem: restarts, checkpoint and progress around the loop."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from subchain.core.files import naming, reading
from subchain.errors import FileFormatError
from subchain.inference.run.algorithm import Algorithm
from subchain.inference.run.checkpoint import Checkpoint, check_resumed
from subchain.inference.run.journey import Journey
from subchain.inference.run.loop import RunState
from subchain.inference.run.outlook import Outlook
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
    resume: bool | None = None,
    progress: Progress | None = None,
) -> Journey:
    """Run an algorithm from every start, and return all runs with the best of them.

    Parameters
    ----------
    starts : functions that return where each run begins
    root : where the random numbers come from
    identity : what must agree between an interrupted and a resumed fit
    checkpoint : file that keeps the state of the fit
    resume : True continues from the checkpoint, False begins again and overwrites it; None is for a new file
    progress : the line that is told what happens; None for none
    """
    marks = Checkpoint(checkpoint, identity or {}, root)
    with naming(checkpoint if resume else None):
        if resume is None:
            marks.check_unused()
        journey = marks.load() if resume else Journey()
        with reading(checkpoint):
            if len(journey.restarts) > len(starts):
                raise FileFormatError(f"{len(journey.restarts)} runs have begun, but the fit has {len(starts)}")
            for restart in journey.restarts:
                if restart.has_results:
                    check_resumed(problem, algorithm, restart.state)
        limit = math.inf if algorithm.time_limit is None else algorithm.time_limit
        outlook = Outlook(len(starts), algorithm.n_iterations(problem), algorithm.may_end_early, limit)
        with contextlib.nullcontext(progress) if progress is not None else Progress(False) as line:
            line.expect(outlook, algorithm.visited(problem))
            best_of(problem, algorithm, starts, journey, marks, line)
    assert journey.best is not None
    if journey.interrupted:
        journey.best.status = "interrupted"
    return journey
