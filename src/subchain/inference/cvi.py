"""Collapsed variational inference (Wang 2016, chapter 3): parameters are summed out, clusters of states are visited.

    own       = what the cluster has put into the counts
    surrogate = the posterior predictive of the counts without it
    marginals = those of the cluster under it
    S         = S − own + new

`CVI.visit` does this for clusters of any structure. Hidden chains have compiled visits: the ledger of their counts is
`structures/chain/collapsed/ledger.py`, the kernels are `propagation/collapsed/pieces.py` (sequences, subchains) and
`states.py` (single states).

A cluster is a single state (algorithm 1, mean field), a whole sequence (algorithm 2), or a stretch of a sequence whose
neighbours send messages (algorithm 3). The plug-in objective that is reported need not rise: it is the bound of the
marginals as they are, not what the updates climb.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.checks import whole_number
from subchain.core.hyperparameters import LATE, rows_differ
from subchain.core.renamed import renamed_arguments
from subchain.errors import InputError, unknown_name
from subchain.inference.batch.passes import Iterated
from subchain.inference.collapsed.visits import Visits
from subchain.inference.run.algorithm import Files, Lists
from subchain.inference.run.loop import RunState
from subchain.inference.run.problem import Problem
from subchain.inference.run.training import BLOCK_VALUES
from subchain.structures.chain.model import HMMPoint, HMMPosterior

if TYPE_CHECKING:
    from subchain.structures.cluster_ledger import ClusterLedger

#: Tables of `BLOCK_VALUES` numbers that the objective, and marginals for decoding, are made with.
BLOCK_TABLES = 3
#: Bytes of a position that tell shards its symbol, and rounds in which they have at most a row for each position.
SHARD_BYTES, SHARD_ROUNDS = 12, 16
CLUSTERS = ("auto", "sequence", "state", "subchain")
#: A sequence that is more than this share of the data has to be cut: the rest would not tell enough.
LARGE_SHARE = 0.1
#: Subchains that the data are cut into, and their greatest length, if nothing else was said.
MANY, LONG = 100, 100
ORDERS = ("incremental", "shuffled", "shards", "batch")
WEIGHTINGS = ("counts", "probabilities")


class CVI(Iterated):
    """Collapsed variational inference: better than `VI` where counts are sparse, as in text.

    What a cluster of states has contributed to the expected counts is taken out before the cluster is visited, so it
    never sees itself. That needs the marginals of all positions, and the expected transitions of each cluster, to be
    kept: 8 K bytes a position (fewer with legal states) and 8 K² bytes a cluster, in memory or in files.

    Parameters
    ----------
    cluster : "auto", "sequence", "state" or "subchain"
        What is visited at a time: whole sequences, single positions (mean field), or stretches of `length` positions.
        "auto" takes sequences if each is a small part of the data, and subchains if not: what is known without a
        cluster must be enough to know it by.
    length : int, optional
        Positions of a subchain.
    exclude : bool
        Whether a cluster's own share is taken out before it is visited.
    order : "incremental", "shuffled", "shards" or "batch"
        One cluster after the other in the order of the data, or in random order; in shards, which run on all cores and
        exchange counts several times a pass; or all under the same counts. Shards are for large data: a cluster sees
        shares of the pass before of the few clusters that other shards visit at the same time. Small data, and a family
        without compiled counts, are one shard, which is the incremental order.
    cluster_size : int
        Sequences or subchains of a cluster: they are taken out, run and put back together. More of them are
        faster and need less memory; a little of the accuracy is lost.
    neighbour_weighting : "counts" or "probabilities", optional
        How transitions out of an uncertain neighbour are averaged: states weigh as often as they were left, or all the
        same. By default as in the thesis for single states, and by probabilities for subchains.
    corrections : bool
        For single states: whether the neighbours' own transitions count as the thesis has it.
    storage : path, optional
        Folder for files with marginals and transitions that are too large for memory.
    max_iter, tolerance, time_limit, patience
        As in `VI`. The objective may fall; the run has converged when it changes by less than `tolerance`. With many
        positions it is estimated in every fifth iteration only, and is nan in the others.
    search
        As in `VI`.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import CVI, HMM
    >>> x = [np.array([0, 0, 0, 1, 1, 1, 0, 0, 1, 1])] * 10
    >>> HMM(2, "categorical", inference=CVI(max_iter=100), random_state=0).fit(x).status_
    'converged'
    """

    name = "cvi"
    hierarchy_treatment = "collapsed"
    flat = False

    @property
    def needs_matrix(self) -> bool:
        return True

    @renamed_arguments(together="cluster_size", left="neighbour_weighting")
    def __init__(
        self,
        cluster: str = "auto",
        length: int | None = None,
        exclude: bool = True,
        order: str = "incremental",
        cluster_size: int = 1,
        neighbour_weighting: str | None = None,
        corrections: bool = True,
        storage: str | os.PathLike[str] | None = None,
        max_iter: int = 100,
        tolerance: float = 1e-6,
        time_limit: float | None = None,
        patience: int | None = None,
        search: bool = True,
    ) -> None:
        super().__init__(max_iter, tolerance, time_limit, patience, search)
        self.cluster = cluster
        self.length = length
        self.exclude = exclude
        self.order = order
        self.cluster_size = cluster_size
        self.neighbour_weighting = neighbour_weighting
        self.corrections = corrections
        self.storage = storage

    def may_settle(self, state: RunState) -> bool:
        """Not where states are still alike: near such a plateau the objective falls a little before it rises."""
        pairs = getattr(state.statistics, "pairs", None)
        if pairs is None:
            return True
        is_alone = (pairs.sum(axis=0) > 1.0).sum() <= 1  # nothing to differ from
        return state.iteration >= LATE or is_alone or rows_differ(pairs)

    def check(self) -> None:
        super().check()
        for what, given, known in (
            ("cluster", self.cluster, CLUSTERS),
            ("order", self.order, ORDERS),
            ("neighbour_weighting", self.neighbour_weighting, WEIGHTINGS),
        ):
            if given not in known and not (what == "neighbour_weighting" and given is None):
                raise unknown_name(what, given, known)
        for name in ("exclude", "corrections"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise InputError(f"CVI: {name} must be True or False, not {getattr(self, name)!r}.")
        whole_number(self, "cluster_size")
        if self.cluster == "subchain":
            if self.length is None:
                raise InputError("CVI(cluster='subchain') needs length=, the positions of a subchain.")
            whole_number(self, "length")
        elif self.length is not None:
            raise InputError(f"CVI: length={self.length} is for cluster='subchain', not for {self.cluster!r}.")
        if self.cluster == "sequence" and self.neighbour_weighting is not None:
            raise InputError(
                "CVI: neighbour_weighting= is for subchains and single states; whole sequences have no neighbours."
            )
        if self.cluster != "state" and not self.corrections:
            raise InputError("CVI: corrections=False is for cluster='state'.")
        if self.cluster_size > 1 and (self.cluster == "state" or self.order == "batch"):
            raise InputError(
                f"CVI: cluster_size={self.cluster_size} is for sequences or subchains that are visited one cluster "
                "after the other, not for single states, nor for order='batch'."
            )

    @property
    def by_counts(self) -> bool:
        """Whether states weigh as often as they were left."""
        return self.neighbour_weighting == "counts" or (self.neighbour_weighting is None and self.cluster == "state")

    def piece_length(self, lengths: NDArray[np.int64]) -> int | None:
        """Positions of a piece of sequences of these lengths; None for whole sequences."""
        if self.cluster == "state":
            return 1
        longest, whole = int(lengths.max(initial=0)), int(lengths.sum())
        if self.cluster == "subchain":
            assert self.length is not None
            if self.length > longest:
                raise InputError(
                    f"CVI: length={self.length}, but the longest sequence has {longest} positions; choose a smaller "
                    "length, or cluster='sequence'."
                )
            return int(self.length)
        if self.cluster == "auto" and longest > LARGE_SHARE * whole:
            return min(max(whole // MANY, 2), LONG, max(longest // 2, 1))
        return None

    def kept_bytes(self, lengths: NDArray[np.int64], n_states: int) -> int:
        if self.storage is not None:
            return 0
        length = self.piece_length(lengths)
        pieces = np.count_nonzero(lengths) if length is None else int((-(-lengths // length)).sum())
        with_moves = 0 if length == 1 else -(-int(pieces) // self.cluster_size)
        tables = 2 if self.order == "batch" else 1
        return tables * 8 * (int(lengths.sum()) * n_states + (with_moves + 1) * n_states**2)

    def working_bytes(self, lengths: NDArray[np.int64], n_states: int, n_jobs: int, *, has_symbols: bool) -> int:
        positions = int(lengths.sum())
        shards = positions * SHARD_BYTES + 8 * positions * n_states // SHARD_ROUNDS
        return BLOCK_TABLES * 8 * min(positions * n_states, BLOCK_VALUES) + (
            shards if self.order == "shards" and has_symbols else 0
        )

    @property
    def files(self) -> Files:
        return "none" if self.storage is None else "own"

    def identity(self) -> dict[str, Any]:
        settings = super().identity()
        return settings | {"storage": settings["storage"] is not None}

    def stepper(self, problem: Problem, state: RunState) -> Visits:
        return Visits(problem, self, state)

    def visit(self, ledger: ClusterLedger, cluster: int, *, excludes: bool, puts_back: bool) -> None:
        """Update one cluster given all others: S ← S − own + new; chains have compiled kernels that do the same."""
        own, counts = ledger.of(cluster), ledger.model
        if excludes:
            counts.blend(1.0, -1.0, own)
        weights = counts.weights("predictive")
        new = ledger.structure.expected(weights, np.array([cluster]))
        if excludes != puts_back:  # what was taken out comes back, or the other way round
            counts.blend(1.0, 1.0 if excludes else -1.0, own)
        if puts_back:
            counts.blend(1.0, 1.0, new)
        ledger.put(cluster, new, weights)

    def marginals(self, problem: Problem, state: RunState) -> Lists | None:
        results: Any = state.results
        ledger = results if hasattr(results, "marginals") else Visits(problem, self, state).ledger
        found: Lists | None = ledger.marginals()
        return found

    def weights(self, posterior: HMMPosterior, point: HMMPoint) -> HMMPoint:
        return posterior.predictive()
