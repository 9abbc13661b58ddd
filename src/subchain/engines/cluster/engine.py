"""The engine of several processes or machines: every pass over the data is shared by the processes of a Dask cluster.

A pass sends the surrogate to the processes, each of which runs the shards that it holds (`shards.py`, `worker.py`) on
its own threads, and gets back their statistics. A long sequence is cut into stretches. Each is run between messages
that are first estimated from the rows around it; afterwards they are compared with what the neighbours have computed,
as the pieces inside a stretch are (`engines.cpu.borders`), and stretches whose messages differ are run again.

What is not a pass over all the data, minibatches and single questions, is answered by this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from subchain.core.components import Component
from subchain.data.sequences import Sequences
from subchain.engines.base import BufferGrowth
from subchain.engines.cluster.connection import ATTEMPTS, Connection, connect
from subchain.engines.cluster.passes import Division, Pass
from subchain.engines.cluster.worker import score
from subchain.engines.cpu.engine import Cpu
from subchain.engines.part import Part
from subchain.engines.results import Approach, Consume, ConsumeFiltered, Keep, Occurrence, PassMemory, Scores
from subchain.engines.statistics import HMMStatistics
from subchain.engines.subchains import Minibatch, MinibatchRun
from subchain.engines.surrogate import Surrogate
from subchain.errors import ClusterError, SubchainError
from subchain.transitions.operators import TransitionOperator

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Item = TypeVar("Item")
Result = TypeVar("Result")

#: Errors that say that a process, or the connection to one, was lost.
LOSSES = ("KilledWorker", "CancelledError", "FutureCancelledError", "FuturesCancelledError", "CommClosedError")


class Cluster(Component):
    """Runs chains on the processes of a Dask cluster.

    Parameters
    ----------
    address : str or distributed.Client
        Address of the scheduler, such as "tcp://10.0.0.1:8786"; "local:4" starts four processes on this machine.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, Cluster
    >>> HMM(3, engine=Cluster("tcp://10.0.0.1:8786")).engine
    Cluster(address='tcp://10.0.0.1:8786')
    """

    def __init__(self, address: Any) -> None:
        self.address = address
        self._local = Cpu()
        self._connection: Connection | None = None
        self._division: Division | None = None

    def __reduce__(self) -> tuple[type[Cluster], tuple[Any]]:
        return Cluster, (self.address,)

    @property
    def connection(self) -> Connection:
        """The processes; connecting to them when they are first needed."""
        if self._connection is None:
            self._connection = Connection(connect(self.address))
        return self._connection

    # ---- passes over a part of the data ------------------------------------------------------------------------------

    def statistics(self, surrogate: Surrogate, part: Part) -> HMMStatistics:
        return self._retried(lambda: self._pass(surrogate, part).sum())

    def scores(self, surrogate: Surrogate, part: Part) -> Scores:
        return self._retried(lambda: self._scores(surrogate, part))

    def _pass(self, surrogate: Surrogate, part: Part) -> Pass:
        running = Pass(self.connection, self._divided(surrogate, part), surrogate, part, self._local)
        running.settle()
        return running

    def _scores(self, surrogate: Surrogate, part: Part) -> Scores:
        division = self._divided(surrogate, part)
        totals, impossible = np.zeros(part.data.n_sequences), dict[int, int]()
        shared, handles = self.connection.shared(surrogate), dict[int, Any]()
        for number, shard in enumerate(division.shards):
            if not shard.is_stretch:
                home, held = self.connection.home(number), self.connection.held(number)
                handles[number] = self.connection.submit(home, score, shared, held)
        for number, found in self.connection.client.gather(handles).items():
            first, last = division.shards[number].first, division.shards[number].last
            totals[first:last] = found.log_likelihood
            impossible |= {first + sequence: position for sequence, position in found.impossible.items()}
        if division.neighbours():
            running = self._pass(surrogate, part)
            for number, told in running.told.items():
                totals[division.shards[number].first] += told.log_total
            for sequence, found in running.run_here.items():
                totals[sequence] = found.log_likelihood[0]
                impossible.update((sequence, position) for position in found.impossible.values())
        return Scores(totals, dict(sorted(impossible.items())))

    def _divided(self, surrogate: Surrogate, part: Part) -> Division:
        """Return the shards of a part, which processes hold."""
        if self._division is None or not self._division.is_of(part, surrogate.n_states):
            self.connection.forget()
            self._division = Division(part, surrogate.n_states)
        self._division.place(self.connection)
        return self._division

    def _retried(self, run: Callable[[], Result]) -> Result:
        """Run a pass, again if processes are lost meanwhile."""
        for attempt in range(ATTEMPTS):
            try:
                return run()
            except Exception as error:
                if not _is_loss(error):
                    raise
                last = error
                self.connection.forget()
                if attempt == ATTEMPTS - 1:
                    break
        raise ClusterError(_what_was_lost(last, self._division)) from last

    # ---- answered here -----------------------------------------------------------------------------------------------

    def smooth(self, surrogate: Surrogate, part: Part, consume: Consume) -> Scores:
        return self._local.smooth(surrogate, part, consume)

    def filter(self, surrogate: Surrogate, part: Part, consume: ConsumeFiltered) -> Scores:
        return self._local.filter(surrogate, part, consume)

    def predict(self, surrogate: Surrogate, part: Part, consume: Consume) -> Scores:
        return self._local.predict(surrogate, part, consume)

    def leave_out(self, surrogate: Surrogate, part: Part, consume: Consume) -> Scores:
        return self._local.leave_out(surrogate, part, consume)

    def smooth_in_order(self, surrogate: Surrogate, part: Part, size: int) -> Iterator[tuple[int, Array]]:
        return self._local.smooth_in_order(surrogate, part, size)

    def score_left_out(self, surrogate: Surrogate, part: Part) -> Array:
        return self._local.score_left_out(surrogate, part)

    def viterbi(self, surrogate: Surrogate, part: Part, out: NDArray[Any] | None = None) -> tuple[NDArray[Any], Array]:
        return self._local.viterbi(surrogate, part, out)

    def sample_paths(
        self, surrogate: Surrogate, part: Part, n: int, seed: np.random.SeedSequence, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        return self._local.sample_paths(surrogate, part, n, seed, out)

    def occurrence(
        self, surrogate: Surrogate, part: Part, method: str = "pairs", n_samples: int = 1000, seed: int = 0
    ) -> Occurrence:
        return self._local.occurrence(surrogate, part, method, n_samples, seed)

    def minibatch(
        self, surrogate: Surrogate, part: Part, batch: Minibatch, start: Array, stop: Array, keep: Keep | None = None,
        surplus: str | None = None,
    ) -> MinibatchRun:  # fmt: skip
        return self._local.minibatch(surrogate, part, batch, start, stop, keep, surplus)

    def approach(
        self, surrogate: Surrogate, part: Part, batch: Minibatch, outside: Array, before: Index, after: Index
    ) -> Approach:
        return self._local.approach(surrogate, part, batch, outside, before, after)

    def grow(
        self, surrogate: Surrogate, part: Part, batch: Minibatch, outside: Array, growth: BufferGrowth
    ) -> Approach:
        return self._local.grow(surrogate, part, batch, outside, growth)

    def distances(self, surrogate: Surrogate, part: Part, starts: Index, steps: int) -> Array:
        return self._local.distances(surrogate, part, starts, steps)

    def map(self, task: Callable[[Item], Result], items: list[Item]) -> list[Result]:
        return self._local.map(task, items)

    def running(self) -> AbstractContextManager[object]:
        return self._local.running()

    def pass_memory(self, data: Sequences, transition: TransitionOperator, sums_bytes: int) -> PassMemory:
        return self._local.pass_memory(data, transition, sums_bytes)


def _is_loss(error: Exception) -> bool:
    """Whether an error means that a process, or the connection to one, was lost."""
    is_of_connection = isinstance(error, OSError) and not isinstance(error, SubchainError)
    return type(error).__name__ in LOSSES or is_of_connection


def _what_was_lost(error: Exception, division: Division | None) -> str:
    size = 0 if division is None else max((shard.stop - shard.start for shard in division.shards), default=0)
    return (
        f"processes of the cluster were lost again and again ({type(error).__name__}: {error}). If they ran out of "
        f"memory, give each more of it, or fewer threads: a shard has up to {size} positions. The last checkpoint, if "
        "there is one, resumes the fit."
    )
