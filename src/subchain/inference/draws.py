"""What a Gibbs sampler keeps of its draws, and what it reports.

Of every draw: how probable it is, how many states it uses, and parameters drawn given its states. Of all draws of a
chain: the mean of their statistics, and how often each position had each state.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.base import Parameters
from subchain.inference.loop import Memory
from subchain.inference.posterior import Point
from subchain.inference.problem import Problem
from subchain.inference.walkers import Walker, tally_states
from subchain.records import STATE_AXES, build_record
from subchain.samples import Samples
from subchain.statistics import Statistics

if TYPE_CHECKING:
    from subchain.inference.gibbs import Gibbs

Array = NDArray[np.float64]

#: Tables of more numbers are not kept for every draw.
LARGE = 10_000


class Drawn:
    """What a run has drawn so far: the chains where they stand, and what is kept of their draws.

    Attributes
    ----------
    walkers : the chains
    room : draws that there is room for
    sweeps, draws : how many of each have been done
    log_joint : (chains,) of the present states
    """

    def __init__(self, problem: Problem, algorithm: Gibbs, walkers: list[Walker], room: int) -> None:
        self.problem = problem
        self.algorithm = algorithm
        self.walkers = walkers
        self.room = room
        self.sweeps = self.draws = 0
        self.log_joint = np.full(len(walkers), -math.inf)
        setting = walkers[0].setting
        self._lists = setting.choices
        n_positions, n_states = problem.whole.data.n_observations, setting.reference.n_states
        entries = (n_positions, n_states) if setting.legal is None else (setting.legal.n_entries,)
        self._tally = np.zeros((len(walkers), *entries), dtype=np.min_scalar_type(room))
        self._totals: list[Statistics | None] = [None] * len(walkers)
        self._kept: dict[str, NDArray[Any]] = {}
        #: The problem's: what is drawn of a prior is drawn with the states.
        self.prior = None
        self._known: dict[str, Any] = {}

    # ---- while it runs -----------------------------------------------------------------------------------------------

    def note(self, walker: Walker, sweep: int, *, is_kept: bool) -> None:
        """Write down where a chain stands after so many sweeps; chains may do so at the same time."""
        self.log_joint[walker.number] = walker.log_joint()
        if not is_kept:
            return
        statistics = walker.statistics()
        for name, value in self._values(walker, statistics, sweep).items():
            self._array(name, np.asarray(value))[walker.number, self.draws] = value
        total = self._totals[walker.number]
        if total is None:
            self._totals[walker.number] = statistics
        else:
            total.absorb(statistics)
        tally = self._tally[walker.number].reshape(-1)
        tally_states(self._lists.offsets, self._lists.states, walker.states, tally)

    def advanced(self, sweeps: int, *, is_kept: bool) -> None:
        """All chains have done their sweeps."""
        self.sweeps += sweeps
        self.draws += is_kept
        self._known = {}

    def _values(self, walker: Walker, statistics: Statistics, sweep: int) -> dict[str, Any]:
        """What is kept of a draw."""
        visits = statistics.initial + statistics.pairs.sum(axis=0)
        chain = walker.draw_chain(statistics, sweep)
        found: dict[str, Any] = {
            "log_joint": self.log_joint[walker.number],
            "n_used": np.count_nonzero(visits),
            "occupancy": np.sort(visits)[::-1] / max(visits.sum(), 1.0),
            "initial": chain.initial,
        }
        if chain.transition.size <= LARGE:
            found["transition"] = chain.transition
        if self._is_small(walker.setting.reference):
            parameters = walker.draw_emission(statistics, sweep)
            found |= {f"emission.{name}": array for name, array in _of_states(parameters)}
        if self.algorithm.keep_states:
            found["states"] = walker.states
        return found

    @staticmethod
    def _is_small(parameters: Parameters) -> bool:
        """Whether parameters of the emissions are kept for every draw."""
        return sum(array.size for _, array in _of_states(parameters)) <= LARGE

    def _array(self, name: str, like: NDArray[Any]) -> NDArray[Any]:
        if name not in self._kept:
            kind = np.min_scalar_type(self._n_states - 1) if name == "states" else like.dtype
            shape = (len(self.walkers), self.room, *like.shape)
            self._kept.setdefault(name, np.empty(shape, dtype=kind))
        return self._kept[name]

    @property
    def _n_states(self) -> int:
        return self.walkers[0].setting.reference.n_states

    # ---- results -----------------------------------------------------------------------------------------------------

    @property
    def best(self) -> int:
        """The chain with the largest mean log joint."""
        worth = self._kept["log_joint"][:, : self.draws].mean(axis=1) if self.draws else self.log_joint
        return int(worth.argmax())

    @property
    def statistics(self) -> Statistics:
        if "statistics" not in self._known:
            total = self._totals[self.best]
            mean = self.walkers[self.best].statistics() if total is None else total.scale(1.0 / self.draws)
            mean.n_observations = float(self.problem.whole.data.n_observations)
            self._known["statistics"] = mean
        found: Statistics = self._known["statistics"]
        return found

    reported = statistics

    @property
    def point(self) -> Point:
        if "point" not in self._known:
            self._known["point"] = self.problem.prior.update(self.statistics).mean()
        found: Point = self._known["point"]
        return found

    @property
    def samples(self) -> Samples | None:
        """All kept draws, if there are any."""
        return samples_of(self.memory)

    @property
    def beliefs(self) -> Array | None:
        """What `beliefs_of` says."""
        return beliefs_of(self.memory)

    @property
    def memory(self) -> Memory:
        memory: Memory = {
            "sweeps": np.array(self.sweeps),
            "draws": np.array(self.draws),
            "log_joint": self.log_joint.copy(),
            "states": np.array([walker.states for walker in self.walkers]),
            "tally": self._tally,
        }
        for walker, total in zip(self.walkers, self._totals, strict=True):
            memory |= walker.memory()
            if total is not None:
                memory |= {f"total.{walker.number}.{key}": array for key, array in total.arrays().items()}
        return memory | {f"samples.{name}": array[:, : self.draws] for name, array in self._kept.items()}

    def restore(self, memory: Memory) -> None:
        """Take up what `memory` gave; the walkers have done so."""
        self.sweeps, self.draws = int(memory["sweeps"]), int(memory["draws"])
        self.log_joint = np.array(memory["log_joint"])
        self._tally[:] = memory["tally"]
        if self.draws:
            schema = self.walkers[0].statistics().schema()
            totals: list[Any] = [
                build_record(schema, memory, f"total.{walker.number}.") for walker in self.walkers
            ]
            self._totals = totals
        for name, array in _samples(memory).items():
            self._array(name, array[0, 0])[:, : self.draws] = array


def _of_states(record: Any, prefix: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """Parameters of states by name, with the states on their first axis; the table of symbols is called by its use."""
    for item in dataclasses.fields(record):
        value, axes = getattr(record, item.name), item.metadata.get(STATE_AXES, (0,))
        name = prefix + ("probabilities" if item.name == "weights" else item.name)
        if isinstance(value, dict):
            for part, inner in value.items():
                yield from _of_states(inner, f"{prefix}{part}.")
        elif isinstance(value, np.ndarray) and axes:
            yield name, np.moveaxis(value, axes[0], 0)


def _samples(memory: Memory) -> dict[str, NDArray[Any]]:
    start = "samples."
    return {name.removeprefix(start): array for name, array in memory.items() if name.startswith(start)}


def samples_of(memory: Memory) -> Samples | None:
    """The draws of a run, from what its results or its checkpoint remember; None if it kept none."""
    found = _samples(memory)
    return Samples(found) if found else None


def beliefs_of(memory: Memory) -> Array | None:
    """Share of the best chain's draws in which each position had each state, from what `samples_of` takes.

    (N, K), or one number for each legal state of each position, in the order of `LegalStates`; None without draws.
    """
    samples = samples_of(memory)
    if samples is None:
        return None
    shares: Array = memory["tally"][samples.best_chain] / samples.n_draws
    return shares
