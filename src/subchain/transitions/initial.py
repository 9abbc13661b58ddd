"""Initial distributions of a chain: learned from the data, given, or the stationary distribution of the matrix.

Each is a small record with the same methods. Methods take the transition weights as an operator, which only the
stationary one uses.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from subchain.core.ranges import POSITIVE, probabilities
from subchain.core.records import Record, array
from subchain.numerics import simplex
from subchain.transitions.operators import TransitionOperator
from subchain.transitions.stationary import stationary_of

Array = NDArray[np.float64]


@dataclasses.dataclass
class LearnedInitial(Record):
    """Dirichlet distribution over the initial distribution; `concentration` is (K,)."""

    is_stationary: ClassVar[bool] = False
    concentration: Array = array("K", POSITIVE)

    def update(self, counts: Array) -> LearnedInitial:
        return LearnedInitial(self.concentration + counts)

    @cached_property
    def _moments(self) -> simplex.LogMoments:
        return simplex.log_moments(self.concentration, axis=0)

    def mean(self, moves: TransitionOperator) -> Array:
        return simplex.normalized(self.concentration, axis=0)

    def mode(self, moves: TransitionOperator) -> Array:
        return simplex.mode(self.concentration, axis=0)

    def expected_log(self, moves: TransitionOperator) -> Array:
        return np.exp(self._moments.expected)

    def log_surrogate(self, moves: TransitionOperator) -> Array:
        return self._moments.expected

    def sample(self, moves: TransitionOperator, rng: np.random.Generator) -> Array:
        return simplex.draw(self.concentration, 0, rng)

    def kl(self, prior: Any) -> float:
        return simplex.divergence(self.concentration, self._moments, prior.concentration, prior._moments)

    def log_density(self, initial: Array) -> float:
        return simplex.log_density(self.concentration, initial)

    def log_evidence(self, counts: Array, moves: TransitionOperator) -> float:
        return simplex.log_evidence(self.concentration, counts, axis=0)

    def n_free(self) -> int:
        return len(self.concentration) - 1

    def row(self, n_states: int) -> tuple[Array, Array]:
        """Concentrations (K,), zeros if nothing is learned, and probabilities (K,) that are fixed."""
        return self.concentration, np.zeros(n_states)


class _NothingToLearn:
    """Mixin for initial distributions without learned parameters; subclasses define `mean`."""

    is_stationary: ClassVar[bool] = False

    def update(self, counts: Array) -> Any:
        return self

    def mean(self, moves: TransitionOperator) -> Array:
        raise NotImplementedError

    def mode(self, moves: TransitionOperator) -> Array:
        return self.mean(moves)

    def expected_log(self, moves: TransitionOperator) -> Array:
        return self.mean(moves)

    def log_surrogate(self, moves: TransitionOperator) -> Array:
        return simplex.logs(self.mean(moves))

    def sample(self, moves: TransitionOperator, rng: np.random.Generator) -> Array:
        return self.mean(moves)

    def kl(self, prior: Any) -> float:
        return 0.0

    def log_density(self, initial: Array) -> float:
        return 0.0

    def log_evidence(self, counts: Array, moves: TransitionOperator) -> float:
        return simplex.log_weight(counts, self.mean(moves))

    def n_free(self) -> int:
        return 0

    def row(self, n_states: int) -> tuple[Array, Array]:
        """As in `LearnedInitial`; a stationary distribution follows from the other rows and is left open here."""
        return np.zeros(n_states), np.ones(n_states)


@dataclasses.dataclass
class GivenInitial(_NothingToLearn, Record):
    """Given initial distribution, `probabilities` (K,)."""

    probabilities: Array = array("K", probabilities())

    def mean(self, moves: TransitionOperator) -> Array:
        return self.probabilities

    def row(self, n_states: int) -> tuple[Array, Array]:
        return np.zeros(n_states), self.probabilities


@dataclasses.dataclass
class StationaryInitial(_NothingToLearn, Record):
    """Stationary distribution of the transition matrix as the initial distribution."""

    is_stationary: ClassVar[bool] = True

    def mean(self, moves: TransitionOperator) -> Array:
        return stationary_of(moves)


Initial = LearnedInitial | GivenInitial | StationaryInitial
