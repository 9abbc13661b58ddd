"""Starts by a short stochastic run: in large data it finds the coarse structure before the first pass would end."""

from __future__ import annotations

from typing import Any

from subchain.engines.statistics import HMMStatistics
from subchain.inference.run.algorithm import Algorithm
from subchain.inference.run.chains import ChainProblem
from subchain.inference.run.loop import Known, RunState

#: Updates of the run.
UPDATES = 200
#: Sequences up to this length are taken whole; of longer ones, subchains of the second length.
WHOLE, LENGTH = 1024, 256


def short_settings(longest: int) -> dict[str, Any]:
    """Return the settings of a short run of a stochastic algorithm, given the length of the longest sequence."""
    length = None if longest <= WHOLE else LENGTH
    return {"length": length, "boundary": "stationary", "max_updates": UPDATES, "report_every": UPDATES}


def short_run(problem: ChainProblem, algorithm: Algorithm, start: HMMStatistics, seed: int) -> HMMStatistics:
    """Return the statistics after one iteration of an algorithm from a start, under the problem's prior."""
    state = RunState(Known(start, problem.prior.update(start).mean()), seed=seed)
    stepper = algorithm.stepper(problem, state)
    try:
        found = stepper.step(state).results.statistics
    finally:
        stepper.release()
    assert isinstance(found, HMMStatistics)
    return found
