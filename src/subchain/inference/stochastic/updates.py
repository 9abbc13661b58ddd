"""Stochastic updates: an update sees a few subchains, sequences or documents and changes the statistics a little.

    units     = M of them, drawn at random                                  a function of the seed and the update
    weights   = those of the present posterior                              IncrementalPosterior.weights
    fresh     = expected statistics of the units between messages           Minibatches.run
    S         = (1 − ρ) S + ρ · scale · fresh                               IncrementalPosterior.blend

The update itself is written in the algorithms' own files (`svi.py`, `scvi.py`, `em.py`). Updates of large
data are done by one compiled call that does the same (`Minibatches.run_updates`). An iteration of the loop is
`report_every` updates: then the trace is written, the held-out score taken, and a checkpoint if it is time. Searches
over the number of states follow the updates, not the reports.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Point
from subchain.core.statistics import Statistics
from subchain.errors import ImpossibleSequenceError
from subchain.inference.run.interrupts import Postponed
from subchain.inference.run.judging import explained
from subchain.inference.run.loop import RunState, Step, Trial
from subchain.inference.run.problem import Problem
from subchain.inference.stochastic.rates import Adaptive, Falling
from subchain.inference.stochastic.results import StochasticResults
from subchain.inference.stochastic.schedule import ROUNDS, is_time, pause_at, until_pause, until_time
from subchain.structures.base import Fresh

if TYPE_CHECKING:
    from subchain.inference.stochastic.settings import Stochastic

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Updates whose minibatches are drawn together.
DRAWN = 64
#: Observations of the updates of one compiled call: interruptions and time limits wait for it.
AT_ONCE = 1 << 20
#: Units, and their length, from which statistics are estimated where a run starts at a given model.
SAMPLE_SIZE, SAMPLE_LENGTH = 128, 1024
#: Observations by which a search judges other numbers of states.
JUDGED = 20_000
#: Updates of the hyperparameters before a proposal is judged.
SETTLED = 3
#: What a search may cost in fit, by the log normaliser of an observation. In the middle of a run the bound always asks
#: for fewer states: counts that have only begun to differ are worth less than what their priors cost.
LOSS = 1e-3


class Draw:
    """The minibatch of one update, and what the update needs beside the posterior."""

    def __init__(self, updates: Updates, number: int) -> None:
        self._updates = updates
        self.number = number
        self.rate = 0.0

    def expected_statistics(self, weights: Point) -> Fresh:
        """Return the expected statistics of the minibatch under some weights, between the messages of its boundary."""
        updates, results = self._updates, self._updates.results
        units, coming = updates.units(self.number), updates.units(self.number + 1)
        fresh = results.minibatches.run(units, coming, weights, results.model)
        results.since[0] += fresh.statistics.log_normalizer
        results.since[1] += fresh.statistics.n_observations
        return fresh

    def step_size(self, fresh: Fresh) -> float:
        """Return ρ, the share of the statistics that this update replaces."""
        results, watched = self._updates.results, self._updates.results.minibatches.watched
        self.rate = results.rates.rate(
            self.number,
            lambda: fresh.gains[watched] * results.minibatches.signal(fresh.statistics.part(watched)),
            lambda: results.minibatches.signal(results.model.parts[watched].sums()),
        )
        return self.rate


class Updates:
    """The stepper of stochastic algorithms: an iteration is a number of updates."""

    in_place = True

    def __init__(self, problem: Problem, algorithm: Stochastic, state: RunState) -> None:
        self.problem = problem
        self.algorithm = algorithm
        self.plan = problem.structure.plan(algorithm)
        self.last_update = algorithm.n_updates(problem)
        self.seed = state.seed
        self.rate = 0.0
        self.interruption = Postponed()
        self.deadline = state.deadline
        self._drawn: dict[int, tuple[Index, Array]] = {}
        self._ran_through = False  # whether the last compiled call has done all that it was given
        memory, prior = state.results.memory, state.results.prior or problem.prior
        statistics = state.statistics if state.statistics is not None else self._estimate(state.point)
        statistics.n_observations = problem.structure.total_weight
        self.rates = (Adaptive if algorithm.adapt else Falling)(algorithm.delay, algorithm.forgetting)
        minibatches = problem.structure.minibatches(algorithm, prior)
        self.results = StochasticResults(algorithm, prior, statistics, minibatches, self.rates)
        if state.iteration:
            self.results.restore(memory, statistics)
        else:
            minibatches.begin()
        state.results = self.results  # the statistics of the start are released

    def _estimate(self, point: Point) -> Statistics:
        """Return statistics for a run that starts at a model: those of a sample, scaled to all the data."""
        rng = np.random.default_rng([self.seed, 1 << 32])
        return self.problem.structure.excerpt(SAMPLE_LENGTH, SAMPLE_SIZE, rng).statistics(point)

    def coming(self, update: int, n: int = 1) -> tuple[Index, Array]:
        """Return the units (n, M) of an update and of those that follow, and their falling rates (n,).

        The units are a function of the seed and the updates' numbers.
        """
        first, last = (update - 1) // DRAWN, (update + n - 2) // DRAWN
        self._drawn = {block: drawn for block, drawn in self._drawn.items() if block >= first - 1}
        drawn = [self._of_block(block) for block in range(first, last + 1)]
        units, rates = drawn[0] if len(drawn) == 1 else (np.concatenate(parts) for parts in zip(*drawn, strict=True))
        at = update - 1 - first * DRAWN
        return units[at : at + n], rates[at : at + n]

    def _of_block(self, block: int) -> tuple[Index, Array]:
        if block not in self._drawn:
            rng = np.random.default_rng([self.seed, block])
            units = rng.integers(self.plan.n_units, size=(DRAWN, self.plan.size))
            numbers = range(block * DRAWN + 1, (block + 1) * DRAWN + 1)
            self._drawn[block] = units, np.array([self.rates.falling(number) for number in numbers])
        return self._drawn[block]

    def units(self, update: int) -> Index:
        """Return the units of an update, (M,)."""
        found: Index = self.coming(update)[0][0]
        return found

    def step(self, state: RunState) -> Step:
        results, every, events = self.results, self.algorithm.report_every, list[str]()
        is_learned = results.current_prior.is_learned
        with self.interruption:
            while self.last_update is None or results.update < self.last_update:
                self.interruption.check()  # also one that came while the last report was made
                self._some_updates(self._until_pause(is_learned))
                pause = pause_at(results.update)
                if is_learned and results.update % pause == 0:
                    rate = min(1.0, pause * self.rate)
                    results.update_hyperparameters([self.seed, 1 << 33, results.update], rate)
                if results.update % every == 0 or time.perf_counter() > self.deadline:
                    break
                events += self._search(state, Step(results, None, [], [], {})).events
            objective = results.report()
            measures = {"updates": float(results.update), "rate": self.rate} | results.minibatches.measures()
            watched = results.model.parts[results.minibatches.watched].sums()
            step = self._search(state, Step(results, objective, [], [watched], measures))
        return step._replace(events=[*events, *step.events])

    def _search(self, state: RunState, step: Step) -> Step:
        """Return the step, or where a search over the number of states has led after the present update."""
        done, search = self.results.update, self.problem.search
        if search is None or not is_time(search, done, self.rate):
            return step
        state = dataclasses.replace(state, iteration=done // search.round - 1)
        return search.improve(UpdateTrials(self, state, step), state, step)

    def _until_pause(self, is_learned: bool) -> int:
        """Updates until something else has to be done: a report, new hyperparameters, a search, the end of the run."""
        done, every = self.results.update, self.algorithm.report_every
        left = every - done % every
        if is_learned:
            left = min(left, until_pause(done))
        if self.problem.search is not None:
            left = min(left, until_time(self.problem.search, done))
        return left if self.last_update is None else min(left, self.last_update - done)

    def _some_updates(self, most: int) -> None:
        """Do one update, or as many as one compiled call can do, up to `most`."""
        results = self.results
        if not self.algorithm.adapt:
            n = min(most, max(int(AT_ONCE / max(self.plan.n_observations, 1.0)), 1))
            n = n if self._ran_through else min(n, DRAWN - results.update % DRAWN)
            units, rates = self.coming(results.update + 1, n)
            done = results.minibatches.run_updates(units, rates, results.model, results.since)
            self._ran_through = done == n
            if done:
                results.changed(done)
                self.rate = float(rates[done - 1])
                return
        self.update()

    def update(self) -> None:
        """Do one update, as the algorithm's own file says."""
        draw = Draw(self, self.results.update + 1)
        self.algorithm.update(self.results.model, draw)
        self.results.changed(1)
        self.rate = draw.rate

    def trials(self, state: RunState, step: Step) -> None:
        """Return None: a step searches by itself, after updates that do not depend on when it reports."""

    def release(self) -> None:
        """Close the files of the boundary."""
        self.results.minibatches.release()


class UpdateTrials:
    """What a stochastic run offers to a search over the number of states: proposals are judged by an excerpt."""

    every, advances, begins_to_settle = ROUNDS, False, False

    def __init__(self, updates: Updates, state: RunState, step: Step) -> None:
        self.visited = float(updates.results.update) * updates.plan.n_observations
        self.updates = updates
        self.results = updates.results
        self.step = step
        self.iteration = state.iteration + 1
        self.prior: Any = self.results.current_prior
        self.statistics: Any = self.results.statistics
        self._least = -math.inf  # log normaliser below which too much of the fit is lost

    @property
    def attempt_visits(self) -> float:
        return float(self._judged * self.updates.plan.length)

    @property
    def _judged(self) -> int:
        """Subchains by which proposals are judged."""
        return max(JUDGED // self.updates.plan.length, self.updates.plan.size)

    @property
    def settled_at(self) -> float | None:
        """None: minibatches are too noisy to tell."""
        return None

    @contextmanager
    def open(self) -> Iterator[None]:
        plan, seed = self.updates.plan, self.updates.seed
        rng = np.random.default_rng([seed, 1 << 34, self.iteration])
        self.excerpt = self.updates.problem.structure.excerpt(plan.length, self._judged, rng)
        with self.updates.interruption:
            yield

    def here(self) -> Trial | None:
        try:
            return self.attempt(self.prior, self.statistics)
        except ImpossibleSequenceError:  # weights can explain the data, but their geometric means cannot
            return None

    def attempt(self, prior: Any, statistics: Any) -> Trial:
        for _ in range(SETTLED):  # the hyperparameters of a proposal have only just begun
            prior = prior.update_hyperparameters(statistics)
        seen, of_prior = explained(self.updates.algorithm, self.excerpt, prior, statistics)
        if seen.log_normalizer < self._least:
            return Trial(-math.inf, prior, statistics)
        self._least = max(self._least, seen.log_normalizer - LOSS * seen.n_observations)
        return Trial(seen.log_normalizer + of_prior, prior, statistics)

    def keep(self, trial: Trial) -> Trial:
        return trial

    def adopt(self, trial: Trial, folded: list[tuple[int, int]]) -> Step:
        self.results.leap(trial.prior, trial.statistics)
        for into, gone in folded:
            self.results.minibatches.fold(into, gone)
        return self.step

    def stay(self) -> None:
        """Nothing has changed."""
