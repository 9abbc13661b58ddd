"""What a process of a cluster does: run shards under a surrogate and add their statistics in a fixed order.

All functions are pure: they write to nothing that others see, so that a task can be done again elsewhere.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cluster.shards import Held
from subchain.engines.cpu.passes import StretchEnds, StretchTold
from subchain.engines.part import Observed
from subchain.engines.results import Scores
from subchain.engines.statistics import HMMStatistics
from subchain.engines.subchains import Minibatch
from subchain.engines.surrogate import Surrogate
from subchain.errors import ImpossibleSequenceError

Array = NDArray[np.float64]


class Job(NamedTuple):
    """What is asked of a shard.

    Attributes
    ----------
    number : of the shard
    ends : messages at the ends of a stretch; None where they are to be estimated from the rows around it
    left_out : whether nothing is asked: its sequence is run elsewhere
    """

    number: int
    ends: StretchEnds | None = None
    left_out: bool = False


@dataclasses.dataclass
class Done:
    """What some neighbouring shards gave.

    Attributes
    ----------
    statistics : their sum, or None if all were left out
    ends, told : by shard, for stretches: the messages at their ends that were used, and those that they tell
    impossible : position at which every path ends, by sequence
    """

    statistics: HMMStatistics | None = None
    ends: dict[int, StretchEnds] = dataclasses.field(default_factory=dict)
    told: dict[int, StretchTold] = dataclasses.field(default_factory=dict)
    impossible: dict[int, int] = dataclasses.field(default_factory=dict)


def n_threads() -> int:
    """Return the number of threads that this process was given; all shards that run at once share them."""
    worker = importlib.import_module("distributed").get_worker()
    return int(worker.state.nthreads)


def sum_statistics(surrogate: Surrogate, jobs: Sequence[Job], *held: Held) -> Done:
    """Return the statistics of some shards, added two and two and so on."""
    done, n_jobs, found = Done(), n_threads(), list[HMMStatistics | None]()
    for job, one in zip(jobs, held, strict=True):
        found.append(None if job.left_out else _statistics(surrogate, job, one, n_jobs, done))
    done.statistics = added(found)
    return done


def without_statistics(done: Done) -> Done:
    """Return what shards gave, without their statistics."""
    return dataclasses.replace(done, statistics=None)


def together(ours: Done, theirs: Done) -> Done:
    """Return the sum of the statistics of neighbouring runs of shards."""
    return Done(_together(ours.statistics, theirs.statistics))


def score(surrogate: Surrogate, held: Held) -> Scores:
    """Return the log likelihoods of a shard's sequences, numbered from its first."""
    return held.engine(n_threads()).scores(surrogate, held.part)


def _statistics(surrogate: Surrogate, job: Job, held: Held, n_jobs: int, done: Done) -> HMMStatistics | None:
    engine = held.engine(n_jobs)
    if held.shard.is_stretch:
        ends = estimated_ends(surrogate, held, n_jobs) if job.ends is None else job.ends
        statistics, done.told[job.number] = engine.stretch(surrogate, held.part, ends)
        done.ends[job.number] = ends
        return statistics
    try:
        return engine.statistics(surrogate, held.part)
    except ImpossibleSequenceError as error:
        done.impossible |= {held.shard.first + sequence: position for sequence, position in error.positions.items()}
        return None


def added(found: Sequence[HMMStatistics | None]) -> HMMStatistics | None:
    """Add statistics two and two, and so on, whoever has added some of them before; None is that of no data.

    Sums of neighbouring runs of 2ⁿ shards, the first of which has a number that 2ⁿ divides, are the same whether they
    were added here or before.
    """
    sums = list(found)
    while len(sums) > 1:
        sums = [_together(sums[at], sums[at + 1] if at + 1 < len(sums) else None) for at in range(0, len(sums), 2)]
    return sums[0] if sums else None


def _together(ours: HMMStatistics | None, theirs: HMMStatistics | None) -> HMMStatistics | None:
    if ours is None or theirs is None:
        return theirs if ours is None else ours
    total: HMMStatistics = ours + theirs
    return total


# ---- messages from the rows around a stretch -------------------------------------------------------------------------


def estimated_ends(surrogate: Surrogate, held: Held, n_jobs: int) -> StretchEnds:
    """Estimate the messages at the ends of a stretch from the rows around it; nothing beyond these is known."""
    shard, around, first = held.shard, held.around, held.n_before
    last = first + shard.stop - shard.start - 1
    flat = np.full(surrogate.n_states, 1.0 / surrogate.n_states)
    before = after = None
    if not shard.begins:
        run = first - 1 if held.sees_begin else first - 2  # a run from the first row begins a sequence
        found = held.engine(n_jobs).approach(surrogate, around, _at(first - 1), flat, np.array([run]), np.array([0]))
        likelihood = np.empty((surrogate.n_states, 1))
        Observed(surrogate, around).likelihood(np.array([first - 1]), likelihood)
        before = _normalised(found.start[:, 0] * likelihood[:, 0], flat)
    if not shard.ends:
        run = around.data.n_observations - last - 1
        found = held.engine(n_jobs).approach(surrogate, around, _at(last), flat, np.array([0]), np.array([run]))
        after = _normalised(found.stop[:, 0], flat)
    return StretchEnds(before, after)


def _normalised(message: Array, otherwise: Array) -> Array:
    total = message.sum()
    return np.asarray(message / total if 0.0 < total < np.inf else otherwise)


def _at(position: int) -> Minibatch:
    """A subchain of one position."""
    at, zero, no = np.array([position]), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.bool_)
    return Minibatch(at, zero, at, np.ones(1, dtype=np.int64), no, no, None, None, None)
