"""Iterations of collapsed inference: passes that visit one cluster after the other.

A visitor updates the clusters. `PieceVisitor` is for any family and any prior over the chain: it
takes pieces out of the ledger, runs them as lanes, and puts them back. Words have visitors of their own, compiled
(`cvi_words.py`), and so have single states (`cvi_states.py`).
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from subchain.data.legal_states import LegalStates
from subchain.engines.part import Observed
from subchain.engines.statistics import HMMStatistics
from subchain.engines.subchains import Minibatch, MinibatchRun
from subchain.engines.surrogate import Surrogate
from subchain.errors import InputError
from subchain.inference.collapsed.clusters import Clusters, has_plain_words, positions_of
from subchain.inference.collapsed.cvi_listed import LegalVisitor
from subchain.inference.collapsed.cvi_states import StateVisitor
from subchain.inference.collapsed.cvi_words import WordVisitor
from subchain.inference.collapsed.ledger import Ledger, dot
from subchain.inference.run.chains import ChainProblem
from subchain.inference.run.interrupts import Postponed
from subchain.inference.run.loop import RunState, Step, Trial
from subchain.inference.start.local_starts import LOCAL_STARTS
from subchain.structures.chain.model import HMMPosterior
from subchain.transitions.base import Chain, ChainSums
from subchain.transitions.dirichlet import DirichletChain

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


class Visitor(Protocol):
    """Visits clusters.

    Attributes
    ----------
    at_once : clusters between two checks for an interruption
    """

    at_once: int

    def visit(self, clusters: Index, *, excludes: bool, puts_back: bool) -> None:
        """Give clusters new marginals under the counts, with or without their own shares in them; put these back."""


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
        legal = _legal(problem)
        are_words = has_plain_words(problem) and (algorithm.exclude or algorithm.cluster_size == 1)
        listed = legal is not None and are_words
        prior: Any = state.results.prior or problem.prior
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
        measures = {"left_out": float(left_out) + self.log_scale if is_probability else math.nan}
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


def _visitor(problem: ChainProblem, algorithm: CVI, ledger: Ledger, are_words: bool) -> Visitor:
    """The fastest visitor that can do what is asked for."""
    if algorithm.cluster == "state" and algorithm.corrections:
        return StateVisitor(problem, algorithm, ledger)
    if not are_words:
        return PieceVisitor(problem, algorithm, ledger)
    return (LegalVisitor if ledger.shares.is_compressed else WordVisitor)(algorithm, ledger)


class PieceVisitor:
    """Visits clusters of any family, the pieces of a cluster side by side."""

    at_once = 1

    def __init__(self, problem: ChainProblem, algorithm: CVI, ledger: Ledger) -> None:
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
        ledger, layout, whole = self.ledger, self.ledger.clusters, self.problem.structure
        pieces = layout.pieces(cluster)
        batch, borders = layout.batch(pieces), layout.borders(pieces)
        row = int(layout.share_of[pieces[0]])
        positions = positions_of(batch.starts, batch.lengths)
        own = ledger.emission_share(cluster, batch)
        own_pairs = ledger.shares.pairs[row] + ledger.border_pairs(borders)
        own_chain = ChainSums(self._first_states(batch), own_pairs)
        if excludes:
            ledger.chain.blend(1.0, -1.0, own_chain)
            ledger.emission.blend(1.0, -1.0, own)
        chain = ledger.chain.surrogate("predictive")
        surrogate = Surrogate(chain.initial, chain.transition, ledger.emission.surrogate("predictive"))
        start, stop = self._enter(batch, chain, excludes)
        run = whole.engine.minibatch(surrogate, whole, batch, start, stop, keep=ledger.shares.new.write)
        self._report(batch, surrogate, positions, run, start, stop)
        ledger.keep_emission_share(cluster, run.statistics.emission)
        if not puts_back:
            if excludes:
                ledger.chain.blend(1.0, 1.0, own_chain)
                ledger.emission.blend(1.0, 1.0, own)
        else:
            if not excludes:
                ledger.chain.blend(1.0, -1.0, own_chain)
                ledger.emission.blend(1.0, -1.0, own)
            pairs = run.statistics.pairs + ledger.border_pairs(borders)
            ledger.chain.blend(1.0, 1.0, ChainSums(run.statistics.initial, pairs))
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
        ledger.chain.blend(1.0, -1.0, ChainSums(nothing, pairs))
        moves = ledger.chain.surrogate("predictive").transition
        if to_left:
            moves = self._weighed(moves)
        ledger.chain.blend(1.0, 1.0, ChainSums(nothing, pairs))
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
        _, logs = Observed(surrogate, self.problem.structure).log_likelihood(positions)
        expected = dot(marginals, logs.T)
        for table, marginal in (
            (start, run.ends.first_marginal * weights),
            (stop, run.ends.last_marginal * weights),
            (surrogate.transition.dense(), run.statistics.pairs),
        ):
            with np.errstate(divide="ignore"):
                expected += dot(marginal, np.log(table))
        ledger.since[1] += normalizer - expected
