"""Expected statistics of hidden chains and of what their states emit."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from subchain.core.records import Sums
from subchain.core.statistics import Statistics
from subchain.transitions.base import ChainSums

Array = NDArray[np.float64]

#: A state that holds a smaller share of the positions is not in use.
USED = 1e-3


@dataclasses.dataclass
class HMMStatistics(Statistics):
    """Expected sufficient statistics of a set of chains.

    Attributes
    ----------
    chain : expected first states and transitions
    emission : the family's own sums
    """

    shares_states = True
    chain: ChainSums
    emission: Sums

    @classmethod
    def of(
        cls, initial: Array, pairs: Array, emission: Sums, log_normalizer: float = 0.0, n_observations: float = 0.0
    ) -> HMMStatistics:
        """Return statistics from their arrays: `initial` (K,), `pairs` (K, K) and the family's sums."""
        sums = ChainSums(initial, pairs)
        return cls(sums, emission, log_normalizer=log_normalizer, n_observations=n_observations)

    @classmethod
    def zeros(cls, n_states: int, emission: Sums) -> HMMStatistics:
        """Return the statistics of no data."""
        return cls.of(np.zeros(n_states), np.zeros((n_states, n_states)), emission)

    def summed_parts(self) -> Iterator[Array]:
        """Yield the arrays of the chain's sums and then those of the family's."""
        yield from self.chain.summed_arrays()
        yield from self.emission.summed_arrays()

    @property
    def initial(self) -> Array:
        """Expected number of chains that begin in each state, (K,)."""
        return self.chain.initial

    @initial.setter
    def initial(self, counts: Array) -> None:
        self.chain.initial = counts

    @property
    def pairs(self) -> Array:
        """Expected number of transitions from row to column, (K, K)."""
        return self.chain.matrix()

    @pairs.setter
    def pairs(self, counts: Array) -> None:
        self.chain.pairs = counts

    @property
    def n_states_used(self) -> int:
        return int((self.visits >= USED * self.visits.sum()).sum())

    @property
    def visits(self) -> Array:
        """Expected number of positions in each state, (K,)."""
        return self.chain.visits
