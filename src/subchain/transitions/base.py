"""Base classes of priors over the hidden chain: the specification, its posterior and the chain itself.

One object represents both the initial distribution and the transition matrix, because they are not independent in all
priors: in a hierarchical prior they share a parent, in a stationary chain the matrix determines the initial
distribution.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.core.checks import real_numbers
from subchain.core.components import Component
from subchain.core.hyperparameters import FixedHyperparameters
from subchain.core.parts import Treatment
from subchain.core.ranges import probabilities
from subchain.core.records import Record, array
from subchain.errors import InputError
from subchain.numerics.simplex import log_weight, logs
from subchain.transitions.operators import Dense, TransitionOperator
from subchain.transitions.sums import ChainSums as ChainSums

if TYPE_CHECKING:
    from subchain.propagation.collapsed.rows import RowPrior

Array = NDArray[np.float64]


@dataclasses.dataclass
class Chain(Record):
    """Probabilities of a hidden chain, or unnormalised weights of a surrogate: `initial` (K,), `transition` (K, K)."""

    initial: Array = array("K", probabilities())
    transition: Array = array("KK", probabilities())

    @property
    def weights(self) -> Array:
        """The transition weights in the form of counts."""
        return self.transition

    @property
    def operator(self) -> TransitionOperator:
        """The transition weights as an operator."""
        return Dense(self.transition)

    def with_weights(self, initial: Array, weights: Array) -> Chain:
        """Return a chain of the same form with other weights."""
        return Chain(initial, weights)


@runtime_checkable
class ChainLaw(Protocol):
    """The law of a hidden chain, or weights that stand in for it: `Chain`, `BandedChain` or `LowRankChain`.

    Attributes
    ----------
    initial : (K,)
    transition : (K, K), made on request where it is kept in another form
    weights : the transition weights in the form of counts
    """

    @property
    def initial(self) -> Array: ...
    @property
    def transition(self) -> Array: ...
    @property
    def weights(self) -> Array: ...
    @property
    def operator(self) -> TransitionOperator: ...
    def with_weights(self, initial: Array, weights: Array) -> ChainLaw: ...
    def take(self, order: NDArray[np.int64]) -> Any: ...
    def not_finite(self) -> tuple[str, int] | None: ...


def check_chain(initial: ArrayLike, transition: ArrayLike) -> Chain:
    """Build a chain from given probabilities; raise an `InputError` that names the wrong row.

    Parameters
    ----------
    initial : (K,)
    transition : (K, K), rows sum to one

    Examples
    --------
    >>> check_chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.8]])
    Traceback (most recent call last):
    ...
    subchain.errors.InputError: row 1 of transition sums to 0.9, not to 1; divide it by its sum.
    """
    first, matrix = (numbers(*given) for given in (("initial", initial), ("transition", transition)))
    if first.ndim != 1 or not len(first):
        raise InputError(f"initial must hold one probability per state, (K,), but has the shape {first.shape}.")
    if matrix.shape != (len(first), len(first)):
        raise InputError(
            f"transition has the shape {matrix.shape}, but initial has {len(first)} states; "
            f"expected ({len(first)}, {len(first)})."
        )
    found = Chain(first, matrix)
    check_law(found)
    return found


def check_law(chain: ChainLaw) -> None:
    """Raise an `InputError` that names the first row that is not a distribution."""
    check_distribution("initial", chain.initial)
    for state, row in enumerate(chain.weights):
        check_distribution(f"row {state} of transition", row)


def numbers(name: str, given: ArrayLike) -> Array:
    """Return numbers as an array; raise an `InputError` that names them if they are none."""
    return np.array(real_numbers(name, given), order="C")


def check_distribution(name: str, row: Array, column: str = "state") -> None:
    """Raise an `InputError` unless a row holds probabilities, of states or of what `column` says, that sum to one."""
    wrong = np.flatnonzero(~((row >= 0.0) & np.isfinite(row)))
    if wrong.size:
        raise InputError(f"{name} holds {row[wrong[0]]} for {column} {wrong[0]}; probabilities lie between 0 and 1.")
    if abs(row.sum() - 1.0) > 1e-6:
        raise InputError(f"{name} sums to {row.sum():.6g}, not to 1; divide it by its sum.")


class ChainDefaults:
    """Mixin for priors that depend on the data through expected counts only, and whose mode follows from these."""

    def next_mode(self, sums: ChainSums, previous: ChainLaw | None) -> tuple[ChainLaw, list[str]]:
        """Return the mode of this posterior, given the counts that made it and the chain before, and remarks on it."""
        return self.mode(), []  # type: ignore[attr-defined]

    @property
    def occurrence_method(self) -> str | None:
        """Method for the probability that a transition occurs at least once; None if the prior does not need it."""
        return None

    def observe(self, first: Array, pairs: Array, rate: float = 1.0) -> Self:
        """Return the prior given −log q(C = 0) − E[C] for counts C of first states (K,) and transitions (K, K)."""
        return self


@runtime_checkable
class ChainPosterior(Protocol):
    """Methods that inference calls on the distribution of the chain; most are those of an emission's `Conjugate`."""

    @property
    def occurrence_method(self) -> str | None: ...
    def observe(self, first: Array, pairs: Array, rate: float = 1.0) -> ChainPosterior: ...
    def concentrations(self) -> tuple[Array, Array]: ...

    @property
    def is_learned(self) -> bool: ...
    def update(self, sums: ChainSums) -> ChainPosterior: ...
    def mean(self) -> ChainLaw: ...
    def mode(self) -> ChainLaw: ...
    def next_mode(self, sums: ChainSums, previous: ChainLaw | None) -> tuple[ChainLaw, list[str]]: ...
    def expected_log(self) -> ChainLaw: ...
    def log_surrogate(self) -> ChainLaw: ...  # log of expected_log, which may underflow
    def predictive(self) -> ChainLaw: ...
    def sample(self, rng: np.random.Generator) -> ChainLaw: ...
    def kl(self, prior: Any) -> float: ...
    def log_density(self, chain: Any) -> float: ...
    def log_evidence(self, sums: ChainSums) -> float: ...
    def update_hyperparameters(self, sums: ChainSums, rate: float = 1.0) -> ChainPosterior: ...
    def begin(self, sums: ChainSums) -> ChainPosterior: ...
    def log_hyperprior(self) -> float: ...
    def n_free(self) -> int: ...
    def incremental(self, sums: ChainSums) -> Any: ...  # transitions.incremental.IncrementalChain
    def row_prior(self) -> RowPrior: ...  # an `InputError` where rows are not independent Dirichlet distributions
    def take(self, order: NDArray[np.int64]) -> ChainPosterior: ...


@dataclasses.dataclass
class FrozenChain(Record, FixedHyperparameters, ChainDefaults):
    """Point mass on a given chain, for chains that are frozen or set by hand; updates change nothing."""

    chain: ChainLaw

    def update(self, sums: ChainSums) -> FrozenChain:
        return self

    def mean(self) -> ChainLaw:
        return self.chain

    mode = expected_log = predictive = mean

    def log_surrogate(self) -> ChainLaw:
        return self.chain.with_weights(logs(self.chain.initial), logs(self.chain.weights))

    def sample(self, rng: np.random.Generator) -> ChainLaw:
        return self.chain

    def kl(self, prior: Any) -> float:
        return 0.0

    def log_density(self, chain: Any) -> float:
        return 0.0

    def log_evidence(self, sums: ChainSums) -> float:
        return log_weight(sums.initial, self.chain.initial) + log_weight(sums.pairs, self.chain.weights)

    def n_free(self) -> int:
        return 0

    def concentrations(self) -> tuple[Array, Array]:
        return self.chain.initial, self.chain.transition

    def incremental(self, sums: ChainSums) -> Any:
        from subchain.transitions.incremental import IncrementalChain

        return IncrementalChain(self, sums)

    def row_prior(self) -> RowPrior:
        from subchain.propagation.collapsed.rows import RowPrior

        fixed = np.vstack((self.chain.transition, self.chain.initial))
        return RowPrior(np.zeros_like(fixed), fixed)


class UnsuitedPriorError(InputError):
    """The algorithm does not treat hierarchical priors as this prior needs.

    Attributes
    ----------
    need : sentence that says what the prior needs
    treatments : treatments that would suit the prior
    remedy : what to change if the algorithm is to stay
    """

    def __init__(self, need: str, treatments: tuple[Treatment, ...], remedy: str) -> None:
        super().__init__(f"{need} Use such an algorithm, or {remedy}.")
        self.need = need
        self.treatments = treatments
        self.remedy = remedy


class TransitionPrior(Component, ABC):
    """Specification of a prior over the chain as the user writes it; the constructor only stores its arguments."""

    #: Whether the chain of the start is kept, or the transitions out of some states.
    frozen: Any

    @property
    def searches(self) -> bool:
        """Whether runs search over the number of states, by merging and splitting."""
        return False

    @property
    def states_are_exchangeable(self) -> bool:
        """Whether the prior says the same of every state, and all of the chain is learned."""
        return False

    def held_bytes(self, n_states: int) -> int:
        """Return the peak memory, in bytes, that an iteration needs for the prior beyond a few (K, K) tables."""
        return 0

    def suited_to(self, treatment: Treatment | None) -> TransitionPrior:
        """Return the prior in the form for an algorithm with the given treatment of hierarchical priors.

        `treatment` is None for an algorithm that cannot learn a hierarchical prior. Raises `UnsuitedPriorError` if the
        prior has no such form. Priors that are not learned suit every algorithm.
        """
        return self

    def check_start(self, chain: ChainLaw) -> None:
        """Raise an `InputError` if a fit with this prior cannot begin with a given chain."""
        if chain.weights.ndim != 2:
            raise InputError(
                f"init has low-rank transitions, but {type(self).__name__} needs a transition matrix; leave init out, "
                "or use transition=LowRank(...)."
            )

    @abstractmethod
    def prior(self, n_states: int, *, flat: bool) -> ChainPosterior:
        """Build the prior over a chain of `n_states` states.

        If `flat`, hyperparameters that the user left open are chosen such that the posterior mode is the
        maximum-likelihood estimate.
        """

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether updates maximise the variational bound exactly, so that it never decreases."""
