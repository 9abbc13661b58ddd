"""What a pass over the data is made for.

A pass hands the messages of every tile, and of every block of a sequence that had to be run in log space, to a
consumer; to some, also those of blocks that were run over legal states alone. Consumers keep one result a group, so
that groups can run side by side; a pass may run a group again, from an empty result.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.kernels import Kernels
from subchain.engines.cpu.listed import LegalRun, ListedFiltered, ListedMarginals
from subchain.engines.cpu.log_space import LogBlock
from subchain.engines.cpu.messages import Filtered, Smoothed, Told
from subchain.engines.cpu.partition import Partition
from subchain.engines.cpu.workspace import Workers
from subchain.engines.results import Consume, ConsumeFiltered, FilteredBlock, MarginalBlock, WriteBest, WriteMarginals
from subchain.engines.statistics import HMMStatistics
from subchain.engines.surrogate import Surrogate
from subchain.propagation import lanes
from subchain.propagation.lanes.outcomes import NO_OUTPUTS
from subchain.propagation.listed import passes as legal

Array = NDArray[np.float64]
Result = TypeVar("Result")
Item = TypeVar("Item")
Added = TypeVar("Added")

#: Bytes of a group's sums from which several threads add groups up.
LARGE_SUMS = 1 << 19


class Compiled(NamedTuple):
    """What compiled passes need to know of a consumer.

    Attributes
    ----------
    weights : (S,) how often each sequence counts; None if all count once
    outputs : from the cut of the data to what is done with messages, see `propagation.lanes.outcomes`
    allows_single : whether messages may be of single precision
    """

    weights: Array | None = None
    outputs: Callable[[Partition], Any] = lambda cut: NO_OUTPUTS
    allows_single: bool = True


class Consumer(ABC, Generic[Result]):
    """What a pass is made for: takes the messages of tiles (and of hard sequences) and makes something of them."""

    #: Whether smoothed marginals are wanted, and whether blocks of sequences that were run in log space are.
    smooth = True
    wants_blocks = True

    @property
    def compiled(self) -> Compiled | None:
        """What compiled passes need to know if they can do all that the consumer wants; None if they cannot."""
        return None

    @abstractmethod
    def begin(self) -> Result:
        """An empty result for one group."""

    def adopt(self, result: Result, cut: Partition, outputs: Any) -> None:
        """Take what a compiled pass has written into `outputs` beside sums, where that is not all that is wanted."""
        return

    @abstractmethod
    def tile(self, result: Result, run: TileRun) -> None:
        """Take one tile."""

    @abstractmethod
    def hard(self, result: Result, sequence: int, block: LogBlock) -> None:
        """Take one block of a sequence that was run in log space."""


class LegalConsumer(Consumer[Result]):
    """A consumer that can do with messages of legal states alone, where few states are legal."""

    @abstractmethod
    def block(self, result: Result, run: LegalRun) -> None:
        """Take one block of sequences that were run over legal states."""


class TileRun:
    """A tile with its messages."""

    def __init__(
        self, filtered: Filtered, smoothed: Smoothed | None, cut: Partition, told: Told | None, kernels: Kernels
    ) -> None:
        self.filtered = filtered
        self.kernels = kernels
        self._smoothed = smoothed
        self._cut = cut
        self._told = told

    @cached_property
    def sequences(self) -> NDArray[np.int64]:
        """Sequence of each lane, (lanes,)."""
        return self._cut.sequence[self.filtered.tile.pieces]

    @cached_property
    def is_first(self) -> NDArray[np.bool_]:
        """Whether the lane begins its sequence, (lanes,)."""
        return self._cut.is_first[self.filtered.tile.pieces]

    @property
    def before(self) -> Array | None:
        """Filtered marginal of the position before each lane, (lanes, K); None where no chain was cut."""
        return None if self._told is None else self._told.before

    @property
    def after(self) -> Array | None:
        """Backward message of each lane's last position, (lanes, K); None where no chain was cut."""
        return None if self._told is None else self._told.after

    @property
    def smoothed(self) -> Smoothed:
        """Smoothed messages, for consumers that want them."""
        assert self._smoothed is not None, "the consumer did not ask for smoothed messages"
        return self._smoothed

    @property
    def marginals(self) -> Array:
        """Smoothed marginals, (K, n)."""
        return self.smoothed.marginals


class Nothing(LegalConsumer[None]):
    """For passes that want log likelihoods alone."""

    smooth = wants_blocks = False
    compiled = Compiled()

    def begin(self) -> None:
        return None

    def tile(self, result: None, run: TileRun) -> None:
        pass

    def block(self, result: None, run: LegalRun) -> None:
        pass

    def hard(self, result: None, sequence: int, block: LogBlock) -> None:
        pass


@dataclasses.dataclass
class Collected:
    """Expected statistics of a group.

    Attributes
    ----------
    statistics : `pairs` without the factor of the transition matrix
    log_space_pairs : expected transitions of sequences that were run in log space, or None
    """

    statistics: HMMStatistics
    log_space_pairs: Array | None = None


class Collect(LegalConsumer[Collected]):
    """Sums expected statistics."""

    def __init__(self, surrogate: Surrogate, weights: Array | None) -> None:
        self.surrogate = surrogate
        self.weights = weights

    @property
    def compiled(self) -> Compiled:
        return Compiled(self.weights)

    def begin(self) -> Collected:
        return Collected(HMMStatistics(self.surrogate.transition.zeros(), self.surrogate.emission.zeros()))

    def tile(self, result: Collected, run: TileRun) -> None:
        filtered, marginals, sums = run.filtered, run.marginals, result.statistics
        offsets, weighted = filtered.tile.offsets, run.smoothed.weighted
        if self.weights is not None:
            lane_weights = self.weights[run.sequences]
            lanes.weigh(marginals, offsets, lane_weights)
            lanes.weigh(weighted, offsets, lane_weights)
        sums.chain.initial += marginals[:, : filtered.tile.lanes][:, run.is_first].sum(axis=1)
        run.kernels.pair_sums(filtered.alpha, weighted, offsets, sums.chain.pairs)
        before = run.before
        if before is not None:
            inner = ~run.is_first
            first = weighted[:, : filtered.tile.lanes][:, inner]
            self.surrogate.transition.accumulate(before[inner].T, first, sums.chain.pairs)
        self.surrogate.emission.accumulate(filtered.values, marginals, sums.emission)

    def block(self, result: Collected, run: LegalRun) -> None:
        block, marginals, weighted, sums = run.block, run.marginals, run.weighted, result.statistics
        if self.weights is not None:
            piece_weights = self.weights[block.pieces.sequences]
            legal.weigh(marginals, block.lists, piece_weights)
            legal.weigh(weighted, block.lists, piece_weights)
        legal.first_states(marginals, block.lists, sums.chain.initial)
        legal.pair_sums(run.alpha, weighted, block.lists, sums.chain.pairs)
        self.surrogate.emission.accumulate_listed(block.values, block.legal, marginals, sums.emission)

    def hard(self, result: Collected, sequence: int, block: LogBlock) -> None:
        weight = 1.0 if self.weights is None else self.weights[sequence]
        marginals, sums = block.marginals * weight, result.statistics
        if block.is_first:
            sums.chain.initial += marginals[:, 0]
        if result.log_space_pairs is None:
            result.log_space_pairs = np.zeros_like(block.pairs)
        result.log_space_pairs += weight * block.pairs
        self.surrogate.emission.accumulate(block.values, marginals, sums.emission)

    def finish(self, parts: list[Collected], workers: Workers) -> HMMStatistics:
        """Add the groups up, two and two and so on, whoever does it."""
        sums = [part.statistics for part in parts]
        size = sum(array.nbytes for array in sums[0].arrays().values())
        add = workers.map if size >= LARGE_SUMS else _one_by_one
        while len(sums) > 1:
            sums = add(_together, [sums[at : at + 2] for at in range(0, len(sums), 2)])
        total = sums[0]
        total.chain.pairs *= self.surrogate.transition.weights
        for part in parts:
            if part.log_space_pairs is not None:
                total.chain.pairs += part.log_space_pairs
        return total


def _together(sums: list[HMMStatistics]) -> HMMStatistics:
    """Add one or two statistics up, into the first."""
    for other in sums[1:]:
        sums[0].absorb(other)
    return sums[0]


def _one_by_one(task: Callable[[Item], Added], items: list[Item]) -> list[Added]:
    return [task(item) for item in items]


def suits(out: NDArray[Any], dtype: type) -> bool:
    """Whether kernels can write into an array."""
    return type(out) is np.ndarray and out.dtype == dtype and out.flags.c_contiguous and out.flags.writeable


def _written(consume: Any) -> Compiled | None:
    """What compiled passes need to know of what is done with marginals: tables to fill; None for anything else."""
    if isinstance(consume, WriteMarginals) and suits(consume.out, np.float64):
        return Compiled(outputs=lambda cut: NO_OUTPUTS._replace(marginals=consume.out))
    if isinstance(consume, WriteBest) and suits(consume.out, np.int32):
        return Compiled(outputs=lambda cut: NO_OUTPUTS._replace(best=consume.out))
    return None


class Smooth(LegalConsumer[None]):
    """Gives smoothed marginals away, block by block."""

    def __init__(self, consume: Consume) -> None:
        self.consume = consume

    @property
    def compiled(self) -> Compiled | None:
        return _written(self.consume)

    def begin(self) -> None:
        return None

    def tile(self, result: None, run: TileRun) -> None:
        self.consume(MarginalBlock(run.filtered.positions, run.marginals))

    def block(self, result: None, run: LegalRun) -> None:
        self.consume(ListedMarginals(run.block, run.marginals))

    def hard(self, result: None, sequence: int, block: LogBlock) -> None:
        self.consume(MarginalBlock(block.positions, block.marginals))


class Filter(LegalConsumer[None]):
    """Gives filtered marginals away, block by block."""

    smooth = False

    def __init__(self, consume: ConsumeFiltered) -> None:
        self.consume = consume

    @property
    def compiled(self) -> Compiled | None:
        return _written(self.consume)

    def begin(self) -> None:
        return None

    def tile(self, result: None, run: TileRun) -> None:
        filtered = run.filtered
        self.consume(FilteredBlock(filtered.positions, filtered.alpha, filtered.scale, filtered.shift))

    def block(self, result: None, run: LegalRun) -> None:
        self.consume(ListedFiltered(run.block, run.alpha, run.scale, run.shift))

    def hard(self, result: None, sequence: int, block: LogBlock) -> None:
        self.consume(FilteredBlock(block.positions, block.alpha, np.ones(len(block.positions)), block.increments))
