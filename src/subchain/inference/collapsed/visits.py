"""Iterations of collapsed inference: passes that visit one cluster after the other.

What a cluster is, and how it is updated under the counts without its own share, is up to the structure (`Ledger`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Posterior
from subchain.core.statistics import Statistics
from subchain.errors import InputError
from subchain.inference.run.interrupts import Postponed
from subchain.inference.run.loop import RunState, Step, Trial
from subchain.inference.run.problem import Problem
from subchain.structures.base import Ledger
from subchain.structures.chain.local_starts import local_start_of

if TYPE_CHECKING:
    from subchain.inference.cvi import CVI

Index = NDArray[np.int64]

#: With more marginals than this, the objective, which costs a quarter of a pass, is estimated in every fifth only.
MANY_MARGINALS, FIFTH = 10_000_000, 5
#: Passes that a proposal of a search is given before it is judged.
PASSES = 2
#: Positions that compiled code visits while one is visited in Python.
IN_PYTHON = 1000.0
#: Passes after which the shares are summed anew, so that rounding does not add up.
ANEW = 20


class Visits:
    """The stepper of `CVI`."""

    in_place = True

    def __init__(self, problem: Problem, algorithm: CVI, state: RunState) -> None:
        self.problem = problem
        self.algorithm = algorithm
        self.ledger: Ledger = problem.structure.ledger(algorithm, state.results.prior or problem.prior)
        is_alone = self.ledger.size <= 1 and problem.structure.n_observations > 1
        if algorithm.exclude and self.ledger.needs_others and is_alone:
            raise InputError(
                "CVI: all the data are one cluster, and without it nothing is left to know it by; use "
                "cluster='subchain' with a smaller length, or a smaller cluster_size."
            )
        self.interruption = Postponed()
        self.deadline = state.deadline
        memory, statistics = state.results.memory, state.statistics
        asked = local_start_of(memory)
        if state.iteration:
            assert statistics is not None, "a checkpoint has statistics"
            self.ledger.restore(memory, statistics)
            self.ledger.check_sum(statistics)
        elif asked is not None:
            self.ledger.draw(asked, state.seed)
        else:
            self.ledger.begin(problem.structure.statistics(state.point) if statistics is None else statistics)
        state.results = self.ledger  # the statistics of the start are released

    def order(self, seed: int) -> Index:
        """Return the order in which clusters are visited in the present pass."""
        if self.algorithm.order != "shuffled":
            return np.arange(self.ledger.size)
        return np.random.default_rng([seed, self.ledger.iteration]).permutation(self.ledger.size)

    def visit_all(self, order: Index) -> None:
        """Visit all clusters that are left; an interruption comes between two of them."""
        ledger, in_turn = self.ledger, self.algorithm.order != "batch"
        try:
            with ledger.writing(in_place=in_turn):
                while ledger.cursor < ledger.size:
                    self.interruption.check()
                    ledger.visit_next(order, excludes=self.algorithm.exclude, puts_back=in_turn)
                    if in_turn and time.perf_counter() > self.deadline:
                        break
        except KeyboardInterrupt:
            if not in_turn:  # nothing has been put back yet: the pass begins again, without a trace of this one
                ledger.cursor, ledger.since = 0, np.zeros(2)
                ledger.add_up()
            raise
        if ledger.cursor >= ledger.size:
            ledger.cursor, ledger.iteration = 0, ledger.iteration + 1

    def step(self, state: RunState) -> Step:
        ledger = self.ledger
        with self.interruption:
            if ledger.last_pass[0] != state.iteration:  # else the run was interrupted after the pass, in a search
                ledger.last_pass = np.array([state.iteration, *self._pass(state.seed)])
        _, objective, left_out = ledger.last_pass.tolist()
        return Step(ledger, None if math.isnan(objective) else objective, [], ledger.checked, {"left_out": left_out})

    def _pass(self, seed: int) -> tuple[float, float]:
        """Visit all clusters; return the objective and what clusters are worth to the others, nan if not known."""
        ledger, algorithm = self.ledger, self.algorithm
        ledger.measures = ledger.n_marginals <= MANY_MARGINALS or ledger.iteration % FIFTH == 0
        self.visit_all(self.order(seed))
        if ledger.cursor > 0:
            return math.nan, math.nan
        if algorithm.order == "batch" or ledger.iteration % ANEW == 0:
            ledger.add_up()
        if ledger.current_prior.is_learned:
            ledger.update_hyperparameters()
        left_out, entropy = ledger.since.tolist()
        ledger.since = np.zeros(2)
        known = ledger.expected_log_joint() if ledger.measures else None
        objective = math.nan if known is None else known + entropy
        if known is not None and math.isnan(objective):
            objective = math.inf  # known to be wrong, not unknown: the loop stops with an error
        return objective, math.nan if algorithm.by_counts else left_out + ledger.log_scale

    def trials(self, state: RunState, step: Step) -> VisitTrials | None:
        return VisitTrials(self, state, step) if self.ledger.cursor == 0 else None

    def release(self) -> None:
        """Files of shares have names of their own, which no other run uses."""


class VisitTrials:
    """What visits offer to a search over the number of states; see `Trials`."""

    every, advances = 10, True

    def __init__(self, visits: Visits, state: RunState, step: Step) -> None:
        self.visits = visits
        self.ledger = visits.ledger
        self.step = step
        self.seed = state.seed
        self.prior, self.statistics = self.ledger.current_prior, self.ledger.statistics
        tolerance = visits.algorithm.tolerance
        a_pass = visits.problem.structure.n_observations * (1.0 if self.ledger.is_compiled else IN_PYTHON)
        self.settled_at = state.trace.settled_at(tolerance, step.objective)
        self.begins_to_settle = state.trace.begins_to_settle(tolerance, step.objective)
        self.visited = a_pass * (state.iteration + 1)
        self.attempt_visits = a_pass * (PASSES + 1)  # shares begin with a pass
        self._before: Trial | None = None

    @contextmanager
    def open(self) -> Iterator[None]:
        deadline = self.visits.deadline
        with self.visits.interruption, self.ledger.trying():
            self._before = self._trial(math.nan)
            self.visits.deadline = math.inf
            try:
                yield
            except BaseException:
                self.stay()  # a resumed run begins the search anew
                raise
            finally:
                self.visits.deadline = deadline

    def _trial(self, objective: float) -> Trial:
        return Trial(objective, self.ledger.current_prior, self.ledger.statistics, self.ledger.memory)

    def _return_to(self, trial: Trial) -> None:
        self.ledger.adopt(trial.prior)
        self.ledger.restore(trial.state, trial.statistics)

    def here(self) -> Trial:
        ledger, visits, entropy = self.ledger, self.visits, 0.0
        for _ in range(PASSES):
            ledger.since, ledger.measures = np.zeros(2), True
            visits.visit_all(visits.order(self.seed))
            entropy = float(ledger.since[1])
            ledger.since = np.zeros(2)
            if visits.algorithm.order == "batch":
                ledger.add_up()
            ledger.update_hyperparameters()
        known = ledger.expected_log_joint()
        assert known is not None, "a search compares objectives"
        return Trial(known + entropy, ledger.current_prior, ledger.statistics)

    def attempt(self, prior: Posterior, statistics: Statistics) -> Trial:
        self.ledger.adopt(prior)
        self.ledger.cursor = 0
        self.ledger.begin(statistics)
        return self.here()

    def keep(self, trial: Trial) -> Trial:
        return trial._replace(state=self.ledger.memory)

    def adopt(self, trial: Trial, folded: list[tuple[int, int]]) -> Step:
        self._return_to(trial)
        return self.step._replace(objective=trial.objective)

    def stay(self) -> None:
        assert self._before is not None
        self._return_to(self._before)
