"""The length of subchains, where none was given, from the mixing time of the chain.

A subchain that is much longer than the chain's memory pays little for its ends; one that is longer still sees fewer
places for the same work. So a few updates are tried first, with subchains of a middling length, and the model that
comes out of them is asked how soon it forgets: from how far away two opposite marginals become one. Boundaries that
know something of the rest of the chain let subchains be shorter.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from subchain.core.components import clone
from subchain.inference.run.chains import ChainProblem
from subchain.inference.run.loop import RunState
from subchain.structures.chain.boundaries import Stationary
from subchain.structures.chain.boundary_choice import resolve_boundary
from subchain.structures.chain.model import HMMPoint

if TYPE_CHECKING:
    from subchain.inference.stochastic.settings import Stochastic

#: The trial: updates, and the length and number of their subchains.
TRIALS, TRIAL_LENGTH, TRIAL_BATCH = 50, 256, 16
#: Marginals that differ by no more have become one, at so many of the places that are looked at.
FORGOTTEN, PLACES, MOST = 0.01, 64, 0.9
#: Longest memory that is looked for.
LONGEST = 1024
#: A subchain is so many times as long as the memory, without and with knowledge of the rest of the chain.
ALONE, INFORMED = 10, 2
#: Limits of what is chosen.
SHORTEST_CHOICE, LONGEST_CHOICE = 10, 4096


def measure(problem: ChainProblem, algorithm: Stochastic, state: RunState) -> None:
    """Measure the mixing time by a short trial from `state`, and choose a length of subchains by it."""
    longest = int(problem.structure.data.lengths.max())
    trial = clone(algorithm).set_params(
        length=min(TRIAL_LENGTH, longest), batch=TRIAL_BATCH, boundary=Stationary(), max_updates=TRIALS,
        report_every=TRIALS, average=False, adapt=False,
        starts="grid",
    )  # fmt: skip
    without_search = dataclasses.replace(problem, search=None)
    found = trial.stepper(without_search, state).step(state).results
    mixing_time = mixing_time_of(problem, found.point)
    given = resolve_boundary(algorithm.boundary)
    wanted = (ALONE if given is None or isinstance(given, Stationary) else INFORMED) * mixing_time
    problem.structure.mixing_time = mixing_time
    problem.structure.subchain_length = int(np.clip(wanted, SHORTEST_CHOICE, min(LONGEST_CHOICE, longest)))


def mixing_time_of(problem: ChainProblem, point: HMMPoint) -> int:
    """Steps after which two opposite marginals have become one at most places of the data."""
    data = problem.structure.data
    long = np.flatnonzero(data.lengths >= min(LONGEST, int(data.lengths.max())))
    steps = min(LONGEST, int(data.lengths[long].min()))
    ends = np.cumsum(data.lengths[long] - steps + 1)
    at = np.linspace(0, ends[-1] - 1, PLACES).astype(np.int64)
    which = np.searchsorted(ends, at, side="right")
    starts = data.offsets[long[which]] + at - (ends[which] - (data.lengths[long[which]] - steps + 1))
    apart = problem.structure.engine.distances(point.surrogate(), problem.structure, starts, steps)
    together = np.mean(apart <= FORGOTTEN, axis=1) >= MOST
    return int(together.argmax()) + 1 if together.any() else steps
