"""Iterations of collapsed inference: passes that visit one cluster after the other (`visitors.py`)."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.legal_states import LegalStates
from subchain.engines.statistics import HMMStatistics
from subchain.errors import InputError
from subchain.inference.collapsed.clusters import Clusters
from subchain.inference.collapsed.ledger import Ledger
from subchain.inference.collapsed.visitors import PieceVisitor, StateVisitor
from subchain.inference.run.chains import ChainProblem
from subchain.inference.run.interrupts import Postponed
from subchain.inference.run.loop import RunState, Step, Trial
from subchain.inference.start.local_starts import LOCAL_STARTS
from subchain.structures.chain.model import HMMPosterior
from subchain.transitions.base import Chain

if TYPE_CHECKING:
    from subchain.inference.cvi import CVI

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: With more marginals than this, the objective, which costs a quarter of a pass, is estimated in every fifth only.
MANY_MARGINALS, FIFTH = 10_000_000, 5
#: Passes that a proposal of a search is given before it is judged.
PASSES = 2
#: Passes after which the shares are summed anew, so that rounding does not add up.
ANEW = 20


class Visits:
    """The stepper of `CVI`."""

    def __init__(self, problem: ChainProblem, algorithm: CVI, state: RunState) -> None:
        self.problem = problem
        self.algorithm = algorithm
        whole = problem.structure
        self.clusters = Clusters(
            whole.data.offsets, algorithm.piece_length(whole.data.lengths), algorithm.cluster_size, whole.weights
        )
        if algorithm.exclude and self.clusters.size <= 1 and whole.data.n_observations > 1:
            raise InputError(
                "CVI: all the data are one cluster, and without it nothing is left to know it by; use "
                "cluster='subchain' with a smaller length, or fewer pieces together."
            )
        prior: Any = state.results.prior or problem.prior
        self.ledger = Ledger(problem, algorithm, self.clusters, _legal(problem), algorithm.storage, prior)
        single_states = algorithm.cluster == "state" and algorithm.corrections
        self.visitor = (StateVisitor if single_states else PieceVisitor)(algorithm, self.ledger)
        self.interruption = Postponed()
        spent = state.trace.seconds[-1] if state.trace.seconds else 0.0
        limit = math.inf if algorithm.time_limit is None else algorithm.time_limit
        self.deadline = time.perf_counter() + limit - spent
        memory = state.results.memory
        if "cursor" in memory:
            before: Any = state.statistics
            self.ledger.restore(memory, before)
        elif "local start" in memory:
            self.ledger.draw(LOCAL_STARTS[int(memory["local start"])], state.seed)
        else:
            point: Any = state.point
            statistics: Any = state.statistics
            if statistics is None:
                statistics = self.problem.structure.statistics(point)
            self.begin(statistics)

    def _measures(self, iteration: int) -> bool:
        few = self.problem.structure.data.n_observations * self.ledger.n_states <= MANY_MARGINALS
        return few or iteration % FIFTH == 0

    def begin(self, statistics: HMMStatistics) -> None:
        """Marginals under the surrogate of some counts."""
        self.ledger.begin(statistics)
        self.visitor.visit(np.arange(self.clusters.size), excludes=False, puts_back=False)
        self.ledger.since = np.zeros(2)
        self.ledger.add_up()

    def visit_all(self, order: Index, in_turn: bool) -> None:
        """Visit all clusters that are left; an interruption comes between two of them."""
        ledger = self.ledger
        own = copy.deepcopy(ledger.own) if not in_turn else None
        with ledger.shares.writing(in_place=in_turn):
            while ledger.cursor < self.clusters.size:
                try:
                    self.interruption.check()
                except KeyboardInterrupt:
                    if not in_turn:  # nothing has been put back yet: the pass begins again, without a trace of this one
                        ledger.cursor, ledger.own = 0, own
                        ledger.since = np.zeros(2)
                        ledger.add_up()
                    raise
                some = order[ledger.cursor : ledger.cursor + self.visitor.at_once]
                self.visitor.visit(some, excludes=self.algorithm.exclude, puts_back=in_turn)
                ledger.cursor += len(some)
                ledger.moved()
                if in_turn and time.perf_counter() > self.deadline:
                    break
        if ledger.cursor >= self.clusters.size:
            ledger.cursor, ledger.iteration = 0, ledger.iteration + 1

    def step(self, state: RunState) -> Step:
        ledger, algorithm = self.ledger, self.algorithm
        order = self.clusters.order(state.seed, ledger.iteration, algorithm.order == "shuffled")
        in_turn = algorithm.order != "batch"
        ledger.measures = self._measures(ledger.iteration)
        with self.interruption:
            self.visit_all(order, in_turn)
            is_whole = ledger.cursor == 0
            if is_whole and (not in_turn or ledger.iteration % ANEW == 0):
                ledger.add_up()
            if is_whole and ledger.present.is_learned:
                ledger.update_hyperparameters()
            left_out, entropy = ledger.since
            if is_whole:
                ledger.since = np.zeros(2)
        objective: float | None = ledger.expected_log_joint() + entropy if ledger.measures and is_whole else None
        is_probability = is_whole and not algorithm.by_counts
        measures = {"left_out": float(left_out) + ledger.shares.log_scale if is_probability else math.nan}
        return Step(ledger, objective, [], [Chain(ledger.chain.initial, ledger.chain.pairs)], measures)

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
        self.prior, self.statistics = self.ledger.present, self.ledger.statistics
        self.settled_at = state.trace.settled_at(visits.algorithm.tolerance, step.objective)
        self._before: Trial | None = None
        self._latest: Trial | None = None

    @contextmanager
    def open(self) -> Iterator[None]:
        deadline = self.visits.deadline
        with self.visits.interruption, self.ledger.shares.trying():
            self._before = self._latest = self._trial(math.nan)
            self.visits.deadline = math.inf
            try:
                yield
            except BaseException:
                self._return_to(self._latest if self.settled_at is None else self._before)
                raise
            finally:
                self.visits.deadline = deadline

    def _trial(self, objective: float) -> Trial:
        return Trial(objective, self.ledger.present, self.ledger.statistics, self.ledger.memory)

    def _return_to(self, trial: Trial) -> None:
        self.ledger.present = trial.prior
        self.ledger.restore(trial.state, trial.statistics)

    def here(self) -> Trial:
        ledger, visits, entropy = self.ledger, self.visits, 0.0
        in_turn = visits.algorithm.order != "batch"
        for _ in range(PASSES):
            ledger.since, ledger.measures = np.zeros(2), True
            order = visits.clusters.order(self.seed, ledger.iteration, visits.algorithm.order == "shuffled")
            visits.visit_all(order, in_turn)
            entropy = float(ledger.since[1])
            ledger.since = np.zeros(2)
            if not in_turn:
                ledger.add_up()
            ledger.update_hyperparameters()
        return Trial(ledger.expected_log_joint() + entropy, ledger.present, ledger.statistics)

    def attempt(self, prior: HMMPosterior, statistics: HMMStatistics) -> Trial:
        self.ledger.present, self.ledger.cursor = prior, 0
        self.visits.begin(statistics)
        return self.here()

    def keep(self, trial: Trial) -> Trial:
        self._latest = trial._replace(state=self.ledger.memory)
        return self._latest

    def adopt(self, trial: Trial, folded: list[tuple[int, int]]) -> Step:
        self._return_to(trial)
        return self.step._replace(objective=trial.objective)

    def stay(self) -> None:
        assert self._before is not None
        self._return_to(self._before)


def _legal(problem: ChainProblem) -> LegalStates | None:
    """Legal states of all positions; None if all are legal everywhere."""
    if problem.structure.evidence is None:
        return None
    legal = problem.structure.evidence.listed(problem.structure.data)
    return None if legal.share == 1.0 and legal.log_weights is None else legal
