"""Iterations of collapsed inference: passes that visit one cluster after the other (`visitors.py`)."""

from __future__ import annotations

import copy
import math
import time
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subchain.core.statistics import Statistics
from subchain.data.legal_states import LegalStates
from subchain.errors import InputError
from subchain.inference.collapsed.clusters import Clusters
from subchain.inference.collapsed.ledger import Ledger
from subchain.inference.collapsed.visitors import PieceVisitor, StateVisitor, Visitor
from subchain.inference.run.interrupts import Postponed
from subchain.inference.run.loop import RunState, Step
from subchain.inference.run.posterior import ModelPosterior
from subchain.inference.run.problem import Problem
from subchain.inference.search.search import PASSES, Search, Trial
from subchain.inference.start.local_starts import LOCAL_STARTS
from subchain.transitions.base import Chain

if TYPE_CHECKING:
    from subchain.inference.cvi import CVI

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: With more marginals than this, the objective, which costs a quarter of a pass, is estimated in every fifth only.
MANY_MARGINALS, FIFTH = 10_000_000, 5
#: Passes after which the shares are summed anew, so that rounding does not add up.
ANEW = 20


class Visits:
    """The stepper of `CVI`."""

    def __init__(self, problem: Problem, algorithm: CVI, state: RunState) -> None:
        self.problem = problem
        self.algorithm = algorithm
        whole = problem.whole
        self.clusters = Clusters(
            whole.data.offsets, algorithm.piece_length(whole.data.lengths), algorithm.cluster_size, whole.weights
        )
        if algorithm.exclude and self.clusters.size <= 1 and whole.data.n_observations > 1:
            raise InputError(
                "CVI: all the data are one cluster, and without it nothing is left to know it by; use "
                "cluster='subchain' with a smaller length, or fewer pieces together."
            )
        prior = state.results.prior or problem.prior
        self.ledger = Ledger(problem, algorithm, self.clusters, _legal(problem), algorithm.storage, prior)
        single_states = algorithm.cluster == "state" and algorithm.corrections
        self.visitor: Visitor = (StateVisitor if single_states else PieceVisitor)(algorithm, self.ledger)
        self.interruption = Postponed()
        spent = state.trace.seconds[-1] if state.trace.seconds else 0.0
        limit = math.inf if algorithm.time_limit is None else algorithm.time_limit
        self.deadline = time.perf_counter() + limit - spent
        memory = state.results.memory
        if "cursor" in memory:
            assert state.statistics is not None
            self.ledger.restore(memory, state.statistics)
        elif "local start" in memory:
            self.ledger.draw(LOCAL_STARTS[int(memory["local start"])], state.seed)
        else:
            statistics = state.statistics
            if statistics is None:
                statistics = self.problem.statistics(state.point.surrogate(), self.problem.whole)
            self._begin(statistics)

    def _measures(self, iteration: int) -> bool:
        few = self.problem.whole.data.n_observations * self.ledger.n_states <= MANY_MARGINALS
        return few or iteration % FIFTH == 0

    def _begin(self, statistics: Statistics) -> None:
        """Marginals under the surrogate of some counts."""
        self.ledger.begin(statistics)
        self.visitor.visit(np.arange(self.clusters.size), excludes=False, puts_back=False)
        self.ledger.since = np.zeros(2)
        self.ledger.add_up()

    def _visit_all(self, order: Index, in_turn: bool) -> None:
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
            self._visit_all(order, in_turn)
            is_whole = ledger.cursor == 0
            if is_whole and (not in_turn or ledger.iteration % ANEW == 0):
                ledger.add_up()
            if is_whole and ledger.present.is_learned:
                ledger.update_hyperparameters()
            left_out, entropy = ledger.since
            if is_whole:
                ledger.since = np.zeros(2)
        objective: float | None = ledger.expected_log_joint() + entropy if ledger.measures and is_whole else None
        events: list[str] = []
        look = Search(self.problem, algorithm, state.seed, state.iteration + 1)
        settled_at = state.trace.settled_at(algorithm.tolerance, objective)
        if is_whole and look.is_due(ledger.present, ledger.statistics, settled_at=settled_at):
            with self.interruption, ledger.shares.trying():
                better, events = self._improve(look, state.seed, has_settled=settled_at is not None)
            objective = objective if better is None else better
        is_probability = is_whole and not algorithm.by_counts
        measures = {"left_out": float(left_out) + ledger.shares.log_scale if is_probability else math.nan}
        return Step(ledger, objective, events, [Chain(ledger.chain.initial, ledger.chain.pairs)], measures)

    def release(self) -> None:
        """Files of shares have names that nobody else wants."""

    # ---- other numbers of states -------------------------------------------------------------------------------------

    def _improve(self, look: Search, seed: int, has_settled: bool) -> tuple[float | None, list[str]]:
        """Passes with as many states, and with fewer or more, whichever lead further; the objective there.

        A run that has settled, and finds nothing, stays where it is, and the objective is None.
        """
        ledger, in_turn = self.ledger, self.algorithm.order != "batch"
        here, deadline = self._trial(math.nan), self.deadline
        before = here if has_settled else None
        events: list[str] = []

        def keep(trial: Trial) -> Trial:
            nonlocal here
            here = trial._replace(state=ledger.memory)
            return here

        def settle() -> Trial:
            entropy = 0.0
            for _ in range(PASSES):
                ledger.since, ledger.measures = np.zeros(2), True
                order = self.clusters.order(seed, ledger.iteration, self.algorithm.order == "shuffled")
                self._visit_all(order, in_turn)
                entropy = float(ledger.since[1])
                ledger.since = np.zeros(2)
                if not in_turn:
                    ledger.add_up()
                ledger.update_hyperparameters()
            return Trial(ledger.expected_log_joint() + entropy, ledger.present, ledger.statistics)

        def run(prior: ModelPosterior, statistics: Statistics) -> Trial:
            ledger.present, ledger.cursor = prior, 0
            self._begin(statistics)
            return settle()

        self.deadline = math.inf
        try:
            _, events = look.improve(keep(settle()), run, keep)
        finally:
            self.deadline = deadline
            stays = None if events else before
            self._return_to(here if stays is None else stays)
        return (here.objective if stays is None else None), events

    def _trial(self, objective: float) -> Trial:
        return Trial(objective, self.ledger.present, self.ledger.statistics, self.ledger.memory)

    def _return_to(self, trial: Trial) -> None:
        self.ledger.present = trial.prior
        self.ledger.restore(trial.state, trial.statistics)


def _legal(problem: Problem) -> LegalStates | None:
    """Legal states of all positions; None if all are legal everywhere."""
    if problem.whole.evidence is None:
        return None
    legal = problem.whole.evidence.listed(problem.whole.data)
    return None if legal.share == 1.0 and legal.log_weights is None else legal
