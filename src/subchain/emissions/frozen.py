"""Emissions of which all states, or some (`frozen=[…]`), keep given parameters."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.hyperparameters import FixedHyperparameters
from subchain.core.ranges import FRACTIONS
from subchain.core.records import Record, array
from subchain.data.evidence import Evidence
from subchain.data.sequences import Sequences
from subchain.emissions.base import Conjugate, Likelihood, Parameters, Table, Values
from subchain.emissions.incremental import Incremental

if TYPE_CHECKING:
    from subchain.emissions.collapsed.counts import EmissionCounts

Array = NDArray[np.float64]


@dataclasses.dataclass
class Frozen(Record, FixedHyperparameters):
    """Point mass on given parameters, for components that are frozen or set by hand; updates change nothing."""

    parameters: Parameters

    def update(self, sums: Any) -> Frozen:
        return self

    def mean(self) -> Parameters:
        return self.parameters

    mode = expected_log = predictive = mean

    def sample(self, rng: np.random.Generator) -> Parameters:
        return self.parameters

    def kl(self, prior: Any) -> float:
        return 0.0

    def log_density(self, parameters: Any) -> float:
        return 0.0

    def log_partition(self) -> NDArray[np.float64]:
        return np.zeros(self.parameters.n_states)

    def log_evidence(self, sums: Any) -> float | None:
        return None

    def incremental(self, sums: Any) -> Incremental:
        return Incremental(self, sums)

    def counts(self, sums: Any, values: Values) -> EmissionCounts | None:
        return self.parameters.fixed_counts(values)


class MixedLikelihood(Likelihood):
    """The likelihood of one object in some states and of another in the others; sums are those of the first."""

    def __init__(self, learned: Likelihood, given: Likelihood, kept: NDArray[np.bool_]) -> None:
        self.learned = learned
        self.given = given
        self.kept = kept

    @property
    def n_states(self) -> int:
        return self.learned.n_states

    def evidence(self, data: Sequences, known: Evidence | None) -> Evidence | None:
        return self.learned.evidence(data, known)

    def log_likelihood(self, values: Values) -> Table:
        return np.where(self.kept[:, None], self.given.log_likelihood(values), self.learned.log_likelihood(values))

    def zeros(self) -> Any:
        return self.learned.zeros()

    def accumulate(self, values: Values, marginals: Table, sums: Any) -> None:
        self.learned.accumulate(values, marginals, sums)


@dataclasses.dataclass
class PartlyFrozen(Record, FixedHyperparameters):
    """Conjugate distribution over the parameters of some states, and a point mass on those of the others.

    Attributes
    ----------
    learned : distribution over the parameters of all states, of which those of frozen states are not used
    parameters : given parameters, of which only those of frozen states are used
    kept : (K,) 1 for frozen states, else 0
    """

    learned: Conjugate
    parameters: Parameters
    kept: Array = array("K", FRACTIONS)

    @property
    def _is_kept(self) -> NDArray[np.bool_]:
        return self.kept > 0.5

    def update(self, sums: Any) -> PartlyFrozen:
        """Return the posterior; observations of frozen states do not enter it."""
        counted = sums.keep_states(self._is_kept, sums.scale(0.0))
        return dataclasses.replace(self, learned=self.learned.update(counted))

    def _with_given(self, found: Parameters) -> Parameters:
        return found.keep_states(self._is_kept, self.parameters)

    def mean(self) -> Parameters:
        return self._with_given(self.learned.mean())

    def mode(self) -> Parameters:
        return self._with_given(self.learned.mode())

    def sample(self, rng: np.random.Generator) -> Parameters:
        return self._with_given(self.learned.sample(rng))

    def expected_log(self) -> Likelihood:
        return MixedLikelihood(self.learned.expected_log(), self.parameters, self._is_kept)

    def predictive(self) -> Likelihood:
        return MixedLikelihood(self.learned.predictive(), self.parameters, self._is_kept)

    def kl(self, prior: Any) -> float:
        return self.learned.kl(prior.learned)

    def log_density(self, parameters: Any) -> float:
        """Return the log density, up to a constant: what the prior says of frozen states does not change."""
        return self.learned.log_density(parameters)

    def log_partition(self) -> Array:
        return np.where(self._is_kept, 0.0, self.learned.log_partition())

    def log_evidence(self, sums: Any) -> float | None:
        return None  # sums do not determine it for the frozen states

    def incremental(self, sums: Any) -> Incremental:
        return Incremental(self, sums)

    def counts(self, sums: Any, values: Values) -> None:
        """Return None: visits of collapsed inference take likelihoods from a table."""
