"""The plain HMM that stands in for a posterior during one pass: weights of first states, transitions, observations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.base import Likelihood
from subchain.transitions.operators import TransitionOperator, as_operator

Array = NDArray[np.float64]


class Surrogate:
    """What an engine needs to run; rows may sum to less than one.

    Parameters
    ----------
    initial : (K,)
    transition : an operator, or a matrix (K, K)
    emission : the family's likelihood
    """

    def __init__(self, initial: Array, transition: Array | TransitionOperator, emission: Likelihood) -> None:
        self.initial = initial
        self.transition = as_operator(transition)
        self.emission = emission

    @property
    def n_states(self) -> int:
        return len(self.initial)

    def replace(
        self, *, initial: Array | None = None, transition: Array | TransitionOperator | None = None
    ) -> Surrogate:
        """Return the surrogate with other weights of first states or of transitions."""
        return Surrogate(
            self.initial if initial is None else initial,
            self.transition if transition is None else transition,
            self.emission,
        )
