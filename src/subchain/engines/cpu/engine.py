"""The engine of this machine's processor cores.

It cuts the data into tiles and runs groups of tiles on a pool of threads (the kernels release Python's lock). The verbs
are those of `subchain.engines.Engine`; each has a module of its own beside this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from subchain.core.components import Component
from subchain.data.sequences import Sequences
from subchain.engines.base import BoundarySteps, BufferGrowth, ChainSteps, Units, UpdatesFound
from subchain.engines.cpu import buffers, decode, factored_paths, in_order, left_out, passes, paths, updates
from subchain.engines.cpu.blas import single_threaded
from subchain.engines.cpu.consumers import Collect, Filter, Nothing, Smooth
from subchain.engines.cpu.cuts import Cuts, pass_memory
from subchain.engines.cpu.kernels import needs_matrix
from subchain.engines.cpu.messages import Messages
from subchain.engines.cpu.minibatches import run_minibatch
from subchain.engines.cpu.occurrence import occurrence
from subchain.engines.cpu.single import LARGEST_DEVIATION, Checks
from subchain.engines.cpu.workspace import Workers
from subchain.engines.part import Part
from subchain.engines.results import Approach, Consume, ConsumeFiltered, Keep, Occurrence, PassMemory, Scores
from subchain.engines.statistics import HMMStatistics
from subchain.engines.subchains import Minibatch, MinibatchRun
from subchain.engines.surrogate import Surrogate
from subchain.errors import unknown_name
from subchain.transitions.operators import Factored, TransitionOperator
from subchain.transitions.sums import MOST_DENSE

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Item = TypeVar("Item")
Result = TypeVar("Result")

#: Floating types of messages.
PRECISIONS = ("double", "single")


class Cpu(Component):
    """Runs chains on the cores of this machine.

    Parameters
    ----------
    n_jobs : int, optional
        Number of threads; all cores by default, −1 too. A model that has this engine and a number of its own uses that.
    precision : "double" or "single"
        Floating type of the messages in passes over large data: statistics, log likelihoods and marginals. Single
        precision is faster. Sums and log likelihoods are added up in double precision. Some stretches of the data are
        run in both precisions in every pass; if results differ by more than 2e-6, the whole pass is made in double
        precision, which is meant to keep results within 1e-5 of it. `checks` says what was found.

    Attributes
    ----------
    checks : what was found where single precision was compared with double precision: `n_checked` (how often),
        `deviation` (the largest relative difference) and `n_in_double` (how often that was too large, so that a pass
        was made in double precision)

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.data import Sequences
    >>> from subchain.emissions import Categorical
    >>> from subchain.engines import Cpu, Part, Surrogate
    >>> flat = Categorical.from_parameters([[0.5, 0.5], [0.5, 0.5]])
    >>> surrogate = Surrogate(np.array([1.0, 0.0]), np.array([[0.9, 0.1], [0.0, 1.0]]), flat)
    >>> part = Part(Sequences(np.array([0, 1, 0])))
    >>> Cpu().statistics(surrogate, part).pairs.round(2)
    array([[1.71, 0.19],
           [0.  , 0.1 ]])
    >>> Cpu().occurrence(surrogate, part, method="exact").probability.round(2)
    array([[0.9 , 0.19],
           [0.  , 0.1 ]])
    """

    def __init__(self, n_jobs: int | None = None, precision: str = "double") -> None:
        self.n_jobs = n_jobs
        self.precision = precision
        self.checks = Checks()
        self._cuts = Cuts()
        Workers(n_jobs)  # these two say what is wrong with a setting
        self._is_single()

    def __reduce__(self) -> tuple[type[Cpu], tuple[int | None, str]]:
        return Cpu, (self.n_jobs, self.precision)

    def with_jobs(self, n_jobs: int | None) -> Cpu:
        """Return this engine for a model that has a number of jobs: with that number, if it has none of its own."""
        if n_jobs is None or self.n_jobs is not None:
            return self
        engine = Cpu(n_jobs, self.precision)
        engine.checks, engine._cuts = self.checks, self._cuts
        return engine

    @property
    def workers(self) -> Workers:
        """The threads."""
        return Workers(self.n_jobs)

    @property
    def rounding(self) -> float:
        """Largest relative error of statistics and log likelihoods, where it is beyond that of double precision."""
        return LARGEST_DEVIATION if self._is_single() else 0.0

    def _is_single(self) -> bool:
        if not isinstance(self.precision, str) or self.precision not in PRECISIONS:
            raise unknown_name("precision", self.precision, PRECISIONS)
        return self.precision == "single"

    def _messages(self, surrogate: Surrogate, part: Part) -> Messages:
        return Messages(surrogate, part, self._cuts, self.checks if self._is_single() else None)

    # ---- passes over a part of the data ------------------------------------------------------------------------------

    def statistics(self, surrogate: Surrogate, part: Part) -> HMMStatistics:
        collect, weights = Collect(surrogate, part.weights), part.weights
        groups, scores = passes.run_pass(self.workers, self._messages(surrogate, part), collect)
        totals = scores.checked()
        statistics = collect.finish(groups, self.workers)
        statistics.log_normalizer = float(totals @ weights if weights is not None else totals.sum())
        statistics.n_observations = part.total_weight
        return statistics

    def stretch(
        self, surrogate: Surrogate, part: Part, ends: passes.StretchEnds
    ) -> tuple[HMMStatistics, passes.StretchTold]:
        """Return the expected statistics of a stretch of a sequence, and what it tells its neighbours.

        `part` is a single sequence, the stretch; the transition into it is counted with it.
        """
        collect = Collect(surrogate, part.weights)
        groups, told = passes.run_stretch(self.workers, self._messages(surrogate, part), collect, ends)
        statistics = collect.finish(groups, self.workers)
        statistics.log_normalizer = told.log_total * (1.0 if part.weights is None else float(part.weights[0]))
        statistics.n_observations = part.total_weight
        return statistics, told

    def scores(self, surrogate: Surrogate, part: Part) -> Scores:
        return passes.run_pass(self.workers, self._messages(surrogate, part), Nothing())[1]

    def smooth(self, surrogate: Surrogate, part: Part, consume: Consume) -> Scores:
        return passes.run_pass(self.workers, self._messages(surrogate, part), Smooth(consume))[1]

    def filter(self, surrogate: Surrogate, part: Part, consume: ConsumeFiltered) -> Scores:
        return passes.run_pass(self.workers, self._messages(surrogate, part), Filter(consume))[1]

    def predict(self, surrogate: Surrogate, part: Part, consume: Consume) -> Scores:
        return left_out.predict(self.workers, self._messages(surrogate, part), consume)

    def leave_out(self, surrogate: Surrogate, part: Part, consume: Consume) -> Scores:
        return left_out.leave_out(self.workers, self._messages(surrogate, part), consume)

    def smooth_in_order(self, surrogate: Surrogate, part: Part, size: int) -> Iterator[tuple[int, Array]]:
        return in_order.smooth_in_order(self.workers, self._messages(surrogate, part), size)

    def score_left_out(self, surrogate: Surrogate, part: Part) -> Array:
        return left_out.score_left_out(self.workers, self._messages(surrogate, part))

    def viterbi(self, surrogate: Surrogate, part: Part, out: NDArray[Any] | None = None) -> tuple[NDArray[Any], Array]:
        is_factored = isinstance(surrogate.transition, Factored)
        if is_factored and surrogate.n_states > MOST_DENSE:
            return factored_paths.viterbi(self._messages(surrogate, part), out)
        if is_factored:
            surrogate = _with_matrix(surrogate, "a most probable path")
        return decode.viterbi(self.workers, self._messages(surrogate, part), out)

    def sample_paths(
        self, surrogate: Surrogate, part: Part, n: int, seed: np.random.SeedSequence, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        if isinstance(surrogate.transition, Factored):
            surrogate = _with_matrix(surrogate, "a path that is drawn given observations")
        return paths.sample_paths(self.workers, self._messages(surrogate, part), n, seed, out)

    def occurrence(
        self, surrogate: Surrogate, part: Part, method: str = "pairs", n_samples: int = 1000, seed: int = 0
    ) -> Occurrence:
        messages = self._messages(_with_matrix(surrogate, "the occurrence of transitions"), part)
        return occurrence(self.workers, messages, method, n_samples, seed)

    # ---- subchains ---------------------------------------------------------------------------------------------------

    def minibatch(
        self, surrogate: Surrogate, part: Part, batch: Minibatch, start: Array, stop: Array, keep: Keep | None = None,
        surplus: str | None = None,
    ) -> MinibatchRun:  # fmt: skip
        if surplus is not None:
            surrogate = _with_matrix(surrogate, "the occurrence of transitions")
        return run_minibatch(self.workers, self._messages(surrogate, part), batch, start, stop, keep, surplus)

    def approach(
        self, surrogate: Surrogate, part: Part, batch: Minibatch, outside: Array, before: Index, after: Index
    ) -> Approach:
        return buffers.approach(self._messages(surrogate, part), batch, outside, before, after)

    def grow(
        self, surrogate: Surrogate, part: Part, batch: Minibatch, outside: Array, growth: BufferGrowth
    ) -> Approach:
        surrogate = _with_matrix(surrogate, "a growing buffer")
        return buffers.grow(self._messages(surrogate, part), batch, outside, growth)

    def distances(self, surrogate: Surrogate, part: Part, starts: Index, steps: int) -> Array:
        return self._messages(surrogate, part).distances(starts, steps)

    def can_fuse(self, n_states: int, n_observations: int, length: int) -> bool:
        return updates.can_fuse(n_states, n_observations, length)

    def run_updates(
        self, kind: int, emission: Any, chain: ChainSteps, units: Units, boundary: BoundarySteps, found: UpdatesFound
    ) -> None:
        updates.run_updates(self.workers, kind, emission, chain, units, boundary, found)

    # ---- the run -----------------------------------------------------------------------------------------------------

    def map(self, task: Callable[[Item], Result], items: list[Item]) -> list[Result]:
        return self.workers.map(task, items)

    def running(self) -> AbstractContextManager[object]:
        return single_threaded

    def pass_memory(self, data: Sequences, transition: TransitionOperator, sums_bytes: int) -> PassMemory:
        return pass_memory(data, transition, sums_bytes, self.workers.n_jobs)


#: The earlier name of the class.
CpuEngine = Cpu


def _with_matrix(surrogate: Surrogate, what: str) -> Surrogate:
    return surrogate.replace(transition=needs_matrix(surrogate.transition, what))
