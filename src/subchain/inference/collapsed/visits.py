"""Iterations of collapsed inference: passes that visit one cluster after the other.

How a cluster is visited is the business of a visitor. `PieceVisitor` is for any family and any prior over the chain: it
takes pieces out of the ledger, runs them as lanes, and puts them back. Words have visitors of their own, compiled
(`cvi_words.py`), and so have single states (`cvi_states.py`).
"""

from __future__ import annotations

import copy
import math
import time
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from subchain.core.statistics import Statistics
from subchain.data.legal_states import LegalStates
from subchain.engines.part import Observed
from subchain.engines.subchains import Minibatch, MinibatchRun
from subchain.engines.surrogate import Surrogate
from subchain.errors import InputError
from subchain.inference.collapsed.clusters import Clusters, has_plain_words, positions_of
from subchain.inference.collapsed.cvi_listed import LegalVisitor
from subchain.inference.collapsed.cvi_states import StateVisitor
from subchain.inference.collapsed.cvi_words import WordVisitor
from subchain.inference.collapsed.ledger import Ledger, dot
from subchain.inference.run.interrupts import Postponed
from subchain.inference.run.loop import RunState, Step
from subchain.inference.run.posterior import ModelPosterior
from subchain.inference.run.problem import Problem
from subchain.inference.search.search import PASSES, Search, Trial
from subchain.inference.start.local_starts import LOCAL_STARTS
from subchain.transitions.base import Chain
from subchain.transitions.dirichlet import DirichletChain

if TYPE_CHECKING:
    from subchain.inference.cvi import CVI

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: With more marginals than this, the objective, which costs a quarter of a pass, is estimated in every fifth only.
MANY_MARGINALS, FIFTH = 10_000_000, 5
#: Passes after which the shares are summed anew, so that rounding does not add up.
ANEW = 20


class Visitor(Protocol):
    """Visits clusters.

    Attributes
    ----------
    at_once : clusters after which somebody may interrupt
    """

    at_once: int

    def visit(self, clusters: Index, *, excludes: bool, puts_back: bool) -> None:
        """Give clusters new marginals under the counts, with or without their own shares in them; put these back."""


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
        legal = _legal(problem)
        are_words = has_plain_words(problem) and (algorithm.exclude or algorithm.cluster_size == 1)
        listed = legal is not None and are_words
        prior = state.results.prior or problem.prior
        self.ledger = Ledger(problem, algorithm, self.clusters, legal, listed, algorithm.storage, prior)
        self.visitor = _visitor(problem, algorithm, self.ledger, are_words)
        #: What evidence adds to log normalisers, where visitors work with its factors.
        self.log_scale = self.ledger.shares.log_scale if are_words else 0.0
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
        measures = {"left_out": float(left_out) + self.log_scale if is_probability else math.nan}
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


def _visitor(problem: Problem, algorithm: CVI, ledger: Ledger, are_words: bool) -> Visitor:
    """The fastest visitor that can do what is asked for."""
    if algorithm.cluster == "state" and algorithm.corrections:
        return StateVisitor(problem, algorithm, ledger)
    if not are_words:
        return PieceVisitor(problem, algorithm, ledger)
    return (LegalVisitor if ledger.shares.is_compressed else WordVisitor)(algorithm, ledger)


class PieceVisitor:
    """Visits clusters of any family, the pieces of a cluster side by side."""

    at_once = 1

    def __init__(self, problem: Problem, algorithm: CVI, ledger: Ledger) -> None:
        self.problem = problem
        self.algorithm = algorithm
        self.ledger = ledger
        has_neighbours = not bool(ledger.clusters.is_first.all())
        if algorithm.by_counts and has_neighbours and not isinstance(problem.prior.chain, DirichletChain):
            raise InputError(
                "CVI: neighbour_weighting='counts' weighs rows by their counts, which frozen transitions do not have; "
                " use neighbour_weighting='probabilities'."
            )

    def visit(self, clusters: Index, *, excludes: bool, puts_back: bool) -> None:
        for cluster in clusters:
            self._visit(int(cluster), excludes, puts_back)

    def _visit(self, cluster: int, excludes: bool, puts_back: bool) -> None:
        ledger, layout, whole = self.ledger, self.ledger.clusters, self.problem.whole
        pieces = layout.pieces(cluster)
        batch, borders = layout.batch(pieces), layout.borders(pieces)
        row = int(layout.share_of[pieces[0]])
        positions = positions_of(batch.starts, batch.lengths)
        own = ledger.emission_share(cluster, batch)
        own_first = self._first_states(batch)
        own_pairs = ledger.shares.pairs[row] + ledger.border_pairs(borders)
        if excludes:
            ledger.chain.blend(1.0, -1.0, -1.0, own_first, own_pairs)
            ledger.emission.blend(1.0, -1.0, own)
        chain = ledger.chain.surrogate("predictive")
        surrogate = Surrogate(chain.initial, chain.transition, ledger.emission.surrogate("predictive"))
        start, stop = self._enter(batch, chain, excludes)
        run = self.problem.engine.minibatch(surrogate, whole, batch, start, stop, keep=ledger.shares.new.write)
        self._report(batch, surrogate, positions, run, start, stop)
        ledger.keep_emission_share(cluster, run.statistics.emission)
        if not puts_back:
            if excludes:
                ledger.chain.blend(1.0, 1.0, 1.0, own_first, own_pairs)
                ledger.emission.blend(1.0, 1.0, own)
        else:
            if not excludes:
                ledger.chain.blend(1.0, -1.0, -1.0, own_first, own_pairs)
                ledger.emission.blend(1.0, -1.0, own)
            pairs = run.statistics.pairs + ledger.border_pairs(borders)
            ledger.chain.blend(1.0, 1.0, 1.0, run.statistics.initial, pairs)
            ledger.emission.blend(1.0, 1.0, run.statistics.emission)
        if row > 0:
            ledger.shares.new.pairs[row] = run.statistics.pairs

    # ---- what the pieces have put in ---------------------------------------------------------------------------------

    def _weights(self, batch: Minibatch) -> Array:
        return np.ones(batch.size) if batch.user_weights is None else batch.user_weights

    def _first_states(self, batch: Minibatch) -> Array:
        first = self.ledger.shares.read(batch.starts)
        return np.asarray(first @ (self._weights(batch) * batch.is_first))

    # ---- what lies around them ---------------------------------------------------------------------------------------

    def _enter(self, batch: Minibatch, chain: Chain, excludes: bool) -> tuple[Array, Array]:
        """Weights of first states, and backward messages of last states, given the marginals of neighbours."""
        n_states, shares = len(chain.initial), self.ledger.shares
        start = np.repeat(chain.initial[:, None], batch.size, axis=1)
        stop = np.ones((n_states, batch.size))
        begins, ends = np.flatnonzero(~batch.is_first), np.flatnonzero(~batch.is_last)
        if len(begins):
            moves = self._without_neighbour(batch, begins, -1, chain, excludes)
            before = shares.read(batch.starts[begins] - 1)
            start[:, begins] = moves.T @ before
        if len(ends):
            moves = self._without_neighbour(batch, ends, 1, chain, excludes)
            after = shares.read((batch.starts + batch.lengths)[ends])
            stop[:, ends] = moves @ after
        return start, stop

    def _without_neighbour(self, batch: Minibatch, lanes: Index, side: int, chain: Chain, excludes: bool) -> Array:
        """Moves under the counts that exclude the neighbours' own shares too, where these are known one by one."""
        ledger, layout = self.ledger, self.ledger.clusters
        to_left = side < 0 and self.algorithm.by_counts
        if not excludes or self.algorithm.cluster_size > 1:
            return self._weighed(chain.transition) if to_left else chain.transition
        assert len(lanes) == 1
        neighbour = batch.pieces[lanes] + side
        pairs = ledger.shares.pairs[layout.share_of[neighbour[0]]] + 0.0
        is_end = layout.is_first[neighbour[0]] if side < 0 else layout.is_last[neighbour[0]]
        if not is_end:
            pairs += ledger.border_pairs(neighbour if side < 0 else neighbour + 1)
        nothing = np.zeros(len(chain.initial))
        ledger.chain.blend(1.0, 0.0, -1.0, nothing, pairs)
        moves = ledger.chain.surrogate("predictive").transition
        if to_left:
            moves = self._weighed(moves)
        ledger.chain.blend(1.0, 0.0, 1.0, nothing, pairs)
        return np.asarray(moves)

    def _weighed(self, transition: Array) -> Array:
        return np.asarray(transition * self.ledger.chain.row_totals()[:, None])

    # ---- the objective -----------------------------------------------------------------------------------------------

    def _report(
        self, batch: Minibatch, surrogate: Surrogate, positions: Index, run: MinibatchRun, start: Array, stop: Array
    ) -> None:
        """Add log normalisers and the entropy of the new marginals to what will be reported."""
        ledger, weights = self.ledger, self._weights(batch)
        meeting = (run.ends.last_message * stop).sum(axis=0)
        normalizer = float(weights @ (run.log_totals + np.log(meeting)))
        ledger.since[0] += normalizer
        if not ledger.measures:
            return
        marginals = ledger.shares.new.read(positions) * np.repeat(weights, batch.lengths)
        _, logs = Observed(surrogate, self.problem.whole).log_likelihood(positions)
        expected = dot(marginals, logs.T)
        for table, marginal in (
            (start, run.ends.first_marginal * weights),
            (stop, run.ends.last_marginal * weights),
            (surrogate.transition, run.statistics.pairs),
        ):
            with np.errstate(divide="ignore"):
                expected += dot(marginal, np.log(table))
        ledger.since[1] += normalizer - expected
