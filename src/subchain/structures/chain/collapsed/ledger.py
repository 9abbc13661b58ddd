"""The ledger of collapsed inference: what has been counted, and what each cluster has put in.

Whatever a cluster has put into the statistics can be taken out again, exactly. The statistics are the sum of all shares
at any time, to rounding, and are summed anew now and then so that rounding does not add up.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory, Posterior
from subchain.core.ranges import SUM_TOLERANCE
from subchain.core.records import Record
from subchain.core.statistics import Statistics
from subchain.data.legal_states import LegalStates
from subchain.data.mapped import intact
from subchain.emissions.base import Likelihood
from subchain.emissions.collapsed.counts import EmissionCounts
from subchain.emissions.incremental import Incremental
from subchain.engines.statistics import HMMStatistics
from subchain.errors import FileFormatError
from subchain.propagation.compiled import kernel
from subchain.structures.chain.collapsed.clusters import Clusters
from subchain.structures.chain.collapsed.missing_coordinates import has_incomplete_rows
from subchain.structures.chain.collapsed.sharding import Sharding, sharding_of
from subchain.structures.chain.collapsed.shares import OwnSums, Shares
from subchain.structures.chain.collapsed.visitors import PieceVisitor, StateVisitor
from subchain.structures.chain.local_starts import LOCAL_STARTS, check_drawable, draw_local
from subchain.structures.chain.model import HMMPoint, HMMPosterior
from subchain.structures.settings import CollapsedSettings
from subchain.transitions.base import Chain, ChainSums
from subchain.transitions.hdp.collapsed_top import CollapsedChain

if TYPE_CHECKING:
    from subchain.structures.chain.structure import Chains
from subchain.structures.passes import Passes

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Entries of a table of marginals that are expanded at a time.
BLOCK_VALUES = 1 << 20
#: Passes between two estimates of how probable it is that transitions happen at all.
LOOK = 5
#: Sums that should be zero may differ from it by this.
ROUNDING = 1e-9


class ChainLedger(Passes):
    """The expected counts of chains, and what each cluster has contributed to them; see `structures.base.Ledger`.

    Attributes
    ----------
    chain : the posterior of transitions that the counts make, ready to change
    emission : `EmissionCounts`, or `Incremental` for families that have none
    shares, clusters : who has put in what
    measures : whether entropies are wanted
    since : (2,) log normalisers and entropies of the clusters since the last report
    last_pass : (3,) see `structures.base.Ledger`
    """

    needs_others = True

    def __init__(self, chains: Chains, settings: CollapsedSettings, prior: HMMPosterior) -> None:
        self.chains = chains
        self.settings = settings
        self.current_prior = prior
        self.data = chains.data
        length = settings.piece_length(self.data.lengths)
        self.clusters = Clusters(self.data.offsets, length, settings.cluster_size, chains.weights)
        super().__init__(self.clusters.size)
        mean = prior.mean()
        self.n_states = len(mean.chain.initial)
        self.n_marginals = self.data.n_observations * self.n_states
        self.reference = mean.emission
        #: Transitions that are possible; neighbours that are taken to be independent may seem to make others.
        self.possible = mean.chain.transition > 0.0
        self.shares = Shares(_legal(chains), self.n_states, self.clusters, settings.storage)
        self.log_scale = self.shares.log_scale
        #: What clusters have put into the emission's sums, where it does not follow from their marginals.
        self.own: OwnSums | None = None
        if has_incomplete_rows(self.reference, self.data.values):
            self.own = OwnSums(self.reference.zeros(), self.size)
        self._known: dict[str, Any] = {}
        self.chain: Any = None
        self.emission: Any = None
        #: Shards of clusters that are visited side by side, if these are asked for and visits are compiled.
        self.sharding: Sharding | None = None
        by_state = settings.cluster == "state" and settings.corrections
        self.visitor = (StateVisitor if by_state else PieceVisitor)(settings, self)

    # ---- beginnings --------------------------------------------------------------------------------------------------

    def draw(self, kind: str, seed: int) -> None:
        """Begin with local posteriors that are drawn."""
        check_drawable(kind, self.current_prior.mean().chain)
        clusters, shares = self.clusters, self.shares
        draw_local(
            LOCAL_STARTS.index(kind), np.uint64(seed), clusters.starts, clusters.lengths,
            clusters.weights_of(clusters.sequences), 0, shares.legal, self.n_states, shares.marginals, shares.pairs,
            clusters.share_of, (shares.blocks, shares.moves),
        )  # fmt: skip
        shares.forget_impossible(self.possible)
        self._begin_where_possible()
        if self.own is not None:
            for cluster in range(clusters.size):
                self.own.put(cluster, self.accumulate(self.reference, clusters.pieces(cluster), shares))
        self.add_up()

    def _begin_where_possible(self) -> None:
        """Take impossible first states out of drawn marginals."""
        shares, possible = self.shares, self.current_prior.mean().chain.initial > 0.0
        if possible.all():
            return
        for position in self.clusters.starts[self.clusters.is_first]:
            here = slice(position * self.n_states, (position + 1) * self.n_states)
            if shares.is_compressed:
                here = slice(*shares.legal.offsets[position : position + 2])
            own = shares.marginals[here]
            own *= possible[shares.legal.states[here]] if shares.is_compressed else possible
            if own.sum() > 0.0:  # else the sequence is impossible, as the first visit will find
                own /= own.sum()

    def adopt(self, prior: Posterior) -> None:
        self.current_prior = cast(HMMPosterior, prior)

    def begin(self, statistics: Statistics) -> None:
        """Begin with the marginals under the counts of a start, to which no cluster has contributed."""
        shares = self.shares
        if shares.is_compressed:
            counts = np.diff(shares.legal.offsets)
            shares.marginals[:] = np.repeat(1.0 / counts, counts)
        else:
            shares.marginals[:] = 1.0 / self.n_states
        self._move_from(cast(HMMStatistics, statistics))
        self.cursor = 0
        while self.cursor < self.size:
            self.visit_next(np.arange(self.size), excludes=False, puts_back=False)
        self.cursor, self.since = 0, np.zeros(2)
        self.add_up()

    def _move_from(self, statistics: HMMStatistics) -> None:
        self.chain = self.current_prior.chain.incremental(statistics.chain)
        self._count_emissions(statistics.emission)
        self.moved()

    def _count_emissions(self, sums: Any) -> None:
        prior = self.current_prior.emission
        counts = prior.counts(sums, self.data.values) if self.own is None else None
        self.emission = Incremental(prior, sums) if counts is None else counts
        if self.settings.order == "shards" and counts is not None:
            if self.sharding is None:
                self.sharding = sharding_of(self)
            self.sharding.adopt(counts)

    # ---- visits ------------------------------------------------------------------------------------------------------

    @property
    def is_compiled(self) -> bool:
        return isinstance(self.emission, EmissionCounts)

    def visit(self, clusters: Index, *, excludes: bool, puts_back: bool) -> None:
        """Give clusters new marginals under the counts, with or without their own shares in them; put these back."""
        self.visitor.visit(clusters, excludes=excludes, puts_back=puts_back)
        self.moved()

    def visit_next(self, order: Index, *, excludes: bool, puts_back: bool) -> None:
        with self._intact():
            if self.sharding is None or self.sharding.n_shards == 1:
                some = order[self.cursor : self.cursor + self.visitor.at_once]
                self.visit(some, excludes=excludes, puts_back=puts_back)
                self.cursor += len(some)
            else:
                self.cursor = self.sharding.visit(self.cursor, self.visitor.how(excludes, puts_back))
                self.moved()

    def _intact(self) -> contextlib.AbstractContextManager[None]:
        """Return a context at whose end an error is raised if a file of the data or of shares has changed."""
        return intact(self.data.file, self.shares.file, self.shares.new.file)

    @contextlib.contextmanager
    def writing(self, in_place: bool) -> Iterator[None]:
        """Write new shares over the old ones, or in their place when the context ends without an exception."""
        own = None if in_place else copy.deepcopy(self.own)
        try:
            with self.shares.writing(in_place):
                yield
        except KeyboardInterrupt:
            if not in_place:
                self.own = own
            raise

    def trying(self) -> contextlib.AbstractContextManager[None]:
        """Delete copies of shares that are made while the context is open when it ends."""
        return self.shares.trying()

    # ---- one cluster of a family that is visited in Python -----------------------------------------------------------

    def emission_share(self, cluster: int) -> Any:
        """What a cluster has put into the emission's sums."""
        if self.own is not None:
            return self.own.of(cluster)
        return self.accumulate(self.reference, self.clusters.pieces(cluster), self.shares)

    def keep_emission_share(self, cluster: int, sums: Any) -> None:
        """Keep what a cluster puts in, if that does not follow from its marginals."""
        if self.own is not None:
            self.own.put(cluster, sums)

    def accumulate(self, likelihood: Likelihood, pieces: Index, shares: Shares) -> Any:
        """The emission's sums of pieces with these marginals, as a likelihood sees them."""
        positions = self.clusters.positions(pieces)
        weights = self.clusters.weights_of(self.clusters.sequences[pieces])
        marginals = shares.read(positions) * np.repeat(weights, self.clusters.lengths[pieces])
        sums = likelihood.zeros()
        likelihood.accumulate(self.data.at(positions), marginals, sums)
        return sums

    # ---- sums --------------------------------------------------------------------------------------------------------

    def add_up(self) -> None:
        """Sum all shares anew."""
        with self._intact():
            total = self._sum()
        self._move_from(total)

    def check_sum(self, statistics: Statistics) -> None:
        if not cast(HMMStatistics, statistics).is_close(self._sum(), SUM_TOLERANCE):
            raise FileFormatError("the statistics are not the sum of the shares of all clusters")

    def _sum(self) -> HMMStatistics:
        clusters, shares = self.clusters, self.shares
        total = HMMStatistics.zeros(self.n_states, self._sum_emissions())
        begins = clusters.starts[clusters.is_first]
        weights = clusters.weights_of(clusters.sequences[clusters.is_first])
        total.chain.initial += shares.read(begins) @ weights
        total.chain.pairs += shares.all_pairs()
        inner = np.flatnonzero(~clusters.is_first)
        for some in np.array_split(inner, max(1, len(inner) * self.n_states // BLOCK_VALUES)):
            total.chain.pairs += self.border_pairs(some)
        total.n_observations = self.chains.total_weight
        return total

    def _sum_emissions(self) -> Any:
        if self.own is not None:
            return self.own.total()
        sums = self.reference.zeros()
        for first, last in self._blocks():
            table = self._weighed_table(first, last)
            self.reference.accumulate(np.asarray(self.data.values[first:last]), table, sums)
        return sums

    def _blocks(self) -> Iterator[tuple[int, int]]:
        rows = max(BLOCK_VALUES // self.n_states, 1)
        n = self.data.n_observations
        return ((first, min(first + rows, n)) for first in range(0, n, rows))

    def border_pairs(self, pieces: Index) -> Array:
        """Expected transitions into the given pieces from those before, which are taken to be independent.

        Impossible transitions are left out.
        """
        at = self.clusters.starts[pieces]
        weights = self.clusters.weights_of(self.clusters.sequences[pieces])
        total = np.zeros((self.n_states, self.n_states))
        _add_outer(np.ascontiguousarray(self.shares.read(at - 1).T), self.shares.read(at).T.copy(), weights, total)
        return np.asarray(total * self.possible)

    def expected_log_joint(self) -> float:
        """Plug-in log joint of observations and states: what the counts would be worth if they were whole."""
        statistics = self.statistics
        pairs = np.where(self.possible, np.maximum(statistics.pairs, 0.0), 0.0)  # rounding is not evidence
        of_moves = float(self.current_prior.chain.log_evidence(ChainSums(np.maximum(statistics.initial, 0.0), pairs)))
        with self._intact():
            of_data = self._of_emissions(statistics.emission) + self._expected_evidence()
        return of_moves + of_data + self.current_prior.log_hyperprior()

    def _of_emissions(self, sums: Any) -> float:
        """The same for the observations given the states; where sums do not tell, by the bound that is exact here."""
        prior = self.current_prior.emission
        known = prior.log_evidence(sums)
        if known is not None:
            return float(known)
        posterior = prior.update(sums)
        surrogate, total = posterior.expected_log(), 0.0
        for first, last in self._blocks():
            table = self._weighed_table(first, last)
            total += dot(table, surrogate.log_likelihood(np.asarray(self.data.values[first:last])))
        return total - float(posterior.kl(prior))

    def _expected_evidence(self) -> float:
        """What soft evidence adds."""
        shares, weights = self.shares, self.clusters.weights
        if shares.log_weights is None:
            return 0.0
        if weights is None:
            return dot(shares.marginals, shares.log_weights)
        positions = np.repeat(np.arange(self.data.n_observations), np.diff(shares.legal.offsets))
        of_sequence = np.searchsorted(self.data.offsets, positions, side="right") - 1
        return dot(shares.marginals * weights[of_sequence], shares.log_weights)

    def _weighed_table(self, first: int, last: int) -> Array:
        """Marginals of neighbouring positions, (K, n), times the weights of their sequences."""
        table, weights = self.shares.table(first, last), self.clusters.weights
        if weights is not None:
            table *= weights[np.searchsorted(self.data.offsets, np.arange(first, last), side="right") - 1]
        return table

    # ---- results of a run --------------------------------------------------------------------------------------------

    def moved(self) -> None:
        """Note that the counts have changed: derived values are out of date."""
        self._known.clear()

    def marginals(self) -> tuple[Array, Index, NDArray[np.int32]]:
        return np.asarray(self.shares.marginals), self.shares.legal.offsets, self.shares.legal.states

    @property
    def checked(self) -> list[Record]:
        """What must be finite after a visit."""
        return [Chain(self.chain.initial, self.chain.pairs)]

    @property
    def statistics(self) -> HMMStatistics:
        if "statistics" not in self._known:
            sums = self.emission.sums()
            self._known["statistics"] = HMMStatistics.of(
                self.chain.initial.copy(), self.chain.pairs.copy(), self._sum_emissions() if sums is None else sums,
                0.0, self.chains.total_weight,
            )  # fmt: skip
        found: HMMStatistics = self._known["statistics"]
        return found

    reported = statistics

    @property
    def point(self) -> HMMPoint:
        if "point" not in self._known:
            found = self.statistics
            sums = ChainSums(np.maximum(found.initial, 0.0), np.maximum(found.pairs, 0.0))  # rounding is not evidence
            self._known["point"] = self.current_prior.update(dataclasses.replace(found, chain=sums)).mean()
        point: HMMPoint = self._known["point"]
        return point

    @property
    def prior(self) -> HMMPosterior | None:
        return self.current_prior if self.current_prior.is_learned else None

    def update_hyperparameters(self) -> None:
        """Update what is learned of the prior."""
        if isinstance(self.current_prior.chain, CollapsedChain) and self.iteration % LOOK == 1:
            self.current_prior = dataclasses.replace(self.current_prior, chain=self._observed(self.current_prior.chain))
        self.current_prior = self.current_prior.update_hyperparameters(self.statistics)
        self.chain.adopt(self.current_prior.chain)
        if self.current_prior.emission.is_learned:
            self._count_emissions(self.emission.sums())
        self.moved()

    def _observed(self, chain: CollapsedChain) -> CollapsedChain:
        """Return the prior of transitions, told how probable it is that each of them happens at all."""
        weights, chains = self.current_prior.update(self.statistics).predictive(), self.chains
        found = chains.engine.occurrence(weights.surrogate(), chains, chain.occurrence_method)
        return chain.observe(found.first - self.chain.initial, found.moves - self.chain.pairs)

    @property
    def memory(self) -> Memory:
        memory = self.pass_memory()
        memory |= {f"emission.{key}": array for key, array in self.emission.memory().items()}
        if self.own is not None:
            memory |= self.own.memory()
        return memory | self.shares.memory()

    def checkpointed(self) -> None:
        """A checkpoint has been written."""
        self.shares.checkpointed()

    def restore(self, memory: Memory, statistics: Statistics) -> None:
        """Go on where a checkpoint was written."""
        with self._intact():
            self.shares.restore(memory)
        self.restore_passes(memory)
        self._move_from(cast(HMMStatistics, statistics))
        if self.sharding is not None:
            self.sharding.check_cursor(self.cursor)
        own = {key.removeprefix("emission."): array for key, array in memory.items() if key.startswith("emission.")}
        self.emission.restore(own)
        if self.own is not None:
            self.own.restore(memory)


@kernel
def _add_outer(before: Array, after: Array, weights: Array, pairs: Array) -> None:
    """Add weights[i] · before[i, j] · after[i, k] to pairs[j, k], (n, K) each, one after the other."""
    for i in range(before.shape[0]):
        for j in range(pairs.shape[0]):
            weight = weights[i] * before[i, j]
            if weight > 0.0:
                for k in range(pairs.shape[1]):
                    pairs[j, k] += weight * after[i, k]


def dot(weights: Array, logs: Array) -> float:
    """Σ weights · logs, where what has no weight, but for rounding, counts nothing."""
    counts = weights > np.where(logs > -np.inf, 0.0, ROUNDING)
    return float(np.sum(np.where(counts, weights * np.where(counts, logs, 0.0), 0.0)))


def _legal(chains: Chains) -> LegalStates | None:
    """Legal states of all positions; None if all are legal everywhere."""
    if chains.evidence is None:
        return None
    legal = chains.evidence.listed(chains.data)
    return None if legal.share == 1.0 and legal.log_weights is None else legal
