"""The ledger of collapsed inference over independent clusters of any structure."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import IncrementalPosterior, Memory, Point, Posterior
from subchain.core.ranges import FINITE, SUM_TOLERANCE, stored
from subchain.core.records import Record, build_record
from subchain.core.statistics import Statistics
from subchain.errors import FileFormatError, InputError
from subchain.structures.clusters import ClusterStructure
from subchain.structures.passes import Passes
from subchain.structures.settings import CollapsedSettings

Index = NDArray[np.int64]


class ClusterLedger(Passes):
    """The statistics that each cluster has contributed, and the posterior that all of them make; see `base.Ledger`.

    Attributes
    ----------
    model : the posterior, ready to change
    arrays : by name, what each cluster has contributed, (n_clusters, …)
    """

    is_compiled, needs_others = False, True
    log_scale = 0.0

    def __init__(self, structure: ClusterStructure, algorithm: CollapsedSettings, prior: Posterior) -> None:
        self.structure = structure
        self.algorithm = algorithm
        self.current_prior = prior
        super().__init__(structure.n_clusters)
        self.n_marginals = structure.n_observations
        self.knows_entropy = True
        self.model: IncrementalPosterior
        self.schema: dict[str, Any] = {}
        self.arrays: dict[str, NDArray[np.float64]] = {}

    # ---- shares ------------------------------------------------------------------------------------------------------

    def of(self, cluster: int) -> Statistics:
        """Return what a cluster has contributed."""
        own = {name: array[cluster].copy() for name, array in self.arrays.items()}
        return cast(Statistics, build_record(self.schema, own))

    def put(self, cluster: int, statistics: Statistics, weights: Point) -> None:
        """Record what a cluster contributes from now on, and the entropy of what is hidden in it under the weights."""
        for name, array in statistics.arrays().items():
            self.arrays[name][cluster] = array
        if self.measures:
            found = self.structure.entropy(weights, np.array([cluster]))
            self.knows_entropy = found is not None
            self.since += math.nan, found or 0.0

    def _sum(self) -> Statistics:
        totals = {name: array.sum(axis=0) for name, array in self.arrays.items()}
        return cast(Statistics, build_record(self.schema, totals))

    def add_up(self) -> None:
        """Sum all contributions afresh."""
        self.model = IncrementalPosterior(self.current_prior, self._sum())

    def check_sum(self, statistics: Statistics) -> None:
        if not all(statistics.part(name).is_close(self._sum().part(name), SUM_TOLERANCE) for name in self.model.parts):
            raise FileFormatError("the statistics are not the sum of the shares of all clusters")

    # ---- a run -------------------------------------------------------------------------------------------------------

    def _allocate(self, statistics: Statistics) -> None:
        """Prepare for statistics like these, to which no cluster has contributed yet."""
        self.schema = statistics.schema()
        self.arrays = {name: np.zeros((self.size, *array.shape)) for name, array in statistics.arrays().items()}
        self.model = IncrementalPosterior(self.current_prior, statistics)

    def adopt(self, prior: Posterior) -> None:
        self.current_prior = prior

    def begin(self, statistics: Statistics) -> None:
        self._allocate(statistics)
        self.visit(np.arange(self.size), excludes=False, puts_back=False)
        self.since = np.zeros(2)
        self.add_up()

    def draw(self, kind: str, seed: int) -> None:
        raise InputError(f"init={kind!r} draws hidden states of a chain; {type(self.structure).__name__} has none.")

    def visit(self, clusters: Index, *, excludes: bool, puts_back: bool) -> None:
        for cluster in clusters.tolist():
            self.algorithm.visit(self, cluster, excludes=excludes, puts_back=puts_back)

    def visit_next(self, order: Index, *, excludes: bool, puts_back: bool) -> None:
        self.visit(order[self.cursor : self.cursor + 1], excludes=excludes, puts_back=puts_back)
        self.cursor += 1

    @contextlib.contextmanager
    def writing(self, in_place: bool) -> Iterator[None]:
        before = {} if in_place else {name: array.copy() for name, array in self.arrays.items()}
        try:
            yield
        except KeyboardInterrupt:
            self.arrays |= before
            raise

    def trying(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def update_hyperparameters(self) -> None:
        self.model.update_hyperparameters(1.0)
        self.current_prior = self.model.prior

    def expected_log_joint(self) -> float | None:
        evidence = self.current_prior.log_evidence(self.statistics)
        return evidence + self.current_prior.log_hyperprior() if self.knows_entropy and evidence is not None else None

    # ---- results -----------------------------------------------------------------------------------------------------

    def marginals(self) -> None:
        """Return None: only statistics are kept."""

    @property
    def checked(self) -> list[Record]:
        return [self.statistics]

    @property
    def statistics(self) -> Statistics:
        return self.model.statistics()

    reported = statistics

    @property
    def point(self) -> Point:
        return self.current_prior.update(self.statistics).mean()

    @property
    def prior(self) -> Posterior | None:
        return self.current_prior if self.current_prior.is_learned else None

    @property
    def memory(self) -> Memory:
        memory: Memory = {f"shares.{name}": array.copy() for name, array in self.arrays.items()}
        return memory | self.pass_memory() | self.model.memory()

    def restore(self, memory: Memory, statistics: Statistics) -> None:
        self.restore_passes(memory)
        self._allocate(statistics)
        for name, array in self.arrays.items():
            array[:] = stored(memory, f"shares.{name}", FINITE, array.shape)
        self.model.restore(memory)
