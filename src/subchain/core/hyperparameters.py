"""Priors of which nothing is learned: what a hierarchical prior does between iterations, they do by doing nothing.

A prior may itself be learned: the parent that rows of moves share, a concentration. Then a run keeps a prior of the
moment, which is moved between iterations by `update_hyperparameters`; the posterior is a function of this prior and of
the statistics.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

#: Concentrations are learned once states differ: after so many renewals if what states do depends on them (mutual
#: information, nats), and after so many in any case. Before, rows that are all alike would make them run away.
EARLY, LATE, TELLING = 10, 50, 0.05
#: Shares that say nothing.
NOTHING = 1e-200


def states_differ(counts: NDArray[np.float64], renewals: int) -> bool:
    """Whether rows of counts, one a state, have become different from each other, or never will."""
    return renewals >= EARLY and (renewals >= LATE or rows_tell(counts))


def rows_tell(counts: NDArray[np.float64]) -> bool:
    """Whether a state says anything about the next one."""
    joint = np.maximum(counts, 0.0) / max(counts.sum(), 1e-300)
    row, column = np.nonzero(joint > NOTHING)
    alone = np.log(joint.sum(axis=1)[row]) + np.log(joint.sum(axis=0)[column])
    return float((joint[row, column] * (np.log(joint[row, column]) - alone)).sum()) > TELLING


class FixedHyperparameters:
    """The verbs of a prior that stays as it was."""

    @property
    def is_learned(self) -> bool:
        """Whether anything of the prior is learned."""
        return False

    def update_hyperparameters(self, *observed: Any) -> Self:
        """This prior with what is learned of it moved towards what suits the statistics."""
        return self

    def begin(self, *observed: Any) -> Self:
        """Return this prior for a run that continues from unrelated sums."""
        return self.update_hyperparameters(*observed)

    def log_hyperprior(self) -> float:
        """What the present state of the prior is worth: its log density, or less its divergence from its own prior."""
        return 0.0
