"""Structures whose data are independent clusters given the parameters: documents, sentence pairs, sentences.

A subclass says how many observations each cluster has, what is expected of some clusters under weights of the parts,
and how to draw what is hidden in them. From these three follow passes, minibatches, excerpts, and the shares that
collapsed inference takes out of the counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import IncrementalPosterior, Memory, Point, Posterior
from subchain.core.records import Sums
from subchain.core.statistics import Statistics
from subchain.errors import InputError
from subchain.structures.base import Fresh, Plan
from subchain.structures.settings import CollapsedSettings, SamplingSettings, StochasticSettings

if TYPE_CHECKING:
    from subchain.structures.cluster_ledger import ClusterLedger
    from subchain.structures.cluster_walkers import ClusterWalker, ClusterWalkers

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Observations of a minibatch whose size was left open.
BATCH_OBSERVATIONS = 2000


class ClusterStructure(ABC):
    """Base of structures whose clusters are independent given the parameters."""

    @property
    @abstractmethod
    def lengths(self) -> Index:
        """Number of observations of each cluster, (n_clusters,)."""

    @abstractmethod
    def expected(self, weights: Point, clusters: Index) -> Statistics:
        """Return the expected statistics of some clusters under weights of the parts, a subclass of `Statistics`."""

    @abstractmethod
    def draw(self, weights: Point, clusters: Index, rng: np.random.Generator) -> tuple[Index, Statistics]:
        """Draw what is hidden in some clusters; return it, one row a cluster, and the statistics of the draw."""

    def entropy(self, weights: Point, clusters: Index) -> float | None:
        """Return the entropy of what is hidden in some clusters under weights; None if it is not known."""
        return None

    # ---- what follows ------------------------------------------------------------------------------------------------

    @property
    def n_clusters(self) -> int:
        return len(self.lengths)

    @cached_property
    def n_observations(self) -> int:
        return int(self.lengths.sum())

    @property
    def total_weight(self) -> float:
        return float(self.n_observations)

    def statistics(self, weights: Point) -> Statistics:
        return self.expected(weights, np.arange(self.n_clusters))

    def plan(self, algorithm: StochasticSettings) -> Plan:
        mean = self.n_observations / max(self.n_clusters, 1)
        size = max(1, round(BATCH_OBSERVATIONS / max(mean, 1.0))) if algorithm.batch is None else int(algorithm.batch)
        return Plan(self.n_clusters, size, int(self.lengths.max(initial=1)), mean * size)

    def minibatches(self, algorithm: StochasticSettings, prior: Posterior) -> ClusterMinibatches:
        return ClusterMinibatches(self, self.plan(algorithm), next(iter(prior.parts())))

    def excerpt(self, length: int, size: int, rng: np.random.Generator) -> ClusterExcerpt:
        chosen = rng.choice(self.n_clusters, min(size, self.n_clusters), replace=False)
        return ClusterExcerpt(self, np.sort(chosen))

    def ledger(self, algorithm: CollapsedSettings, prior: Posterior) -> ClusterLedger:
        from subchain.structures.cluster_ledger import ClusterLedger

        return ClusterLedger(self, algorithm, prior)

    def walkers(self, algorithm: SamplingSettings, prior: Posterior, seed: int) -> ClusterWalkers:
        from subchain.structures.cluster_walkers import ClusterWalkers

        if algorithm.parameters != "sampled" and self.collapsed_walker() is None:
            raise InputError(
                f"{type(self).__name__} is drawn by Gibbs with parameters='sampled', block='sequence'; summing "
                "parameters out, as Hastings does, is for hidden Markov chains and grammars."
            )
        if (algorithm.temperatures() != 1.0).any():
            raise InputError("annealing= is for hidden Markov chains only.")
        kind = self.collapsed_walker() if algorithm.parameters != "sampled" else None
        return ClusterWalkers(self, algorithm, prior, seed, kind)

    def collapsed_walker(self) -> type[ClusterWalker] | None:
        """Return the class of walkers of samplers that sum parameters out; None if there is none."""
        return None


class ClusterExcerpt:
    """Some clusters that stand for all."""

    def __init__(self, structure: ClusterStructure, clusters: Index) -> None:
        self.structure = structure
        self.clusters = clusters

    def statistics(self, weights: Point) -> Statistics:
        """Return the expected statistics of the clusters, scaled to all the data."""
        found: Statistics = self.structure.expected(weights, self.clusters)
        return found.scale(self.structure.n_clusters / len(self.clusters))


class ClusterMinibatches:
    """Minibatches of whole clusters; see `structures.base.Minibatches`."""

    def __init__(self, structure: ClusterStructure, plan: Plan, watched: str) -> None:
        self.structure = structure
        self.gain = plan.n_units / plan.size
        self.watched = watched

    def run(self, units: Index, coming: Index, weights: Point, model: IncrementalPosterior) -> Fresh:
        found = self.structure.expected(weights, units)
        return Fresh(found, dict.fromkeys(model.parts, self.gain))

    def run_updates(self, units: Index, rates: Array, model: IncrementalPosterior, since: Array) -> int:
        return 0

    def signal(self, sums: Sums) -> Array:
        return np.concatenate([np.ravel(array) for array in sums.arrays().values()])

    def observe(self, model: IncrementalPosterior, seed: list[int], rate: float) -> None:
        """Do nothing: expected statistics determine all that priors need."""

    def fold(self, into: int, gone: int) -> None:
        """Do nothing: nothing is kept about states."""

    def measures(self) -> dict[str, float]:
        return {}

    def begin(self) -> None:
        """Do nothing: nothing is kept between minibatches."""

    def memory(self) -> Memory:
        return {}

    def restore(self, memory: Memory) -> None:
        """Do nothing: nothing is kept between minibatches."""

    def checkpointed(self) -> None:
        """Do nothing: no files are open."""

    def release(self) -> None:
        """Do nothing: no files are open."""
