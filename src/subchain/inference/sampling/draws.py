"""What a sampler keeps of its draws: how probable each is, and what the walkers say of it."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory
from subchain.core.ranges import SINCE, stored, stored_number
from subchain.core.samples import Samples
from subchain.errors import FileFormatError
from subchain.inference.run.loop import RunState
from subchain.inference.run.problem import Problem
from subchain.structures.base import Walker

if TYPE_CHECKING:
    from subchain.inference.sampling.sampler import Sampler

Array = NDArray[np.float64]


class Drawn:
    """What a run has drawn so far: the chains where they stand, and what is kept of their draws.

    Where the number of states differs between draws, arrays have room for the largest; what a draw does not have is nan
    (a share of the positions: 0).

    Attributes
    ----------
    walkers : the chains
    room : draws that there is room for
    sweeps, draws : how many of each have been done
    log_joint : (chains,) of the present states
    """

    def __init__(self, problem: Problem, algorithm: Sampler, walkers: list[Walker], room: int) -> None:
        self.problem = problem
        self.algorithm = algorithm
        self.walkers = walkers
        self.room = room
        self.sweeps = self.draws = 0
        self.log_joint = np.full(len(walkers), -math.inf)
        self._reported = algorithm.reported(walkers, room)
        self._kept: dict[str, NDArray[Any]] = {}
        self._growing = threading.Lock()
        self._known: dict[str, Any] = {}

    # ---- while it runs -----------------------------------------------------------------------------------------------

    def note(self, walker: Walker, sweep: int, *, is_kept: bool) -> None:
        """Write down where a chain stands after so many sweeps; chains may do so at the same time."""
        log_joint = self.log_joint[walker.number] = walker.log_joint()
        if not is_kept:
            return
        statistics = walker.statistics()
        values = {"log_joint": log_joint} | walker.kept(statistics, sweep, with_hidden=self.algorithm.keep_states)
        with self._growing:
            for name, value in values.items():
                self._put(name, (walker.number, self.draws), np.asarray(value))
        self._reported.note(walker, statistics, float(log_joint))

    def advanced(self, sweeps: int, *, is_kept: bool) -> None:
        """All chains have done their sweeps."""
        self.sweeps += sweeps
        self.draws += is_kept
        self._known = {}

    def _put(self, name: str, place: tuple[int, int], value: NDArray[Any]) -> None:
        """Keep one value of one draw."""
        where: tuple[Any, ...] = (*place, *(slice(size) for size in value.shape))
        self._array(name, value)[where] = value

    def _array(self, name: str, like: NDArray[Any]) -> NDArray[Any]:
        """The array that holds all values of a name, with room for one of this shape."""
        kept = self._kept.get(name)
        if kept is not None and kept.ndim != like.ndim + 2:
            raise FileFormatError(f"samples.{name} of the checkpoint has {kept.ndim} axes, not {like.ndim + 2}")
        shape = like.shape if kept is None else tuple(map(max, kept.shape[2:], like.shape))
        if kept is None or shape != kept.shape[2:]:
            nothing = np.nan if like.dtype.kind == "f" and name != "occupancy" else 0
            wider = np.full((len(self.walkers), self.room, *shape), nothing, dtype=like.dtype)
            if kept is not None:
                wider[tuple(slice(size) for size in kept.shape)] = kept
            self._kept[name] = wider
        return self._kept[name]

    # ---- results -----------------------------------------------------------------------------------------------------

    @property
    def _log_joints(self) -> Array:
        """Log joints of all draws, (chains, draws); before there are any, that of the present states."""
        return self._kept["log_joint"][:, : self.draws] if self.draws else self.log_joint[:, None]

    @property
    def statistics(self) -> Any:
        if "statistics" not in self._known:
            found = self._reported.statistics(self.walkers, self._log_joints)
            found.n_observations = self.problem.structure.total_weight
            self._known["statistics"] = found
        return self._known["statistics"]

    reported = statistics

    @property
    def prior(self) -> Any:
        found = self._reported.prior(self.walkers, self._log_joints)
        return None if found is self.problem.prior else found

    @property
    def point(self) -> Any:
        if "point" not in self._known:
            self._known["point"] = (self.prior or self.problem.prior).update(self.statistics).mean()
        return self._known["point"]

    @property
    def samples(self) -> Samples | None:
        """All kept draws, if there are any."""
        found = _samples(self.memory)
        return Samples(found) if found else None

    @property
    def memory(self) -> Memory:
        memory: Memory = {
            "sweeps": np.array(self.sweeps),
            "draws": np.array(self.draws),
            "log_joint": self.log_joint.copy(),
            "hidden": np.array([walker.hidden for walker in self.walkers]),
        }
        for walker in self.walkers:
            memory |= walker.memory()
        memory |= self._reported.memory()
        return memory | {f"samples.{name}": array[:, : self.draws] for name, array in self._kept.items()}

    def restore(self, memory: Memory, state: RunState) -> None:
        """Take up what `memory` gave; the walkers have done so."""
        self.sweeps = stored_number(memory, "sweeps", most=state.iteration * self.algorithm.thin)
        self.draws = stored_number(memory, "draws", most=state.iteration)
        self.log_joint = np.array(stored(memory, "log_joint", SINCE, (len(self.walkers),)))
        self._reported.restore(memory, self.walkers, self.draws)
        found = stored_samples(state)
        shape = len(self.walkers), self.draws
        if found is not None and any(array.shape[:2] != shape for array in found.values()):
            raise FileFormatError(f"the samples are not those of {shape[0]} chains")
        for name, array in {} if found is None else found.items():
            self._array(name, array[0, 0])[:, : self.draws] = array


def _samples(memory: Memory) -> dict[str, NDArray[Any]]:
    start = "samples."
    return {name.removeprefix(start): array for name, array in memory.items() if name.startswith(start)}


def stored_samples(state: RunState) -> Samples | None:
    """Return the draws of a run that a checkpoint holds; None if it kept none."""
    memory = state.results.memory
    arrays, draws = _samples(memory), stored_number(memory, "draws", most=state.iteration)
    found = Samples.from_file(arrays, state.point.n_states) if arrays else None
    if draws != (0 if found is None or "log_joint" not in found else found.n_draws):
        raise FileFormatError(f"the samples are not those of {draws} draws")
    return found


def samples_of(state: RunState) -> Samples | None:
    """Return the draws of a run, whether it has just ended or was read from a checkpoint; None if it kept none."""
    return state.results.samples if isinstance(state.results, Drawn) else stored_samples(state)
