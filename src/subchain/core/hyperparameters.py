"""Priors without learned hyperparameters, and the test for when concentrations may be learned.

The hyperparameters of a prior may be learned: the parent distribution that transition rows share, a concentration. A
run then keeps the current hyperparameters and calls `update_hyperparameters` between iterations. The posterior is a
function of the current prior and of the statistics.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

#: Concentrations are learned once the rows of the transition counts differ: after EARLY updates if the mutual
#: information between a state and the next one exceeds MIN_INFORMATION nats, and after LATE updates in any case.
#: Learned earlier, from rows that are still nearly equal, a concentration would diverge.
EARLY, LATE, MIN_INFORMATION = 10, 50, 0.05
#: Joint probabilities below this contribute nothing to the mutual information.
NEGLIGIBLE = 1e-200


def states_differ(counts: NDArray[np.float64], n_updates: int) -> bool:
    """Return whether concentrations may be learned from transition counts (K, K) after `n_updates` updates."""
    return n_updates >= EARLY and (n_updates >= LATE or rows_differ(counts))


def rows_differ(counts: NDArray[np.float64]) -> bool:
    """Return whether row and column of `counts`, (K, K), have more than MIN_INFORMATION nats of mutual information."""
    joint = np.maximum(counts, 0.0) / max(counts.sum(), 1e-300)
    row, column = np.nonzero(joint > NEGLIGIBLE)
    independent = np.log(joint.sum(axis=1)[row]) + np.log(joint.sum(axis=0)[column])
    return float((joint[row, column] * (np.log(joint[row, column]) - independent)).sum()) > MIN_INFORMATION


class FixedHyperparameters:
    """Mixin for priors without learned hyperparameters: the update is a no-op."""

    @property
    def is_learned(self) -> bool:
        """Whether any hyperparameter is learned."""
        return False

    def update_hyperparameters(self, *observed: Any) -> Self:
        """Return the prior with hyperparameters updated for the observed statistics: here the same prior."""
        return self

    def begin(self, *observed: Any) -> Self:
        """Return the prior for a run that continues from unrelated sums: here the same prior."""
        return self.update_hyperparameters(*observed)

    def log_hyperprior(self) -> float:
        """Return the hyperparameters' term of the objective: log density, or −KL(posterior ‖ prior); here zero."""
        return 0.0
