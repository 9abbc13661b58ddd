"""Iterations that are sweeps: the chains of a sampler side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subchain.core.ranges import stored_number
from subchain.inference.run.interrupts import Postponed
from subchain.inference.run.loop import RunState, Step
from subchain.inference.run.problem import Problem
from subchain.inference.sampling.draws import Drawn
from subchain.structures.base import Moved, Walker

if TYPE_CHECKING:
    from subchain.inference.sampling.sampler import Sampler


class Sweeps:
    """Iterations that are sweeps of all chains; after the burn-in each of them gives a draw of every chain."""

    in_place = True

    def __init__(self, problem: Problem, algorithm: Sampler, state: RunState) -> None:
        self.algorithm = algorithm
        self.interruption = Postponed()
        self.schedule = algorithm.temperatures()
        self.makers = algorithm.walkers(problem, state.seed)
        memory = state.results.memory
        is_resumed = state.iteration > 0
        n_chains = algorithm.n_chains
        makers, point = self.makers, state.point
        hidden = makers.resume(n_chains, memory) if is_resumed else makers.start(n_chains, point, memory)
        walkers = [self.makers.walker(number, hidden[number]) for number in range(n_chains)]
        for walker in walkers:
            walker.restore(memory) if is_resumed else walker.begin(state.point)
        draws = stored_number(memory, "draws", most=state.iteration) if is_resumed else 0
        self.drawn = Drawn(problem, algorithm, walkers, max(algorithm.n_samples, draws))
        if is_resumed:
            self.drawn.restore(memory, state)

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

            moved = self.makers.map(advance, drawn.walkers)
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
