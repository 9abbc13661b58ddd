"""What a sampler makes of the draws of its chains: the model that is reported.

Where states keep their names from draw to draw, it is the mean of all draws of the best chain, and it is also told how
often each position had each state. Where states come and go, nothing can be averaged, and the best draw is reported.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory, Posterior
from subchain.core.ranges import Range, stored
from subchain.core.records import FIRST
from subchain.core.statistics import Statistics
from subchain.core.stored_records import RecordReader, read_like
from subchain.errors import FileFormatError
from subchain.inference.run.loop import RunState
from subchain.inference.sampling.draws import samples_of
from subchain.structures.base import Walker

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Positions that are checked at a time.
BLOCK = 1 << 16


class Reported(Protocol):
    """What `Drawn` tells of every kept draw, and asks for the result."""

    def note(self, walker: Walker, statistics: Statistics, log_joint: float) -> None:
        """Record a draw of a chain; the statistics may be kept, and several threads may call this at once."""

    def statistics(self, walkers: list[Walker], log_joints: Array) -> Statistics:
        """The statistics to report, given the log joints of all draws, (chains, draws)."""

    def prior(self, walkers: list[Walker], log_joints: Array) -> Posterior:
        """The prior that belongs to them."""

    def memory(self) -> Memory:
        """What a checkpoint has to keep."""

    def restore(self, memory: Memory, walkers: list[Walker], draws: int) -> None:
        """Take up what `memory` gave."""


class Averages:
    """Means of all draws of a chain, and how often each position had each state.

    Parameters
    ----------
    walkers : the chains
    room : draws that each of them makes
    """

    def __init__(self, walkers: list[Walker], room: int) -> None:
        self._tally = np.zeros((len(walkers), *walkers[0].tally_shape()), dtype=np.min_scalar_type(room))
        self._totals: list[Statistics | None] = [None] * len(walkers)

    def note(self, walker: Walker, statistics: Statistics, log_joint: float) -> None:
        total = self._totals[walker.number]
        if total is None:
            self._totals[walker.number] = statistics
        else:
            total.absorb(statistics)
        walker.tally(self._tally[walker.number])

    def statistics(self, walkers: list[Walker], log_joints: Array) -> Statistics:
        best = int(log_joints.mean(axis=1).argmax())
        total = self._totals[best]
        return walkers[best].statistics() if total is None else total.scale(1.0 / log_joints.shape[1])

    def prior(self, walkers: list[Walker], log_joints: Array) -> Posterior:
        return walkers[0].prior

    def memory(self) -> Memory:
        memory: Memory = {"tally": self._tally}
        for number, total in enumerate(self._totals):
            if total is not None:
                memory |= {f"total.{number}.{key}": array for key, array in total.arrays().items()}
        return memory

    def restore(self, memory: Memory, walkers: list[Walker], draws: int) -> None:
        self._tally[:] = stored_tally(memory, draws, self._tally.shape, walkers[0].tally_starts())
        if draws:
            like = walkers[0].statistics()
            self._totals = [read_like(memory, f"total.{walker.number}", like) for walker in walkers]


def marginals_of(state: RunState, shape: tuple[int, ...], starts: Index) -> Array | None:
    """Return the share of the best chain's draws in which each position had each state; None without draws.

    `shape` is that of the result: (N, K), or (n,) for one number for each legal state of each position, in the order of
    `LegalStates`; `starts` (N,) is where the entries of each position begin.
    """
    samples = samples_of(state)
    if samples is None:
        return None
    tally = stored_tally(state.results.memory, samples.n_draws, (samples.n_chains, *shape), starts)
    shares: Array = tally[samples.best_chain] / samples.n_draws
    return shares


def stored_tally(memory: Memory, draws: int, shape: tuple[int, ...], starts: Index) -> NDArray[Any]:
    """Return how often each position had each state, of every chain, in so many draws."""
    tally = stored(memory, "tally", Range(dtype=None, least=0, most=draws), shape)
    for chain in tally.reshape(len(tally), -1):
        for block in range(0, len(starts), BLOCK):
            some = starts[block : block + BLOCK + 1]  # the last of them is where the next block begins
            entries = chain[some[0] : some[-1] if len(some) > BLOCK else None]
            sums = np.add.reduceat(entries, some[:BLOCK] - some[0], dtype=np.int64)
            if (sums != draws).any():
                raise FileFormatError(f"tally holds a position that does not have {draws} states")
    return tally


class BestDraw:
    """The draw of each chain that has the largest log joint, with the prior that it had."""

    def __init__(self, walkers: list[Walker]) -> None:
        self._best: list[tuple[float, Statistics, Posterior] | None] = [None] * len(walkers)

    def note(self, walker: Walker, statistics: Statistics, log_joint: float) -> None:
        best = self._best[walker.number]
        if best is None or log_joint > best[0]:
            self._best[walker.number] = log_joint, statistics, walker.prior

    def statistics(self, walkers: list[Walker], log_joints: Array) -> Statistics:
        return self._find(walkers, log_joints)[0]

    def prior(self, walkers: list[Walker], log_joints: Array) -> Posterior:
        return self._find(walkers, log_joints)[1]

    def _find(self, walkers: list[Walker], log_joints: Array) -> tuple[Statistics, Posterior]:
        chain = int(log_joints.max(axis=1).argmax())
        best = self._best[chain]
        return (walkers[chain].statistics(), walkers[chain].prior) if best is None else best[1:]

    def memory(self) -> Memory:
        memory: Memory = {}
        for number, best in enumerate(self._best):
            if best is not None:
                memory[f"best.{number}.log_joint"] = np.array(best[0])
                for name, record in (("statistics", best[1]), ("prior", best[2])):
                    memory |= {f"best.{number}.{name}.{key}": array for key, array in record.arrays().items()}
        return memory

    def restore(self, memory: Memory, walkers: list[Walker], draws: int) -> None:
        if not draws:
            return
        for walker in walkers:
            name, reader = f"best.{walker.number}", RecordReader(memory)
            found: list[Any] = []
            for part, like in (("statistics", walker.statistics()), ("prior", walker.prior)):
                found.append(reader.read(like.schema(), f"{name}.{part}"))
                if found[-1].take(FIRST).shapes() != like.take(FIRST).shapes():
                    raise FileFormatError(f"{name}.{part} has arrays of other shapes than the run")
            self._best[walker.number] = float(stored(memory, f"{name}.log_joint")), found[0], found[1]
