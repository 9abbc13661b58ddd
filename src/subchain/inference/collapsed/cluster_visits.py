"""Passes of collapsed inference over independent clusters of any structure.

The update of one cluster is `CVI.visit`. What each cluster has put into the statistics is kept, so that it can be taken
out again exactly; the statistics are summed afresh now and then, so that rounding errors do not accumulate.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from subchain.core.parts import IncrementalPosterior, Memory, Posterior
from subchain.core.records import build_record
from subchain.core.statistics import Statistics
from subchain.inference.run.interrupts import Postponed
from subchain.inference.run.loop import RunState, Step
from subchain.inference.run.problem import Problem
from subchain.structures.clusters import ClusterStructure

if TYPE_CHECKING:
    from subchain.inference.cvi import CVI

#: Passes after which the statistics are summed afresh.
SUMMED_EVERY = 20


class ClusterShares:
    """The statistics that each cluster has contributed, and the posterior that all of them make."""

    def __init__(self, prior: Posterior, like: Statistics, size: int) -> None:
        self.schema = like.schema()
        self.arrays = {name: np.repeat(array[None] * 0.0, size, axis=0) for name, array in like.arrays().items()}
        self.size = size
        self.model = IncrementalPosterior(prior, like)

    def of(self, cluster: int) -> Any:
        """Return what a cluster has contributed."""
        return build_record(self.schema, {name: array[cluster].copy() for name, array in self.arrays.items()})

    def put(self, cluster: int, statistics: Statistics) -> None:
        """Record what a cluster contributes from now on."""
        for name, array in statistics.arrays().items():
            self.arrays[name][cluster] = array

    def add_up(self, prior: Posterior) -> None:
        """Sum all contributions afresh."""
        total: Any = build_record(self.schema, {name: array.sum(axis=0) for name, array in self.arrays.items()})
        self.model = IncrementalPosterior(prior, total)


class ClusterResults:
    """What a run over clusters has found; see `Results`."""

    def __init__(self, algorithm: CVI, shares: ClusterShares) -> None:
        self.algorithm = algorithm
        self.shares = shares
        self.iteration = 0

    @property
    def statistics(self) -> Any:
        return self.shares.model.statistics()

    reported = statistics

    @property
    def point(self) -> Any:
        return self.shares.model.prior.update(self.statistics).mean()

    @property
    def prior(self) -> Posterior | None:
        prior = self.shares.model.prior
        return prior if prior.is_learned else None

    @property
    def memory(self) -> Memory:
        memory: Memory = {f"shares.{name}": array.copy() for name, array in self.shares.arrays.items()}
        return memory | {"cursor": np.array(self.iteration)} | self.shares.model.memory()

    def restore(self, memory: Memory, prior: Posterior, statistics: Statistics) -> None:
        """Undo `memory`."""
        self.iteration = int(memory["cursor"])
        for name, array in self.shares.arrays.items():
            array[:] = memory[f"shares.{name}"]
        self.shares.model = IncrementalPosterior(prior, statistics)
        self.shares.model.restore(memory)


class ClusterVisits:
    """The stepper of `CVI` for structures of independent clusters: an iteration visits every cluster once."""

    def __init__(self, problem: Problem, structure: ClusterStructure, algorithm: CVI, state: RunState) -> None:
        self.structure = structure
        self.algorithm = algorithm
        self.interruption = Postponed()
        prior: Any = state.results.prior or problem.prior
        start: Any = state.statistics
        if start is None:
            start = structure.statistics(state.point)
        self.shares = ClusterShares(prior, start, structure.n_clusters)
        self.results = ClusterResults(algorithm, self.shares)
        memory = state.results.memory
        if "cursor" in memory:
            self.results.restore(memory, prior, start)
        else:
            weights = self.shares.model.weights("predictive")
            for cluster in range(self.shares.size):
                self.shares.put(cluster, structure.expected(weights, np.array([cluster])))
            self.shares.add_up(prior)

    def step(self, state: RunState) -> Step:
        results, shares, algorithm = self.results, self.shares, self.algorithm
        order = np.arange(shares.size)
        if algorithm.order == "shuffled":
            order = np.random.default_rng([state.seed, results.iteration]).permutation(shares.size)
        with self.interruption:
            for cluster in order.tolist():
                algorithm.visit(self.structure, shares, cluster)
            results.iteration += 1
            if results.iteration % SUMMED_EVERY == 0:
                shares.add_up(shares.model.prior)
            if shares.model.prior.is_learned:
                shares.model.update_hyperparameters(1.0)
        statistics = results.statistics
        return Step(results, self._objective(statistics), [], [statistics], {})

    def _objective(self, statistics: Statistics) -> float | None:
        """Return the plug-in collapsed bound: log joint of the expected counts plus entropy of what is hidden."""
        model, entropy = self.shares.model, 0.0
        for cluster in range(self.shares.size):
            own = self.shares.of(cluster)
            model.blend(1.0, -1.0, own)
            found = self.structure.entropy(model.weights("predictive"), np.array([cluster]))
            model.blend(1.0, 1.0, own)
            entropy += math.nan if found is None else found
        evidence = model.prior.log_evidence(statistics)
        if evidence is None or math.isnan(entropy):
            return None
        return evidence + entropy + model.prior.log_hyperprior()

    def trials(self, state: RunState, step: Step) -> None:
        """Return None: a search over the number of states is for chains."""

    def release(self) -> None:
        """No files are open."""
