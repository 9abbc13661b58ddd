"""The parts of a hidden Markov model: the chain (initial distribution and transitions), and the emissions."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Point, Posterior, check_alike, check_part
from subchain.core.records import FIRST
from subchain.core.statistics import Statistics
from subchain.data.evidence import Evidence
from subchain.data.sequences import Sequences
from subchain.emissions.base import Conjugate, Parameters
from subchain.emissions.base import Posterior as EmissionPosterior
from subchain.engines.statistics import HMMStatistics
from subchain.engines.surrogate import Surrogate
from subchain.errors import FileFormatError
from subchain.numerics.simplex import logs
from subchain.transitions.base import ChainLaw, ChainPosterior
from subchain.transitions.final import EndingChain, unended
from subchain.transitions.sums import EMPTY

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

    def evidence(self, data: Sequences, known: Evidence | None) -> Evidence | None:
        """Return evidence about whole sequences: what is known, what the emissions rule out, and how they end."""
        known = self.emission.evidence(data, known)
        if not isinstance(self.chain, EndingChain):
            return known
        return Evidence.with_ends(known, data, logs(self.chain.final), logs(self.chain.onward))

    def unended(self) -> HMMPoint:
        """Return the model of sequences whose end has not come; rows sum to the probability of going on."""
        return HMMPoint(unended(self.chain), self.emission)


@dataclasses.dataclass
class HMMPosterior(Posterior):
    """Distribution over HMMs; the same class for the prior and for the posterior."""

    shares_states = True
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

    def next_mode(self, statistics: Statistics, previous: Point | None) -> tuple[HMMPoint, list[str]]:
        """Return the mode; states without observations, and rows that are never left, keep the `previous` values."""
        statistics, previous = cast(HMMStatistics, statistics), cast(HMMPoint | None, previous)
        chain, remarks = self.chain.next_mode(statistics.chain, None if previous is None else previous.chain)
        mode = HMMPoint(chain, self.emission.mode())
        if previous is None:
            return mode, remarks
        unvisited = statistics.visits < EMPTY
        if unvisited.any():
            mode.emission = mode.emission.keep_states(unvisited, previous.emission)
        events = [f"state {k} has no observations left; it keeps its parameters" for k in np.flatnonzero(unvisited)]
        return mode, remarks + events
