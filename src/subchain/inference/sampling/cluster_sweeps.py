"""Gibbs sampling over independent clusters of any structure: parameters and what is hidden are drawn in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from subchain.core.parts import Memory, Posterior
from subchain.core.records import build_record
from subchain.core.statistics import Statistics
from subchain.inference.run.interrupts import Postponed
from subchain.inference.run.loop import RunState, Step
from subchain.inference.run.problem import Problem
from subchain.structures.clusters import ClusterStructure

if TYPE_CHECKING:
    from subchain.inference.gibbs import Gibbs


class ClusterDraws:
    """The Markov chains of a run where they stand, and the draws that are kept; see `Results`.

    Attributes
    ----------
    hidden : what is hidden in each cluster, one array a chain
    current : statistics of the present draw, one a chain
    totals : statistics of all kept draws added up, one a chain
    kept : (chains, draws, ...) of what is hidden, and (chains, draws) log joints
    """

    def __init__(self, problem: Problem, n_chains: int) -> None:
        self.problem = problem
        self.sweeps = self.draws = 0
        self.hidden: list[Any] = [None] * n_chains
        self.current: list[Any] = [None] * n_chains
        self.totals: list[Any] = [None] * n_chains
        self.kept_hidden: list[list[Any]] = [[] for _ in range(n_chains)]
        self.log_joints: list[list[float]] = [[] for _ in range(n_chains)]

    def keep(self, chain: int, log_joint: float) -> None:
        """Keep the present draw of a chain."""
        total = self.totals[chain]
        self.totals[chain] = self.current[chain] if total is None else total + self.current[chain]
        self.kept_hidden[chain].append(self.hidden[chain])
        self.log_joints[chain].append(log_joint)

    @property
    def statistics(self) -> Any:
        """The mean of the best chain's draws; before there are any, the present draw."""
        if not self.draws:
            return self.current[0]
        best = int(np.argmax([np.mean(values) for values in self.log_joints]))
        return self.totals[best].scale(1.0 / self.draws)

    reported = statistics

    @property
    def point(self) -> Any:
        return self.problem.prior.update(self.statistics).mean()

    @property
    def prior(self) -> Posterior | None:
        return None

    @property
    def memory(self) -> Memory:
        memory: Memory = {"sweeps": np.array(self.sweeps), "draws": np.array(self.draws)}
        for chain, (hidden, current) in enumerate(zip(self.hidden, self.current, strict=True)):
            memory[f"hidden.{chain}"] = np.asarray(hidden)
            for name, record in (("current", current), ("total", self.totals[chain])):
                if record is not None:
                    memory |= {f"{name}.{chain}.{key}": array for key, array in record.arrays().items()}
        if self.draws:
            memory["samples.hidden"] = np.array(self.kept_hidden)
            memory["samples.log_joint"] = np.array(self.log_joints)
        return memory

    def restore(self, memory: Memory, like: Statistics) -> None:
        """Undo `memory`."""
        self.sweeps, self.draws = int(memory["sweeps"]), int(memory["draws"])
        for chain in range(len(self.hidden)):
            self.hidden[chain] = memory[f"hidden.{chain}"]
            self.current[chain] = build_record(like.schema(), memory, f"current.{chain}.")
            if self.draws:
                self.totals[chain] = build_record(like.schema(), memory, f"total.{chain}.")
                self.kept_hidden[chain] = list(memory["samples.hidden"][chain])
                self.log_joints[chain] = memory["samples.log_joint"][chain].tolist()


class ClusterSweeps:
    """The stepper of `Gibbs` for structures of independent clusters: `Gibbs.sweep` draws every chain afresh."""

    def __init__(self, problem: Problem, structure: ClusterStructure, algorithm: Gibbs, state: RunState) -> None:
        self.problem = problem
        self.structure = structure
        self.algorithm = algorithm
        self.interruption = Postponed()
        self.results = ClusterDraws(problem, algorithm.n_chains)
        memory, statistics = state.results.memory, state.statistics
        if statistics is None:
            statistics = structure.statistics(state.point)
        if "sweeps" in memory:
            self.results.restore(memory, statistics)
            return
        every = np.arange(structure.n_clusters)
        for chain in range(algorithm.n_chains):
            rng = np.random.default_rng([state.seed, chain])
            point = problem.prior.update(statistics).sample(rng)
            self.results.hidden[chain], self.results.current[chain] = structure.draw(point, every, rng)

    def step(self, state: RunState) -> Step:
        results, algorithm, prior = self.results, self.algorithm, self.problem.prior
        is_kept = results.sweeps >= algorithm.burn_in
        log_joints = []
        with self.interruption:
            for chain, statistics in enumerate(results.current):
                for sweep in range(algorithm.thin):
                    rng = np.random.default_rng([state.seed, chain, results.sweeps + sweep + 1])
                    results.hidden[chain], statistics = algorithm.sweep(prior, statistics, self.structure, rng)
                results.current[chain] = statistics
                log_joint = prior.log_evidence(statistics)
                log_joints.append(np.nan if log_joint is None else log_joint)
                if is_kept:
                    results.keep(chain, log_joints[-1])
            results.sweeps += algorithm.thin
            results.draws += is_kept
        measures = {"sweeps": float(results.sweeps)}
        measures |= {f"log_joint.{chain}": value for chain, value in enumerate(log_joints)}
        return Step(results, float(np.mean(log_joints)), [], list(results.current), measures)

    def trials(self, state: RunState, step: Step) -> None:
        """Return None: a search over the number of states is for chains."""

    def release(self) -> None:
        """No files are open."""
