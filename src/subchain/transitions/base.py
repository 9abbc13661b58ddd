"""What a prior over the hidden chain is made of: a specification, a posterior and its points.

The initial distribution and the transition matrix belong together (in a hierarchical prior they share a parent, in a
stationary chain one follows from the other), so one object stands for both.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.core.components import Component
from subchain.core.hyperparameters import FixedHyperparameters
from subchain.core.records import Record, states_on
from subchain.errors import InputError
from subchain.numerics.simplex import log_weight, logs

if TYPE_CHECKING:
    from subchain.propagation.collapsed.rows import RowPrior

Array = NDArray[np.float64]


@dataclasses.dataclass
class Chain(Record):
    """The law of a hidden chain, or weights that stand in for it: `initial` (K,), `transition` (K, K)."""

    initial: Array
    transition: Array = states_on(0, 1)


def check_chain(initial: ArrayLike, transition: ArrayLike) -> Chain:
    """A chain from probabilities given by hand; the error says which row is wrong and why.

    Examples
    --------
    >>> check_chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.8]])
    Traceback (most recent call last):
    ...
    subchain.errors.InputError: row 1 of transition sums to 0.9, not to 1; divide it by its sum.
    """
    first, moves = (_numbers(*given) for given in (("initial", initial), ("transition", transition)))
    if first.ndim != 1 or not len(first):
        raise InputError(f"initial must hold one probability a state, (K,), but has the shape {first.shape}.")
    if moves.shape != (len(first), len(first)):
        raise InputError(
            f"transition has the shape {moves.shape}, but initial speaks of {len(first)} states; "
            f"expected ({len(first)}, {len(first)})."
        )
    _check_distribution("initial", first)
    for state, row in enumerate(moves):
        _check_distribution(f"row {state} of transition", row)
    return Chain(first, moves)


def _numbers(name: str, given: ArrayLike) -> Array:
    try:
        return np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a rectangular array of numbers, not {given!r}.") from None


def _check_distribution(name: str, row: Array) -> None:
    wrong = np.flatnonzero(~((row >= 0.0) & np.isfinite(row)))
    if wrong.size:
        raise InputError(f"{name} holds {row[wrong[0]]} for state {wrong[0]}; probabilities lie between 0 and 1.")
    if abs(row.sum() - 1.0) > 1e-6:
        raise InputError(f"{name} sums to {row.sum():.6g}, not to 1; divide it by its sum.")


class ChainPosterior(Protocol):
    """What inference asks of the hidden chain's component; the verbs are those of an emission's `Conjugate`."""

    @property
    def is_learned(self) -> bool: ...
    def update(self, initial: Array, pairs: Array) -> ChainPosterior: ...
    def mean(self) -> Chain: ...
    def mode(self) -> Chain: ...
    def expected_log(self) -> Chain: ...
    def log_surrogate(self) -> Chain: ...  # logarithms of expected_log, which may be too small for a double
    def predictive(self) -> Chain: ...
    def sample(self, rng: np.random.Generator) -> Chain: ...
    def kl(self, prior: Any) -> float: ...
    def log_density(self, chain: Chain) -> float: ...
    def log_evidence(self, initial: Array, pairs: Array) -> float: ...
    def update_hyperparameters(self, initial: Array, pairs: Array, rate: float) -> ChainPosterior: ...
    def log_hyperprior(self) -> float: ...
    def n_free(self) -> int: ...
    def incremental(self, initial: Array, pairs: Array) -> Any: ...  # transitions.incremental.IncrementalChain
    def row_prior(self) -> RowPrior: ...  # an `InputError` where rows are not independent Dirichlet distributions
    def take(self, order: NDArray[np.int64]) -> ChainPosterior: ...


@dataclasses.dataclass
class FrozenChain(Record, FixedHyperparameters):
    """A posterior that is one point and learns nothing."""

    chain: Chain

    def update(self, initial: Array, pairs: Array) -> FrozenChain:
        return self

    def mean(self) -> Chain:
        return self.chain

    mode = expected_log = predictive = mean

    def log_surrogate(self) -> Chain:
        return Chain(logs(self.chain.initial), logs(self.chain.transition))

    def sample(self, rng: np.random.Generator) -> Chain:
        return self.chain

    def kl(self, prior: Any) -> float:
        return 0.0

    def log_density(self, chain: Chain) -> float:
        return 0.0

    def log_evidence(self, initial: Array, pairs: Array) -> float:
        return log_weight(initial, self.chain.initial) + log_weight(pairs, self.chain.transition)

    def n_free(self) -> int:
        return 0

    def incremental(self, initial: Array, pairs: Array) -> Any:
        from subchain.transitions.incremental import IncrementalChain

        return IncrementalChain(self, initial, pairs)

    def row_prior(self) -> RowPrior:
        from subchain.propagation.collapsed.rows import RowPrior

        fixed = np.vstack((self.chain.transition, self.chain.initial))
        return RowPrior(np.zeros_like(fixed), fixed)


class TransitionPrior(Component, ABC):
    """What the user writes; the constructor only stores."""

    frozen: bool

    @property
    def searches(self) -> bool:
        """Whether runs are to try other numbers of states."""
        return False

    def held_bytes(self, n_states: int) -> int:
        """The most bytes that an iteration holds of the chain beside a few tables of all moves."""
        return 0

    def suited_to(self, algorithm: str) -> TransitionPrior:
        """The prior as an algorithm, called by its name, wants it; an `InputError` if the two do not go together."""
        return self

    @abstractmethod
    def prior(self, n_states: int, *, flat: bool) -> ChainPosterior:
        """Build the prior. `flat` asks for maximum likelihood wherever the user has not set a hyperparameter."""

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether updates maximise the bound, so that it can never fall."""
