"""One pass over data whose shards the processes of a cluster hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cluster.connection import LARGE, Connection
from subchain.engines.cluster.shards import Held, Shard, divide
from subchain.engines.cluster.worker import Done, Job, added, sum_statistics, together, without_statistics
from subchain.engines.cpu.borders import disagreement
from subchain.engines.cpu.engine import Cpu
from subchain.engines.cpu.passes import StretchEnds, StretchTold
from subchain.engines.cpu.precision import DOUBLE
from subchain.engines.part import Part
from subchain.engines.results import Scores
from subchain.engines.statistics import HMMStatistics
from subchain.engines.surrogate import Surrogate
from subchain.errors import impossible_error
from subchain.propagation.underflow import LOG_MATTERS

Array = NDArray[np.float64]

#: Rounds in which all stretches learn from their neighbours at once, before they do so one after the other.
ROUNDS = 3
#: Runs of shards for each process, where these cannot be equally many for all.
RUNS = 8


class Division:
    """The shards of a part, and who holds them.

    Attributes
    ----------
    shards : in the order of the data
    runs : first shard of each run, and number of all: what one task works on; 2ⁿ shards but for the last
    """

    def __init__(self, part: Part, n_states: int) -> None:
        self.part, self.n_states = part, n_states
        self.shards = divide(part.data.offsets, n_states)
        self.runs: list[int] = []

    def is_of(self, part: Part, n_states: int) -> bool:
        """Whether this is the division of a part, for so many states."""
        mine = self.part
        return (
            self.n_states == n_states
            and mine.data.values is part.data.values
            and mine.data.offsets is part.data.offsets
            and mine.evidence is part.evidence
            and mine.weights is part.weights
            and mine.hidden is part.hidden
        )

    def place(self, connection: Connection) -> None:
        """Have the processes that are there now hold the shards."""
        workers, n_shards = connection.workers(), len(self.shards)
        wanted = len(workers) if (len(workers) & (len(workers) - 1)) == 0 else RUNS * len(workers)
        size = 1
        while size < n_shards and -(-n_shards // (2 * size)) >= wanted:
            size *= 2
        self.runs = [*range(0, n_shards, size), n_shards]
        n_runs = len(self.runs) - 1
        homes = [workers[number // size * len(workers) // n_runs] for number in range(n_shards)]
        connection.place(homes, lambda number: Held.of(self.part, self.shards[number]))

    def neighbours(self) -> list[tuple[int, int]]:
        """Return the pairs of shards between which a sequence was cut."""
        return [(left, left + 1) for left in range(len(self.shards) - 1) if not self.shards[left].ends]

    def positions(self, number: int) -> str:
        """Return where a shard lies, for messages."""
        shard: Shard = self.shards[number]
        return f"shard {number} (positions {shard.start} to {shard.stop - 1})"


class Pass:
    """A pass under one surrogate.

    Attributes
    ----------
    ends, told : of stretches, by shard: the messages at their ends that were used, and those that they tell
    run_here : log likelihoods of the sequences that were run by this process, whole, because of underflow
    """

    def __init__(
        self, connection: Connection, division: Division, surrogate: Surrogate, part: Part, local: Cpu
    ) -> None:
        self.connection, self.division, self.surrogate, self.part, self.local = (
            connection, division, surrogate, part, local,
        )  # fmt: skip
        self.ends, self.told = dict[int, StretchEnds](), dict[int, StretchTold]()
        self.impossible = dict[int, int]()
        self.run_here = dict[int, Scores]()
        self._here: HMMStatistics | None = None
        self._shared = connection.shared(surrogate)
        self._sums: dict[int, Any] = {}
        sums = surrogate.transition.zeros().arrays(), surrogate.emission.zeros().arrays()
        self._is_large = sum(array.nbytes for arrays in sums for array in arrays.values()) > LARGE

    def settle(self) -> None:
        """Run all shards, those between messages that turn out to differ again, and hard sequences here."""
        self._run(range(len(self.division.runs) - 1))
        for _ in range(ROUNDS):
            wrong = self._adopt()
            if not wrong:
                break
            self._run(self._runs_with(wrong))
        else:
            if wrong := self._adopt():
                self._sweep({self.division.shards[number].first for number in wrong})
        self._leave_out_hard()

    def sum(self) -> HMMStatistics:
        """Return the statistics of all sequences."""
        if self.impossible:
            raise impossible_error(dict(sorted(self.impossible.items())))
        found = [self._sums[run] for run in sorted(self._sums)]
        if self._is_large:
            found = [self._merged(found)]
        total = added(found)
        if self._here is not None:
            total = self._here if total is None else total + self._here
        if total is None:
            total = HMMStatistics(self.surrogate.transition.zeros(), self.surrogate.emission.zeros())
        return total

    # ---- runs of shards ----------------------------------------------------------------------------------------------

    def _run(self, runs: Any) -> None:
        """Have the processes work on some runs of shards."""
        handles = {}
        for run in runs:
            first, last = self.division.runs[run : run + 2]
            handles[run] = self._submit(range(first, last))
        light = handles
        if self._is_large:
            light = {
                run: self.connection.submit(self.connection.home(self.division.runs[run]), without_statistics, handle)
                for run, handle in handles.items()
            }
        for run, done in self.connection.client.gather(light).items():
            self._sums[run] = handles[run] if self._is_large else done.statistics
            self._keep(done)

    def _submit(self, numbers: range) -> Any:
        jobs = [Job(number, self.ends.get(number), self._is_left_out(number)) for number in numbers]
        held = [self.connection.held(number) for number in numbers]
        return self.connection.submit(self.connection.home(numbers[0]), sum_statistics, self._shared, jobs, *held)

    def _keep(self, done: Done) -> None:
        self.ends |= done.ends
        self.told |= done.told
        self.impossible |= done.impossible

    def _is_left_out(self, number: int) -> bool:
        shard = self.division.shards[number]
        return shard.is_stretch and shard.first in self.run_here

    def _runs_with(self, numbers: Any) -> list[int]:
        """Return the runs that some shards belong to."""
        return sorted({int(np.searchsorted(self.division.runs, number, side="right")) - 1 for number in numbers})

    def _merged(self, handles: list[Any]) -> HMMStatistics | None:
        """Add large statistics where they are, as `added` does; only their sum comes here."""
        homes = [self.connection.home(first) for first in self.division.runs[:-1]]
        while len(handles) > 1:
            pairs = range(0, len(handles), 2)
            handles = [
                self.connection.submit(homes[at], together, *handles[at : at + 2])
                if at + 1 < len(handles)
                else handles[at]
                for at in pairs
            ]
            homes = homes[::2]
        done: Done = handles[0].result()
        return done.statistics

    # ---- messages between stretches ----------------------------------------------------------------------------------

    def _adopt(self) -> set[int]:
        """Give stretches what their neighbours tell them, where they were told something else; return those."""
        wrong = set[int]()
        for left, right in self.division.neighbours():
            if self._is_left_out(left) or not self._is_sound(left, right):
                continue
            ours, theirs = self.ends[right].before, self.told[left].last
            if _differ(ours, theirs):
                self.ends[right] = self.ends[right]._replace(before=theirs)
                wrong.add(right)
            ours, theirs = self.ends[left].after, self.told[right].first
            if _differ(ours, theirs):
                self.ends[left] = self.ends[left]._replace(after=theirs)
                wrong.add(left)
        return wrong

    def _is_sound(self, left: int, right: int) -> bool:
        """Whether both shards could be run without underflow that matters."""
        return not (np.isnan(self.told[left].log_total) or np.isnan(self.told[right].log_total))

    def _sweep(self, sequences: set[int]) -> None:
        """Let stretches of some sequences learn from their neighbours one after the other, and run them again."""
        neighbours = [pair for pair in self.division.neighbours() if self.division.shards[pair[0]].first in sequences]
        for left, right in neighbours:
            self._alone(left)
            self.ends[right] = self.ends[right]._replace(before=self.told[left].last)
        for left, right in reversed(neighbours):
            self._alone(right)
            self.ends[left] = self.ends[left]._replace(after=self.told[right].first)
        self._run(self._runs_with({number for pair in neighbours for number in pair}))

    def _alone(self, number: int) -> None:
        """Run one stretch for what it tells its neighbours."""
        home = self.connection.home(number)
        handle = self.connection.submit(home, without_statistics, self._submit(range(number, number + 1)))
        self._keep(handle.result())

    # ---- underflow ---------------------------------------------------------------------------------------------------

    def _leave_out_hard(self) -> None:
        """Run sequences here, as wholes, in whose stretches something may have been lost that matters."""
        hard = self._hard()
        if not hard:
            return
        chosen = np.array(sorted(hard))
        for sequence in chosen.tolist():
            alone = self._sequence(sequence)
            self.run_here[sequence] = self.local.scores(self.surrogate, alone)
            self.impossible.update((sequence, at) for at in self.run_here[sequence].impossible.values())
            if sequence not in self.impossible:
                found = self.local.statistics(self.surrogate, alone)
                self._here = found if self._here is None else self._here + found
        self._run(self._runs_with(n for n in range(len(self.division.shards)) if self._is_left_out(n)))
        for number in [number for number in self.told if self._is_left_out(number)]:
            del self.told[number]

    def _hard(self) -> set[int]:
        """Return the sequences in which underflow matters."""
        bound, hard = -np.inf, set[int]()
        for number in sorted(self.told):
            told, shard = self.told[number], self.division.shards[number]
            gain, own, highest, own_highest = (float(field[0]) for field in told.lost)
            bound = -np.inf if shard.begins else bound
            matters = max(bound + highest, own_highest) > LOG_MATTERS
            bound = max(bound + gain, own)
            if matters or np.isnan(told.log_total):
                hard.add(shard.first)
        return hard

    def _sequence(self, sequence: int) -> Part:
        """Return one sequence as a part of its own."""
        low, high = (int(offset) for offset in self.part.data.offsets[sequence : sequence + 2])
        part = self.part
        return Part(
            part.data[[sequence]],
            None if part.evidence is None else part.evidence.between(low, high),
            None if part.weights is None else part.weights[[sequence]],
            None if part.hidden is None else part.hidden[low:high],
        )


def _differ(ours: Array | None, theirs: Array) -> bool:
    """Whether two messages do not count as the same."""
    return ours is None or not disagreement(ours, theirs) <= DOUBLE.tolerance
