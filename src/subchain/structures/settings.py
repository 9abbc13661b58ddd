"""The settings of algorithms that structures read, and the steps that they ask algorithms for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Posterior
from subchain.core.statistics import Statistics

if TYPE_CHECKING:
    from subchain.structures.chain.boundaries import Boundary
    from subchain.structures.cluster_ledger import ClusterLedger
    from subchain.structures.clusters import ClusterStructure


class StochasticSettings(Protocol):
    """How `SVI`, `SCVI` and `EM(batch=...)` cut their data; see `inference.stochastic.settings`."""

    length: int | str | None
    batch: int | None
    boundary: str | Boundary
    starts: str
    max_updates: int | None
    max_passes: float | None

    @property
    def kind(self) -> str: ...


class CollapsedSettings(Protocol):
    """What `CVI` visits at a time, and how it averages over neighbours; see `inference.cvi`."""

    cluster: str
    cluster_size: int
    order: str
    corrections: bool
    neighbour_weighting: str | None
    storage: str | os.PathLike[str] | None

    @property
    def by_counts(self) -> bool: ...
    def piece_length(self, lengths: NDArray[np.int64]) -> int | None: ...

    def visit(self, ledger: ClusterLedger, cluster: int, *, excludes: bool, puts_back: bool) -> None:
        """Update one cluster of a `ClusterStructure`."""


class SamplingSettings(Protocol):
    """What `Gibbs` draws at once, and whether parameters are drawn or summed out; see `inference.gibbs`."""

    block: str
    parameters: str

    def temperatures(self) -> NDArray[np.float64]: ...

    def sweep(
        self, prior: Posterior, statistics: Statistics, structure: ClusterStructure, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], Statistics]:
        """Draw parameters, then what is hidden in all clusters of a `ClusterStructure`; return it with its sums."""
