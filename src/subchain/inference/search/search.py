"""Search over the number of states: merges and splits that raise the objective, tried now and then during a run.

Beside them, moves that happen nowhere any more are given another chance.

A proposal is a set of statistics; a stepper runs a few passes from there, and what they lead to is kept if the
objective is higher than what as many passes without the proposal lead to. So every proposal that helps is accepted with
the full posterior over chains, whatever its structure.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from subchain.core.hyperparameters import states_differ
from subchain.core.statistics import Statistics
from subchain.errors import ImpossibleSequenceError
from subchain.inference.run.algorithm import Algorithm
from subchain.inference.run.posterior import ModelPosterior
from subchain.inference.run.problem import Problem
from subchain.inference.search.merging import merges
from subchain.inference.search.splitting import splits
from subchain.transitions.hdp.hierarchy import hierarchy_of

#: Iterations between two searches, at first.
EVERY = 10
#: Merges that fail before one gives up, splits that are tried, also before a run ends, and proposals that one search
#: accepts at most.
MERGES, SPLITS, LAST_SPLITS, MOST = 3, 2, 12, 20
#: Passes that a proposal is given before it is judged.
PASSES = 2
#: What a state more, or counts that are loosened, must add to the objective (nats); a state less need add nothing.
LEAST_GAIN = 1.0
#: Share of the moves that are dealt out anew when counts are loosened.
LOOSE = 0.01


class Trial(NamedTuple):
    """Where passes from some counts lead: objective, prior of that moment, counts, and how to go on there."""

    objective: float
    prior: ModelPosterior
    statistics: Statistics
    state: Any = None


Run = Callable[[ModelPosterior, Statistics], Trial]
#: Completes a trial that has been accepted by what is needed to return to it.
Keep = Callable[[Trial], Trial]


class Search:
    """The search after one iteration of a run.

    Parameters
    ----------
    seed, iteration : what random numbers depend on
    every : iterations between two searches, at first
    """

    def __init__(self, problem: Problem, algorithm: Algorithm, seed: int, iteration: int, every: int = EVERY) -> None:
        self.problem = problem
        self.algorithm = algorithm
        self.seed = seed
        self.iteration = iteration
        self.every = every
        self.folded: list[tuple[int, int]] = []
        self._splits, self._bar = SPLITS, -math.inf

    def is_due(self, prior: ModelPosterior, statistics: Statistics, *, settled_at: float | None = None) -> bool:
        """Whether it is time: now and then once states differ, and before a run ends.

        States that are still alike when a run ends will not become different by themselves; merged into one, it can be
        split. A run that has settled has also shown how high its objective comes (`settled_at`): what leads no higher
        would be undone by the passes that follow, again and again.
        """
        hierarchy = hierarchy_of(prior.chain)
        if hierarchy is None or not (hierarchy.merges or hierarchy.splits):
            return False
        if settled_at is not None:
            self._splits, self._bar = LAST_SPLITS, settled_at
            return True
        return _is_milestone(self.iteration, self.every) and states_differ(statistics.pairs, hierarchy.renewals)

    def improve(self, here: Trial, run: Run, keep: Keep = lambda trial: trial) -> tuple[Trial, list[str]]:
        """The best that was found, and what happened; `folded` are then the pairs of states that were merged.

        Parameters
        ----------
        here : where the run stands, as far on as `run` would bring a proposal
        run : from a prior and statistics to where a few passes lead
        keep : called when a trial has been accepted, before the next
        """
        hierarchy = hierarchy_of(here.prior.chain)
        assert hierarchy is not None
        events: list[str] = []
        if hierarchy.splits:
            here = self._split(here, run, keep, events)
        if hierarchy.merges:
            here = self._merge(here, run, keep, events)
        return self._loosen(here, run, keep, events), events

    def _merge(self, here: Trial, run: Run, keep: Keep, events: list[str]) -> Trial:
        while len(events) < MOST:
            for merge in merges(here.prior, here.statistics, MERGES):
                there = _attempt(run, here.prior, merge.fold(here.statistics))
                if there.objective > max(here.objective, self._bar):
                    events.append(_told(str(merge), here, there))
                    here = keep(there)
                    self.folded += [(merge.into, gone) for gone in merge.gone]
                    break
            else:
                break
        return here

    def _split(self, here: Trial, run: Run, keep: Keep, events: list[str]) -> Trial:
        rng = np.random.default_rng([self.seed, self.iteration])
        for split in islice(splits(self.problem, self.algorithm, here.prior, here.statistics, rng), self._splits):
            there = _attempt(run, here.prior, split.statistics)
            if there.objective > max(here.objective + LEAST_GAIN, self._bar):
                events.append(_told(f"state {split.state} gave part of its work to state {split.free}", here, there))
                return keep(there)
        return here

    def _loosen(self, here: Trial, run: Run, keep: Keep, events: list[str]) -> Trial:
        """Give moves another chance that have come to count for nothing: with small concentrations none returns."""
        there = _attempt(run, here.prior, loosened(here.statistics))
        if there.objective > max(here.objective + LEAST_GAIN, self._bar):
            events.append(_told("moves that never happened were given a chance", here, there))
            return keep(there)
        return here


def loosened(statistics: Statistics) -> Statistics:
    """Counts of which a small share does not depend on the state before."""
    initial, pairs = statistics.initial, statistics.pairs
    visits = np.maximum(initial + pairs.sum(axis=0), 0.0)
    shares = visits / max(visits.sum(), 1e-300)
    return dataclasses.replace(
        statistics,
        initial=(1.0 - LOOSE) * initial + LOOSE * initial.sum() * shares,
        pairs=(1.0 - LOOSE) * pairs + LOOSE * pairs.sum(axis=1, keepdims=True) * shares,
    )


def _attempt(run: Run, prior: ModelPosterior, statistics: Statistics) -> Trial:
    """Where passes from a proposal lead: nowhere, if it leaves no room for states that somebody knows."""
    try:
        return run(prior.begin(statistics), statistics)
    except ImpossibleSequenceError:
        return Trial(-math.inf, prior, statistics)


def _is_milestone(iteration: int, every: int) -> bool:
    """10, 20, 30, 40, 60, 80, 120, 160, …: every search that fails makes it less probable that the next succeeds.

    Examples
    --------
    >>> [iteration for iteration in range(200) if _is_milestone(iteration, 10)]
    [10, 20, 30, 40, 60, 80, 120, 160]
    """
    rounds, rest = divmod(iteration, every)
    if rest or rounds < 1:
        return False
    while rounds % 2 == 0:
        rounds //= 2
    return rounds in (1, 3)


def _told(what: str, before: Trial, after: Trial) -> str:
    return f"{what}: the objective rose by {after.objective - before.objective:.6g}"
