"""Search over the number of states: merges and splits that raise the objective, tried now and then during a run.

A proposal is a set of statistics; a stepper runs a few passes from there, and what they lead to is kept if the
objective is higher than what as many passes without the proposal lead to. So every proposal that helps is accepted with
the full posterior over chains, whatever its structure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from subchain.errors import ImpossibleSequenceError
from subchain.inference.base import Algorithm
from subchain.inference.merging import merges
from subchain.inference.posterior import ModelPosterior
from subchain.inference.problem import Problem
from subchain.inference.splitting import splits
from subchain.settled import EARLY, states_differ
from subchain.statistics import Statistics
from subchain.transitions.hierarchy import Hierarchy

#: Iterations between two searches, at first.
EVERY = 10
#: Merges that fail before one gives up, splits that are tried, and proposals that one search accepts at most.
MERGES, SPLITS, MOST = 3, 2, 20
#: Passes that a proposal is given before it is judged.
PASSES = 2


class Trial(NamedTuple):
    """Where passes from some counts lead: objective, prior of that moment, counts, and how to go on there."""

    objective: float
    prior: ModelPosterior
    statistics: Statistics
    state: Any = None


Run = Callable[[ModelPosterior, Statistics], Trial]


class Search:
    """The search after one iteration of a run.

    Parameters
    ----------
    seed, iteration : what random numbers depend on
    """

    def __init__(self, problem: Problem, algorithm: Algorithm, seed: int, iteration: int) -> None:
        self.problem = problem
        self.algorithm = algorithm
        self.seed = seed
        self.iteration = iteration

    def is_due(self, prior: ModelPosterior, statistics: Statistics, *, settled: bool) -> bool:
        """Whether it is time: now and then once states differ, and before a run ends."""
        hierarchy = _hierarchy(prior)
        if hierarchy is None or not (hierarchy.merges or hierarchy.splits):
            return False
        if settled:
            return hierarchy.renewals >= EARLY
        return _is_milestone(self.iteration) and states_differ(statistics.pairs, hierarchy.renewals)

    def improve(self, here: Trial, run: Run) -> tuple[Trial, list[str]]:
        """The best that was found, and what happened.

        Parameters
        ----------
        here : where the run stands, as far on as `run` would bring a proposal
        run : from a prior and statistics to where a few passes lead
        """
        hierarchy = _hierarchy(here.prior)
        assert hierarchy is not None
        events: list[str] = []
        if hierarchy.splits:
            here = self._split(here, run, events)
        if hierarchy.merges:
            here = self._merge(here, run, events)
        return here, events

    def _merge(self, here: Trial, run: Run, events: list[str]) -> Trial:
        while len(events) < MOST:
            for merge in merges(here.prior, here.statistics, MERGES):
                folded = here.statistics.fold(merge.into, merge.gone)
                there = _attempt(run, here.prior, folded)
                if there.objective > here.objective:
                    events.append(_told(f"state {merge.gone} was taken into state {merge.into}", here, there))
                    here = there
                    break
            else:
                break
        return here

    def _split(self, here: Trial, run: Run, events: list[str]) -> Trial:
        rng = np.random.default_rng([self.seed, self.iteration])
        for split in islice(splits(self.problem, self.algorithm, here.prior, here.statistics, rng), SPLITS):
            there = _attempt(run, here.prior, split.statistics)
            if there.objective > here.objective:
                events.append(_told(f"state {split.state} gave part of its work to state {split.free}", here, there))
                return there
        return here


def _attempt(run: Run, prior: ModelPosterior, statistics: Statistics) -> Trial:
    """Where passes from a proposal lead: nowhere, if it leaves no room for states that somebody knows."""
    try:
        return run(prior.renew(statistics), statistics)
    except ImpossibleSequenceError:
        return Trial(-math.inf, prior, statistics)


def _is_milestone(iteration: int) -> bool:
    """10, 20, 30, 40, 60, 80, 120, 160, …: every search that fails makes it less probable that the next succeeds.

    Examples
    --------
    >>> [iteration for iteration in range(200) if _is_milestone(iteration)]
    [10, 20, 30, 40, 60, 80, 120, 160]
    """
    rounds, rest = divmod(iteration, EVERY)
    if rest or rounds < 1:
        return False
    while rounds % 2 == 0:
        rounds //= 2
    return rounds in (1, 3)


def _hierarchy(prior: ModelPosterior) -> Hierarchy | None:
    """The numbers of a hierarchical prior; None if the number of states is given."""
    return getattr(prior.chain, "hierarchy", None)


def _told(what: str, before: Trial, after: Trial) -> str:
    return f"{what}: the objective rose by {after.objective - before.objective:.6g}"
