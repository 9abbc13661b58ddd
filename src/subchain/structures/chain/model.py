"""The parts of a hidden Markov model: the chain (initial distribution and transitions), and the emissions."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Point, Posterior
from subchain.core.statistics import Statistics
from subchain.emissions.base import Parameters
from subchain.emissions.base import Posterior as EmissionPosterior
from subchain.engines.statistics import HMMStatistics
from subchain.engines.surrogate import Surrogate
from subchain.transitions.base import ChainLaw, ChainPosterior
from subchain.transitions.sums import EMPTY


@dataclasses.dataclass
class HMMPoint(Point):
    """One HMM, or weights that stand in for one: a chain and emissions."""

    chain: ChainLaw
    emission: Parameters

    @property
    def initial(self) -> NDArray[np.float64]:
        """Initial distribution, (K,)."""
        return self.chain.initial

    @property
    def transition(self) -> NDArray[np.float64]:
        """Transition matrix, (K, K)."""
        return self.chain.transition

    @property
    def n_states(self) -> int:
        return len(self.chain.initial)

    def surrogate(self) -> Surrogate:
        """Return the weights in the form that engines take."""
        return Surrogate(self.chain.initial, self.chain.operator, self.emission)


@dataclasses.dataclass
class HMMPosterior(Posterior):
    """Distribution over HMMs; the same class for the prior and for the posterior."""

    point_type = HMMPoint

    chain: ChainPosterior
    emission: EmissionPosterior

    if TYPE_CHECKING:  # what the base class makes of `point_type`

        def weights(self, kind: str) -> HMMPoint: ...
        def mean(self) -> HMMPoint: ...
        def mode(self) -> HMMPoint: ...
        def expected_log(self) -> HMMPoint: ...
        def predictive(self) -> HMMPoint: ...
        def sample(self, rng: np.random.Generator) -> HMMPoint: ...

    def next_mode(self, statistics: Statistics, previous: Point | None) -> tuple[HMMPoint, list[str]]:
        """Return the mode; states without observations, and rows that are never left, keep the `previous` values."""
        statistics, previous = cast(HMMStatistics, statistics), cast(HMMPoint | None, previous)
        chain = self.chain.next_mode(statistics.chain, None if previous is None else previous.chain)
        mode = HMMPoint(chain, self.emission.mode())
        if previous is None:
            return mode, []
        unvisited = statistics.visits < EMPTY
        if unvisited.any():
            mode.emission = mode.emission.keep_states(unvisited, previous.emission)
        events = [f"state {k} has no observations left; it keeps its parameters" for k in np.flatnonzero(unvisited)]
        return mode, events
