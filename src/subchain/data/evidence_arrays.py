"""Evidence about hidden states as arrays that compiled passes read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class EvidenceArrays(NamedTuple):
    """All that is known of the states of N positions; arrays without rows say nothing.

    Attributes
    ----------
    order : (K,) number of each state in the other arrays
    states : (N,) known state of each position, −1 where it is unknown
    log_weights : (N, K) log weights
    legal : (N, K) legal states of each position
    symbols : (N,) symbol of each position
    legal_of_symbols : (K, W + 1) legal states of each symbol, and of all others in the last column
    """

    order: NDArray[np.int64]
    states: NDArray[Any]
    log_weights: NDArray[Any]
    legal: NDArray[np.bool_]
    symbols: NDArray[Any]
    legal_of_symbols: NDArray[np.bool_]

    @classmethod
    def nothing(cls, order: NDArray[np.int64]) -> EvidenceArrays:
        """Return arrays that say nothing."""
        codes, flags = np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.bool_)
        return cls(order, codes, np.empty((0, 0)), flags, codes, flags)
