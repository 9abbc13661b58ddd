"""What a prior over the hidden chain is made of: a specification, a posterior and its points.

The initial distribution and the transition matrix belong together (in a hierarchical prior they share a parent, in a
stationary chain one follows from the other), so one object stands for both.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from subchain.records import Record, states_on

Array = NDArray[np.float64]


@dataclasses.dataclass
class Chain(Record):
    """The law of a hidden chain, or weights that stand in for it: `initial` (K,), `transition` (K, K)."""

    initial: Array
    transition: Array = states_on(0, 1)


class ChainPosterior(Protocol):
    """What inference asks of the hidden chain's component; the verbs are those of an emission's `Conjugate`."""

    def update(self, initial: Array, pairs: Array) -> ChainPosterior: ...
    def mean(self) -> Chain: ...
    def mode(self) -> Chain: ...
    def expected_log(self) -> Chain: ...
    def predictive(self) -> Chain: ...
    def sample(self, rng: np.random.Generator) -> Chain: ...
    def kl(self, prior: Any) -> float: ...
    def log_density(self, chain: Chain) -> float: ...
    def n_free(self) -> int: ...
    def take(self, order: NDArray[np.int64]) -> ChainPosterior: ...


@dataclasses.dataclass
class FrozenChain(Record):
    """A posterior that is one point and learns nothing."""

    chain: Chain

    def update(self, initial: Array, pairs: Array) -> FrozenChain:
        return self

    def mean(self) -> Chain:
        return self.chain

    mode = expected_log = predictive = mean

    def sample(self, rng: np.random.Generator) -> Chain:
        return self.chain

    def kl(self, prior: Any) -> float:
        return 0.0

    def log_density(self, chain: Chain) -> float:
        return 0.0

    def n_free(self) -> int:
        return 0


class TransitionPrior(BaseEstimator, ABC):  # type: ignore[misc]
    """What the user writes; the constructor only stores."""

    frozen: bool

    @abstractmethod
    def prior(self, n_states: int, *, flat: bool) -> ChainPosterior:
        """Build the prior. `flat` asks for maximum likelihood wherever the user has not set a hyperparameter."""

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether updates maximise the bound, so that it can never fall."""
