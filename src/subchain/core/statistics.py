"""The currency of the house: expected counts of the hidden chain and of what its states emit.

Threads, minibatches, checkpoints, out-of-core passes and machines exchange nothing else. Statistics add, subtract and
scale; the posterior is a function of the prior and of these alone.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from subchain.core.records import Sums, states_on


@dataclasses.dataclass
class Statistics(Sums):
    """Expected sufficient statistics of a set of chains.

    Attributes
    ----------
    initial : (K,) expected number of chains that begin in each state
    pairs : (K, K) expected number of transitions from row to column
    emission : the family's own sums
    log_normalizer : sum of the chains' log normalisers under the surrogate that made these marginals
    n_observations : number of positions visited (weighted)
    """

    initial: NDArray[np.float64] = states_on(0)
    pairs: NDArray[np.float64] = states_on(0, 1)
    emission: Sums = states_on(0)
    log_normalizer: float = 0.0
    n_observations: float = 0.0

    @classmethod
    def zeros(cls, n_states: int, emission: Sums) -> Statistics:
        return cls(np.zeros(n_states), np.zeros((n_states, n_states)), emission)
