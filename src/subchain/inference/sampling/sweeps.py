"""Iterations that are sweeps: the chains of a sampler side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from subchain.inference.run.chains import ChainProblem
from subchain.inference.run.interrupts import Postponed
from subchain.inference.run.loop import RunState, Step
from subchain.inference.sampling.draws import Drawn
from subchain.inference.sampling.walkers import Moved, Setting, Walker
from subchain.structures.chain.local_starts import LOCAL_STARTS
from subchain.structures.chain.model import HMMPoint

if TYPE_CHECKING:
    from subchain.inference.sampling.sampler import Sampler

#: Chains with fewer positions, all together, are not worth a thread.
SMALL = 20_000


class Sweeps:
    """Iterations that are sweeps of all chains; after the burn-in each of them gives a draw of every chain."""

    def __init__(self, problem: ChainProblem, algorithm: Sampler, state: RunState) -> None:
        self.problem = problem
        self.algorithm = algorithm
        self.interruption = Postponed()
        self.schedule = algorithm.temperatures()
        setting = Setting.of(problem, state.seed)
        make = algorithm.walker(setting)
        memory = state.results.memory
        is_resumed = "sweeps" in memory
        states = memory["states"] if is_resumed else self._start(state, setting)
        walkers = [make(setting, number, states[number]) for number in range(algorithm.n_chains)]
        for walker in walkers:
            walker.restore(memory) if is_resumed else walker.begin(cast(HMMPoint, state.point))
        self.drawn = Drawn(problem, algorithm, walkers, max(algorithm.n_samples, int(memory.get("draws", 0))))
        if is_resumed:
            self.drawn.restore(memory)

    def _start(self, state: RunState, setting: Setting) -> NDArray[np.int32]:
        """States of all positions for every chain: a path given the start's point, or any legal states if these were
        asked for and can follow each other."""
        whole, n_chains = self.problem.structure, self.algorithm.n_chains
        asked = "local start" in state.results.memory and LOCAL_STARTS[int(state.results.memory["local start"])]
        if asked == "states" and setting.anything_goes:
            return np.array([setting.draw_legal(number) for number in range(n_chains)])
        point: Any = state.point
        seed = np.random.SeedSequence([state.seed, 0, 0, 5])
        return whole.engine.sample_paths(point.surrogate(), whole, n_chains, seed)

    def trials(self, state: RunState, step: Step) -> None:
        """Return None: samplers change the number of states themselves."""

    def release(self) -> None:
        """No files are open."""

    def step(self, state: RunState) -> Step:
        drawn, algorithm = self.drawn, self.algorithm
        with self.interruption:
            is_kept = drawn.sweeps >= algorithm.burn_in
            count = algorithm.thin if is_kept else min(algorithm.thin, algorithm.burn_in - drawn.sweeps)
            sweeps = np.minimum(np.arange(drawn.sweeps, drawn.sweeps + count), len(self.schedule) - 1)
            temperatures = self.schedule[sweeps]

            def advance(walker: Walker) -> Moved:
                moved = walker.sweeps(drawn.sweeps, temperatures)
                drawn.note(walker, drawn.sweeps + count, is_kept=is_kept)
                return moved

            moved = self._map(advance)
            drawn.advanced(count, is_kept=is_kept)
        measures = {
            "sweeps": float(drawn.sweeps),
            "temperature": float(temperatures[-1]),
            "changed": float(np.mean([move.changed for move in moved])),
            "accepted": float(np.mean([move.accepted for move in moved])),
        }
        measures |= {f"log_joint.{chain}": value for chain, value in enumerate(drawn.log_joint.tolist())}
        for walker in drawn.walkers:
            measures |= {f"{name}.{walker.number}": value for name, value in walker.measures().items()}
        return Step(drawn, float(drawn.log_joint.mean()), [], [], measures)

    def _map(self, task: Callable[[Walker], Moved]) -> list[Moved]:
        walkers = self.drawn.walkers
        total = len(walkers) * self.problem.structure.data.n_observations
        if not walkers[0].side_by_side or total < SMALL:
            return [task(walker) for walker in walkers]
        return self.problem.structure.engine.map(task, walkers)
