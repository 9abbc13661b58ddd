"""What a pass over the data is made for.

A pass hands the messages of every tile, and of every block of a sequence that had to be run in log space, to a
consumer; to some, also those of blocks that were run over legal states alone. Consumers keep one result a group, so
that groups can run side by side; a pass may run a group again, from an empty result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.borders import Borders
from subchain.engines.cpu.listed import LegalRun
from subchain.engines.cpu.log_space import LogBlock
from subchain.engines.cpu.messages import Filtered, Smoothed
from subchain.engines.cpu.partition import Partition
from subchain.engines.statistics import HMMStatistics
from subchain.engines.surrogate import Surrogate
from subchain.propagation.lanes import recursions as lanes
from subchain.propagation.listed import passes as legal

Array = NDArray[np.float64]
Result = TypeVar("Result")


class Consumer(ABC, Generic[Result]):
    """What a pass is made for: takes the messages of tiles (and of hard sequences) and makes something of them."""

    #: Whether smoothed marginals are wanted, and whether blocks of sequences that were run in log space are.
    smooth = True
    wants_blocks = True

    @abstractmethod
    def begin(self) -> Result:
        """An empty result for one group."""

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
        self, filtered: Filtered, smoothed: Smoothed | None, cut: Partition, borders: Borders | None, kernels: Any
    ) -> None:
        self.filtered = filtered
        self.kernels = kernels
        self._smoothed = smoothed
        self._cut = cut
        self._borders = borders

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
        return None if self._borders is None else self._borders.before[self.filtered.tile.pieces]

    @property
    def after(self) -> Array | None:
        """Backward message of each lane's last position, (lanes, K); None where no chain was cut."""
        return None if self._borders is None else self._borders.after[self.filtered.tile.pieces]

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

    def begin(self) -> None:
        return None

    def tile(self, result: None, run: TileRun) -> None:
        pass

    def block(self, result: None, run: LegalRun) -> None:
        pass

    def hard(self, result: None, sequence: int, block: LogBlock) -> None:
        pass


class Collect(LegalConsumer[HMMStatistics]):
    """Sums expected statistics; pair sums are kept without the factor of the transition matrix."""

    def __init__(self, surrogate: Surrogate, weights: Array | None) -> None:
        self.surrogate = surrogate
        self.weights = weights
        self.hard_pairs = np.zeros((surrogate.n_states, surrogate.n_states))

    def begin(self) -> HMMStatistics:
        return HMMStatistics.zeros(self.surrogate.n_states, self.surrogate.emission.zeros())

    def tile(self, result: HMMStatistics, run: TileRun) -> None:
        filtered, marginals = run.filtered, run.marginals
        offsets, weighted = filtered.tile.offsets, run.smoothed.weighted
        if self.weights is not None:
            lane_weights = self.weights[run.sequences]
            lanes.weigh(marginals, offsets, lane_weights)
            lanes.weigh(weighted, offsets, lane_weights)
        result.chain.initial += marginals[:, : filtered.tile.lanes][:, run.is_first].sum(axis=1)
        run.kernels.pair_sums(filtered.alpha, weighted, offsets, result.pairs)
        before = run.before
        if before is not None:
            inner = ~run.is_first
            result.chain.pairs += before[inner].T @ weighted[:, : filtered.tile.lanes][:, inner].T
        self.surrogate.emission.accumulate(filtered.values, marginals, result.emission)

    def block(self, result: HMMStatistics, run: LegalRun) -> None:
        block, marginals, weighted = run.block, run.marginals, run.weighted
        if self.weights is not None:
            piece_weights = self.weights[block.pieces.sequences]
            legal.weigh(marginals, block.lists, piece_weights)
            legal.weigh(weighted, block.lists, piece_weights)
        legal.first_states(marginals, block.lists, result.initial)
        legal.pair_sums(run.alpha, weighted, block.lists, result.pairs)
        self.surrogate.emission.accumulate_listed(block.values, block.legal, marginals, result.emission)

    def hard(self, result: HMMStatistics, sequence: int, block: LogBlock) -> None:
        weight = 1.0 if self.weights is None else self.weights[sequence]
        marginals = block.marginals * weight
        if block.is_first:
            result.chain.initial += marginals[:, 0]
        self.hard_pairs += weight * block.pairs
        self.surrogate.emission.accumulate(block.values, marginals, result.emission)
