"""The parts of a hidden Markov model: the chain (initial distribution and transitions), and the emissions."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Point, Posterior, check_alike, check_part
from subchain.core.records import FIRST
from subchain.emissions.base import Conjugate, Parameters
from subchain.emissions.base import Posterior as EmissionPosterior
from subchain.engines.statistics import HMMStatistics
from subchain.engines.surrogate import Surrogate
from subchain.errors import FileFormatError
from subchain.transitions.banded_rows import weights_like
from subchain.transitions.base import ChainLaw, ChainPosterior

#: Expected number of visits below which a state counts as empty.
EMPTY = 1e-8
#: Numbers in the parameters of emissions that count as large.
LARGE = 1 << 20


@dataclasses.dataclass
class HMMPoint(Point):
    """One HMM, or weights that stand in for one: a chain and emissions."""

    shares_states = True
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

    shares_states = True
    point_type = HMMPoint

    chain: ChainPosterior
    emission: EmissionPosterior

    def check_fit(self, statistics: Any, point: Any) -> None:
        """As for every posterior; of large tables of emissions only the first state is compared."""
        prior: Any = self.emission
        size = sum(array.size for array in point.emission.arrays().values())
        some = FIRST if size > LARGE else np.arange(point.n_states)
        what = "statistics and parameters"
        check_alike(statistics.chain, point.chain.operator.zeros(), what)
        check_alike(statistics.emission.take(some), point.emission.take(some).zeros(), what)
        check_part("chain", self.chain, statistics.chain, point.chain)
        check_part("emissions", *(record.take(some) for record in (prior, statistics.emission, point.emission)))
        try:
            if isinstance(prior, Conjugate):
                prior.check_sums(statistics.emission)
        except ValueError as error:
            raise FileFormatError(f"the statistics of the emissions are none: {error}") from None

    def next_mode(self, statistics: HMMStatistics, previous: HMMPoint | None) -> tuple[HMMPoint, list[str]]:
        """Return the mode; states without observations, and rows that are never left, keep the `previous` values."""
        mode: HMMPoint = self.mode()
        if previous is None:
            return mode, []
        unvisited, unleft = statistics.visits < EMPTY, statistics.chain.pairs.sum(axis=1) < EMPTY
        if unvisited.any():
            mode.emission = mode.emission.keep_states(unvisited, previous.emission)
        if unleft.any():
            mode.chain.weights[unleft] = weights_like(mode.chain, previous.chain)[unleft]
        events = [f"state {k} has no observations left; it keeps its parameters" for k in np.flatnonzero(unvisited)]
        return mode, events
