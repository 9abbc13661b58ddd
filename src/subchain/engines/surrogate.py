"""The plain HMM that stands in for a posterior during one pass: weights of first states, of moves, of observations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.base import Likelihood


class Surrogate(NamedTuple):
    """What an engine needs to run; rows may sum to less than one.

    Attributes
    ----------
    initial : (K,)
    transition : (K, K)
    emission : the family's likelihood
    """

    initial: NDArray[np.float64]
    transition: NDArray[np.float64]
    emission: Likelihood

    @property
    def n_states(self) -> int:
        return len(self.initial)
