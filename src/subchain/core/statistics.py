"""Expected sufficient statistics, the data that threads, minibatches, checkpoints and machines exchange.

The posterior is a function of the prior and of the statistics, which can be added, subtracted and scaled.
"""

from __future__ import annotations

import dataclasses
from typing import Protocol, runtime_checkable

from subchain.core.records import Sums


@dataclasses.dataclass(kw_only=True)
class Statistics(Sums):
    """Expected sufficient statistics of some data; subclasses declare one field of `Sums` per part of the model.

    Attributes
    ----------
    log_normalizer : sum of the clusters' log normalisers under the weights that gave these expectations
    n_observations : (weighted) number of observations
    """

    shares_states = False
    log_normalizer: float = 0.0
    n_observations: float = 0.0

    @property
    def n_states_used(self) -> int | None:
        """Return the number of states that hold a share of the observations; None if the model has no states."""
        return None

    def part(self, name: str) -> Sums:
        """Return the sums of one part of the model."""
        found: Sums = getattr(self, name)
        return found


@runtime_checkable
class Rounds(Protocol):
    """What makes statistics that are rounded more coarsely than doubles: an engine in single precision, for example."""

    @property
    def rounding(self) -> float:
        """Largest relative error of statistics and log normalisers; zero for that of doubles."""
