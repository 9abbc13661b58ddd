"""The ledger of collapsed inference: what has been counted, and what each cluster has put in.

Whatever a cluster has put into the statistics can be taken out again, exactly: its beliefs and its expected moves are
kept, in memory or in a file. The statistics are the sum of all shares at any time, to rounding, and are summed anew now
and then so that rounding does not add up.
"""

from __future__ import annotations

import contextlib
import copy
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.legal import LegalStates
from subchain.emissions.categorical import DirichletTable
from subchain.emissions.moving import Moving
from subchain.engines.subchains import Minibatch
from subchain.errors import InputError
from subchain.inference.base import Algorithm
from subchain.inference.clusters import Clusters, positions_of
from subchain.inference.holes import has_holes
from subchain.inference.listed_counts import add_moves, move_blocks
from subchain.inference.local_starts import LOCAL_STARTS, draw_local, no_restriction, spread_out
from subchain.inference.loop import Memory
from subchain.inference.posterior import Point
from subchain.inference.problem import Problem
from subchain.records import build_record
from subchain.statistics import Statistics

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Values of a table of beliefs that are spelt out at a time.
BLOCK_VALUES = 1 << 20
#: Sums that should be zero may differ from it by this.
ROUNDING = 1e-9


class Shares:
    """What the clusters have put in: beliefs of all positions, and expected moves of each cluster.

    Parameters
    ----------
    legal : legal states, or None if every state is legal everywhere
    n_states : number of states
    clusters : who has shares
    listed : whether expected moves are kept for pairs of legal states only
    folder : where the tables live, in files with names that nobody else has, or None for memory

    Attributes
    ----------
    beliefs : (entries,) one number for each legal state of each position, or for all states of each
    pairs : (S, K, K) expected moves of each cluster, see `Clusters.share_of`
    moves, blocks : (entries,), (N + 1,) the same as lists, see `listed_counts`; then `pairs` has a single, empty row
    """

    def __init__(
        self, legal: LegalStates | None, n_states: int, clusters: Clusters, listed: bool, folder: Any
    ) -> None:
        self.n_states = n_states
        self.offsets, self.states = no_restriction() if legal is None else (legal.offsets, legal.states)
        self.log_weights = None if legal is None else legal.log_weights
        #: What soft evidence multiplies likelihoods by, the largest at each position being one; empty without any.
        self.factors, self.log_scale = np.empty(0), 0.0
        if self.log_weights is not None and len(self.log_weights):
            largest = np.maximum.reduceat(self.log_weights, self.offsets[:-1])
            self.factors = np.exp(self.log_weights - np.repeat(largest, np.diff(self.offsets)))
            self.log_scale = float(largest.sum())
        entries = int(clusters.lengths.sum()) * n_states if legal is None else legal.n_entries
        self.blocks = np.empty(0, dtype=np.int64)
        n_pairs, n_moves = clusters.n_shares * n_states**2, 0
        if listed:
            self.blocks = move_blocks(clusters.starts, clusters.lengths, self.offsets)
            n_pairs, n_moves = n_states**2, int(self.blocks[-1])
        self._sizes = entries, n_pairs, n_moves
        self.path = None if folder is None else Path(folder) / f"{secrets.token_hex(8)}.shares"
        self._copies: list[int] = []
        self._adopt(self._allocate(""))
        #: Where new shares are written: here, or elsewhere while the old ones are still needed.
        self.new = self

    @property
    def is_compressed(self) -> bool:
        return len(self.offsets) > 0

    @property
    def nbytes(self) -> int:
        """Bytes of both tables."""
        return 8 * sum(self._sizes)

    def _allocate(self, suffix: str) -> Array:
        if self.path is None:
            return np.zeros(sum(self._sizes))
        path = self.path.with_name(self.path.name + suffix)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return np.memmap(path, dtype=np.float64, mode="w+", shape=(sum(self._sizes),))
        except OSError as error:
            raise InputError(
                f"CVI: storage={str(path.parent)!r} cannot hold {self.nbytes / 1e6:.0f} MB of beliefs and moves: "
                f"{error.strerror}; choose a folder with room in which files can be made."
            ) from None

    def _adopt(self, flat: Array) -> None:
        beliefs, pairs, self.moves = np.split(flat, np.cumsum(self._sizes[:2]))
        self.beliefs, self.pairs = beliefs, pairs.reshape(-1, self.n_states, self.n_states)
        self._flat = flat

    @contextlib.contextmanager
    def writing(self, in_place: bool) -> Iterator[None]:
        """While this is open, new shares are written over the old ones, or take their place when it is closed."""
        if in_place:
            yield
            return
        self.new = copy.copy(self)
        self.new._adopt(self._allocate(".new"))
        try:
            yield
            self._flat[:] = self.new._flat
        finally:
            self.new = self
            if self.path is not None:
                self.path.with_name(self.path.name + ".new").unlink(missing_ok=True)

    def all_pairs(self) -> Array:
        """Expected moves inside all clusters together."""
        if len(self.blocks):
            return self.listed_pairs(0, len(self.blocks) - 1)
        return np.asarray(self.pairs.sum(axis=0))

    def listed_pairs(self, first: int, last: int) -> Array:
        """Expected moves between positions, those between clusters left out, where they are kept as lists."""
        total, rows = np.zeros((self.n_states, self.n_states)), np.zeros(self.n_states)
        add_moves(1.0, first, last, self.offsets, self.states, self.blocks, self.moves, total, rows)
        return total

    # ---- positions ---------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> Array:
        """Beliefs as a table (N, K), where every state is legal."""
        return self.beliefs.reshape(-1, self.n_states)

    def table(self, first: int, last: int) -> Array:
        """Beliefs of neighbouring positions, (K, n)."""
        if self.is_compressed:
            entries = self.beliefs[self.offsets[first] : self.offsets[last]]
        else:
            entries = self.beliefs[first * self.n_states : last * self.n_states]
        return spread_out(entries, first, last, self.offsets, self.states, self.n_states)

    def read(self, positions: Index) -> Array:
        """Beliefs of any positions, (K, n)."""
        if not self.is_compressed:
            return np.ascontiguousarray(self.rows[positions].T)
        table = np.zeros((self.n_states, len(positions)))
        entries, columns = self._entries(positions)
        table[self.states[entries], columns] = self.beliefs[entries]
        return table

    def write(self, positions: Index, table: Array) -> None:
        """Replace the beliefs of any positions by those of a table (K, n)."""
        if not self.is_compressed:
            self.rows[positions] = table.T
            return
        entries, columns = self._entries(positions)
        self.beliefs[entries] = table[self.states[entries], columns]

    def _entries(self, positions: Index) -> tuple[Index, Index]:
        """Entries of positions, and the column that each belongs to."""
        counts = self.offsets[positions + 1] - self.offsets[positions]
        columns = np.repeat(np.arange(len(positions)), counts)
        within = np.arange(len(columns)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.offsets[positions][columns] + within, columns

    # ---- files -------------------------------------------------------------------------------------------------------

    def memory(self) -> Memory:
        """What a checkpoint keeps: the tables, or the number in the name of the copy that was just made of them."""
        if self.path is None:
            return {"shares": np.array(self._flat)}
        number = secrets.randbits(63)
        partial = self._copy(number).with_suffix(".partial")
        np.asarray(self._flat).tofile(partial)
        os.replace(partial, self._copy(number))
        self._copies.append(number)
        return {"copy": np.array(number)}

    def kept(self) -> None:
        """A checkpoint has been written: older copies are not needed any more."""
        for number in self._copies[:-1]:
            self._copy(number).unlink(missing_ok=True)
        self._copies = self._copies[-1:]

    def restore(self, memory: Memory) -> None:
        """The inverse of `memory`."""
        if ("copy" in memory) != (self.path is not None):
            raise InputError("the checkpoint was written with another CVI(storage=...); resume as the run was begun.")
        found = memory.get("shares")
        if self.path is not None:
            number = int(memory["copy"])
            if not self._copy(number).exists():
                raise InputError(
                    f"{self._copy(number)} is missing, which the checkpoint needs; resume with the folder as it was."
                )
            found, self._copies = np.fromfile(self._copy(number)), [number]
        if found is None or len(found) != len(self._flat):
            raise InputError("the beliefs that the checkpoint knows do not fit the data; it belongs to another fit.")
        self._flat[:] = found

    def _copy(self, number: int) -> Path:
        assert self.path is not None
        return self.path.with_name(f"{number:016x}.copy")


class Ledger:
    """Counts that make the surrogates, and everybody's share in them.

    Attributes
    ----------
    chain, emission : the posteriors that the counts make, ready to move
    shares, clusters : who has put in what
    measures : whether entropies are wanted
    since : (2,) log normalisers and entropies of the clusters since the last report
    """

    def __init__(
        self, problem: Problem, algorithm: Algorithm, clusters: Clusters, legal: LegalStates | None, listed: bool,
        folder: Any,
    ) -> None:  # fmt: skip
        whole, prior = problem.whole, problem.prior
        self.prior = prior
        self.algorithm = algorithm
        self.clusters = clusters
        self.data, self.evidence = whole.data, whole.evidence
        mean = prior.mean()
        self.n_states = len(mean.chain.initial)
        self.reference = self.accumulator = mean.emission
        #: Moves that can happen at all; neighbours that are believed independent may seem to make others.
        self.possible = mean.chain.transition > 0.0
        self.shares = Shares(legal, self.n_states, clusters, listed, folder)
        #: What clusters have put into the emission's sums, where their beliefs do not tell.
        self.own: OwnSums | None = None
        if has_holes(self.reference, self.data.values):
            self.own = OwnSums(self.reference.zeros(), clusters.size)
        self.cursor, self.iteration = 0, 0
        self.measures = True
        self.since = np.zeros(2)
        self._known: dict[str, Any] = {}
        self.chain: Any = None
        self.emission: Any = None

    # ---- beginnings --------------------------------------------------------------------------------------------------

    def draw(self, kind: str, seed: int) -> None:
        """Begin with local posteriors that are drawn."""
        if kind == "states" and not self.possible.all():
            raise InputError(
                "init='states' draws every state by itself and makes moves that the transition prior forbids; use "
                "init='posteriors' or init='exponential'."
            )
        clusters, shares = self.clusters, self.shares
        draw_local(
            LOCAL_STARTS.index(kind), np.uint64(seed), clusters.starts, clusters.lengths,
            self._weights(clusters.sequences), 0, shares.offsets, shares.states, self.n_states, shares.beliefs,
            shares.pairs, clusters.share_of, shares.blocks, shares.moves,
        )  # fmt: skip
        shares.pairs *= self.possible
        if self.own is not None:
            for cluster in range(clusters.size):
                self.own.put(cluster, self._accumulate(clusters.batch(clusters.pieces(cluster)), shares))
        self.add_up()

    def begin(self, statistics: Statistics) -> None:
        """Begin with the counts of a start, in which nobody has a share yet; all legal states are as likely."""
        shares = self.shares
        if shares.is_compressed:
            counts = np.diff(shares.offsets)
            shares.beliefs[:] = np.repeat(1.0 / counts, counts)
        else:
            shares.beliefs[:] = 1.0 / self.n_states
        self._move_from(statistics)

    def _move_from(self, statistics: Statistics) -> None:
        self.chain = self.prior.chain.moving(statistics.initial, statistics.pairs)
        prior = self.prior.emission
        if isinstance(prior, DirichletTable):
            counts: Any = statistics.emission
            self.emission = prior.moving(counts)
            self.accumulator = self.emission.surrogate("predictive")
        else:
            self.emission, self.accumulator = Moving(prior, statistics.emission), self.reference
        self.moved()

    # ---- one cluster -------------------------------------------------------------------------------------------------

    def emission_share(self, cluster: int, batch: Minibatch) -> Any:
        """What a cluster, whose pieces are given, has put into the emission's sums."""
        return self._accumulate(batch, self.shares) if self.own is None else self.own.of(cluster)

    def keep_emission_share(self, cluster: int, sums: Any) -> None:
        """Remember what a cluster puts in, if that cannot be told later."""
        if self.own is not None:
            self.own.put(cluster, sums)

    def _accumulate(self, batch: Minibatch, shares: Shares) -> Any:
        positions = positions_of(batch.starts, batch.lengths)
        beliefs = shares.read(positions)
        if batch.user_weights is not None:
            beliefs *= np.repeat(batch.user_weights, batch.lengths)
        sums = self.accumulator.zeros()
        self.accumulator.accumulate(np.take(self.data.values, positions, axis=0), beliefs, sums)
        return sums

    # ---- sums --------------------------------------------------------------------------------------------------------

    def add_up(self) -> None:
        """Sum all shares anew."""
        self._move_from(self._sum())

    def _sum(self) -> Statistics:
        clusters, shares = self.clusters, self.shares
        total = Statistics.zeros(self.n_states, self.reference.zeros())
        for first, last in self._blocks():
            table = self._weighed_table(first, last)
            if self.own is None:
                self.reference.accumulate(np.asarray(self.data.values[first:last]), table, total.emission)
        if self.own is not None:
            total.emission = self.own.total()
        begins = clusters.starts[clusters.is_first]
        weights = self._weights(clusters.sequences[clusters.is_first])
        total.initial += shares.read(begins) @ weights
        total.pairs += shares.all_pairs()
        inner = np.flatnonzero(~clusters.is_first)
        for some in np.array_split(inner, max(1, len(inner) * self.n_states // BLOCK_VALUES)):
            total.pairs += self.border_pairs(some)
        total.n_observations = float(self.data.n_observations)
        return total

    def _blocks(self) -> Iterator[tuple[int, int]]:
        rows = max(BLOCK_VALUES // self.n_states, 1)
        n = self.data.n_observations
        return ((first, min(first + rows, n)) for first in range(0, n, rows))

    def _weights(self, sequences: Index) -> Array:
        weights = self.clusters.weights
        return np.ones(len(sequences)) if weights is None else weights[sequences]

    def border_pairs(self, pieces: Index) -> Array:
        """Expected moves into the given pieces from the pieces before them, which are believed independent."""
        at = self.clusters.starts[pieces]
        weights = self._weights(self.clusters.sequences[pieces])
        return np.asarray((self.shares.read(at - 1) * weights) @ self.shares.read(at).T * self.possible)

    def expected_log_joint(self) -> float:
        """Plug-in log joint of observations and states: what the counts would be worth if they were whole."""
        statistics = self.statistics
        of_moves = float(self.prior.chain.log_evidence(statistics.initial, np.maximum(statistics.pairs, 0.0)))
        return of_moves + self._of_emissions(statistics.emission) + self._expected_evidence()

    def _of_emissions(self, sums: Any) -> float:
        """The same for the observations given the states; where sums do not tell, by the bound that is exact here."""
        prior = self.prior.emission
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
            return dot(shares.beliefs, shares.log_weights)
        positions = np.repeat(np.arange(self.data.n_observations), np.diff(shares.offsets))
        of_sequence = np.searchsorted(self.data.offsets, positions, side="right") - 1
        return dot(shares.beliefs * weights[of_sequence], shares.log_weights)

    def _expected_emission(self, posterior: Any) -> float:
        """Expected log likelihood of all observations, the parameters being uncertain."""
        surrogate = posterior.expected_log()
        known = surrogate.expected(self.statistics.emission)
        if known is not None:
            return float(known)
        total = 0.0
        for first, last in self._blocks():
            table = self._weighed_table(first, last)
            total += dot(table, surrogate.log_likelihood(np.asarray(self.data.values[first:last])))
        return total

    def _weighed_table(self, first: int, last: int) -> Array:
        """Beliefs of neighbouring positions, (K, n), times the weights of their sequences."""
        table, weights = self.shares.table(first, last), self.clusters.weights
        if weights is not None:
            table *= weights[np.searchsorted(self.data.offsets, np.arange(first, last), side="right") - 1]
        return table

    # ---- results of a run --------------------------------------------------------------------------------------------

    def moved(self) -> None:
        """The counts have changed: what was spelt out is out of date."""
        self._known.clear()

    @property
    def statistics(self) -> Statistics:
        if "statistics" not in self._known:
            self._known["statistics"] = Statistics(
                self.chain.initial.copy(), self.chain.pairs.copy(), self.emission.sums(), 0.0,
                float(self.data.n_observations),
            )  # fmt: skip
        found: Statistics = self._known["statistics"]
        return found

    reported = statistics

    @property
    def point(self) -> Point:
        if "point" not in self._known:
            self._known["point"], _ = self.algorithm.point(self.prior.update(self.statistics), self.statistics, None)
        found: Point = self._known["point"]
        return found

    @property
    def memory(self) -> Memory:
        memory: Memory = {"cursor": np.array([self.cursor, self.iteration]), "since": self.since.copy()}
        memory |= {f"emission.{key}": array for key, array in self.emission.memory().items()}
        if self.own is not None:
            memory |= self.own.memory()
        return memory | self.shares.memory()

    def kept(self) -> None:
        """A checkpoint has been written."""
        self.shares.kept()

    def restore(self, memory: Memory, statistics: Statistics) -> None:
        """Go on where a checkpoint was written."""
        self.shares.restore(memory)
        self.cursor, self.iteration = (int(number) for number in memory["cursor"])
        self.since = np.array(memory["since"])
        self._move_from(statistics)
        own = {key.removeprefix("emission."): array for key, array in memory.items() if key.startswith("emission.")}
        self.emission.restore(own)
        if self.own is not None:
            self.own.restore(memory)


class OwnSums:
    """What each cluster has put into a family's sums, for families whose sums depend on more than beliefs.

    Parameters
    ----------
    like : empty sums
    size : number of clusters
    """

    def __init__(self, like: Any, size: int) -> None:
        self.schema = like.schema()
        self.arrays = {name: np.repeat(array[None], size, axis=0) for name, array in like.arrays().items()}

    def of(self, cluster: int) -> Any:
        return build_record(self.schema, {name: array[cluster].copy() for name, array in self.arrays.items()})

    def put(self, cluster: int, sums: Any) -> None:
        for name, array in sums.arrays().items():
            self.arrays[name][cluster] = array

    def total(self) -> Any:
        """The sums of all clusters."""
        total = self.of(0)
        for cluster in range(1, len(next(iter(self.arrays.values())))):
            total.absorb(self.of(cluster))
        return total

    def memory(self) -> Memory:
        return {f"own.{name}": array for name, array in self.arrays.items()}

    def restore(self, memory: Memory) -> None:
        for name, array in self.arrays.items():
            array[:] = memory[f"own.{name}"]


def dot(weights: Array, logs: Array) -> float:
    """Σ weights · logs, where what has no weight, but for rounding, counts nothing."""
    counts = weights > np.where(logs > -np.inf, 0.0, ROUNDING)
    return float(np.sum(np.where(counts, weights * np.where(counts, logs, 0.0), 0.0)))
