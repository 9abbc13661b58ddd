"""Dirichlet rows: the standard prior over the moves of a hidden chain.

Entries can be forbidden (`mask`: structural zeros, exact), or fixed to a given probability; the rest of each row is
shared by its free entries, which have a Dirichlet prior, with more weight on the diagonal if the chain is to be
sticky.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.core.hyperparameters import FixedHyperparameters
from subchain.core.records import Record, states_on
from subchain.errors import InputError, unknown_name
from subchain.numerics import simplex
from subchain.transitions.base import Chain, TransitionPrior
from subchain.transitions.incremental import IncrementalDirichlet
from subchain.transitions.initial import GivenInitial, Initial, LearnedInitial, StationaryInitial

if TYPE_CHECKING:
    from subchain.propagation.collapsed.rows import RowPrior

Array = NDArray[np.float64]


@dataclasses.dataclass
class DirichletRows(Record):
    """Independent Dirichlet distributions over the free entries of each row.

    Attributes
    ----------
    concentration : (K, K), zero where an entry is not free
    fixed : (K, K), the probability of entries that are fixed, zero elsewhere
    """

    concentration: Array = states_on(0, 1)
    fixed: Array = states_on(0, 1)

    @property
    def free(self) -> NDArray[np.bool_]:
        return self.concentration > 0.0

    @property
    def share(self) -> Array:
        """What is left of each row for its free entries, (K, 1)."""
        return 1.0 - self.fixed.sum(axis=1, keepdims=True)

    def _matrix(self, parts: Array) -> Array:
        return np.where(self.free, self.share * parts, self.fixed)

    def update(self, pairs: Array) -> DirichletRows:
        return dataclasses.replace(self, concentration=np.where(self.free, self.concentration + pairs, 0.0))

    @cached_property
    def _moments(self) -> simplex.LogMoments:
        return simplex.log_moments(self.concentration, axis=1)

    def mean(self) -> Array:
        return self._matrix(simplex.normalized(self.concentration, axis=1))

    def mode(self) -> Array:
        return self._matrix(simplex.mode(self.concentration, axis=1))

    def expected_log(self) -> Array:
        return self._matrix(np.exp(self._moments.expected))

    def log_surrogate(self) -> Array:
        """Logarithms of `expected_log`, also where that is too small for a double; −inf for moves that cannot be."""
        return simplex.logs(np.where(self.free, self.share, self.fixed)) + self._moments.expected

    def sample(self, rng: np.random.Generator) -> Array:
        return self._matrix(simplex.draw(self.concentration, 1, rng))

    def kl(self, prior: DirichletRows) -> float:
        return simplex.divergence(self.concentration, self._moments, prior.concentration, prior._moments)

    def log_density(self, transition: Array) -> float:
        return simplex.log_density(self.concentration, transition / np.where(self.share > 0.0, self.share, 1.0))

    def log_evidence(self, pairs: Array) -> float:
        """Log probability of counted moves with the free entries summed out; −inf if one of them cannot happen."""
        given = np.where(self.free, self.share, self.fixed)
        return simplex.log_evidence(self.concentration, pairs, axis=1) + simplex.log_weight(pairs, given)

    def n_free(self) -> int:
        return int(np.maximum(self.free.sum(axis=1) - 1, 0).sum())


@dataclasses.dataclass
class DirichletChain(Record, FixedHyperparameters):
    """Distribution over the initial distribution and the transition matrix, prior or posterior."""

    initial: Initial
    rows: DirichletRows

    def update(self, initial: Array, pairs: Array) -> DirichletChain:
        return DirichletChain(self.initial.update(initial), self.rows.update(pairs))

    def mean(self) -> Chain:
        transition = self.rows.mean()
        return Chain(self.initial.mean(transition), transition)

    predictive = mean

    def mode(self) -> Chain:
        transition = self.rows.mode()
        return Chain(self.initial.mode(transition), transition)

    def expected_log(self) -> Chain:
        return Chain(self.initial.expected_log(self.rows.mean()), self.rows.expected_log())

    def log_surrogate(self) -> Chain:
        return Chain(self.initial.log_surrogate(self.rows.mean()), self.rows.log_surrogate())

    def sample(self, rng: np.random.Generator) -> Chain:
        transition = self.rows.sample(rng)
        return Chain(self.initial.sample(transition, rng), transition)

    def kl(self, prior: DirichletChain) -> float:
        return self.initial.kl(prior.initial) + self.rows.kl(prior.rows)

    def log_density(self, chain: Chain) -> float:
        return self.initial.log_density(chain.initial) + self.rows.log_density(chain.transition)

    def log_evidence(self, initial: Array, pairs: Array) -> float:
        expected = self.rows.update(pairs).mean()
        return self.initial.log_evidence(initial, expected) + self.rows.log_evidence(pairs)

    def n_free(self) -> int:
        return self.initial.n_free() + self.rows.n_free()

    def incremental(self, initial: Array, pairs: Array) -> IncrementalDirichlet:
        return IncrementalDirichlet(self, initial, pairs)

    def row_prior(self) -> RowPrior:
        """What is known of the rows beforehand, for counts of collapsed inference."""
        from subchain.propagation.collapsed.rows import RowPrior

        concentration, law = self.initial.row(self.rows.concentration.shape[1])
        return RowPrior(
            np.vstack((self.rows.concentration, concentration)),
            np.vstack((self.rows.fixed, law)),
            self.initial.is_stationary,
        )


class Dirichlet(TransitionPrior):
    """Dirichlet prior over each row of the transition matrix and over the initial distribution.

    Parameters
    ----------
    concentration : float or (K, K), optional
        Left open it is 1: uniform for variational inference, maximum likelihood for EM.
    stickiness : float
        Added to the concentration of staying in a state.
    mask : (K, K) of bool, or a function of K, optional
        Which moves are possible; see `left_right`, `banded`, `cyclic`.
    fixed : (K, K), optional
        Probabilities that are known; nan where they are to be learned.
    initial : "learned", "stationary" or (K,)
        The first state's distribution. "stationary" follows the transition matrix (the posterior mean's, in
        variational inference), which makes the bound approximate: it may then fall.
    initial_concentration : float or (K,), optional
        As `concentration`.
    frozen : bool
        Keep the chain of the start.

    Examples
    --------
    >>> from subchain.transitions import Dirichlet, left_right
    >>> prior = Dirichlet(mask=left_right(3), initial=[1, 0, 0]).prior(3, flat=False)
    >>> prior.mean().transition.round(3)
    array([[0.333, 0.333, 0.333],
           [0.   , 0.5  , 0.5  ],
           [0.   , 0.   , 1.   ]])
    """

    def __init__(
        self,
        concentration: Any = None,
        stickiness: float = 0.0,
        mask: ArrayLike | Callable[[int], NDArray[np.bool_]] | None = None,
        fixed: ArrayLike | None = None,
        initial: Any = "learned",
        initial_concentration: Any = None,
        frozen: bool = False,
    ) -> None:
        self.concentration = concentration
        self.stickiness = stickiness
        self.mask = mask
        self.fixed = fixed
        self.initial = initial
        self.initial_concentration = initial_concentration
        self.frozen = frozen

    @property
    def exact(self) -> bool:
        return not (isinstance(self.initial, str) and self.initial == "stationary")

    def prior(self, n_states: int, *, flat: bool) -> DirichletChain:
        fixed, free = self._structure(n_states)
        concentration = _hyperparameter("concentration", self.concentration, (n_states, n_states), flat)
        stickiness = np.asarray(self.stickiness, dtype=np.float64)
        if stickiness.ndim or not np.isfinite(stickiness) or stickiness < 0.0:
            raise InputError(f"stickiness must be a number of at least 0, not {self.stickiness!r}.")
        concentration = concentration + stickiness * np.eye(n_states)
        rows = DirichletRows(np.where(free, concentration, 0.0), fixed)
        return DirichletChain(self._initial(n_states, flat), rows)

    def _structure(self, n_states: int) -> tuple[Array, NDArray[np.bool_]]:
        """Fixed probabilities, and which entries are left to learn."""
        shape = (n_states, n_states)
        mask = self.mask(n_states) if callable(self.mask) else self.mask
        allowed = np.ones(shape, dtype=np.bool_) if mask is None else np.asarray(mask).astype(np.bool_)
        given = np.full(shape, np.nan) if self.fixed is None else np.asarray(self.fixed, dtype=np.float64)
        for name, table in (("mask", allowed), ("fixed", given)):
            if table.shape != shape:
                raise InputError(f"{name} has shape {table.shape}, but {n_states} states need {shape}.")
        known = ~np.isnan(given)
        if (given[known] < 0.0).any() or (given[known] > 1.0).any():
            raise InputError("fixed transition probabilities must lie between 0 and 1 (nan: to be learned).")
        forbidden = known & ~allowed & (np.nan_to_num(given) > 0.0)
        if forbidden.any():
            row, column = np.argwhere(forbidden)[0]
            raise InputError(f"transition {row} → {column} is fixed to {given[row, column]} but the mask forbids it.")
        fixed = np.where(known, given, 0.0)
        free = allowed & ~known
        total = fixed.sum(axis=1)
        for row in range(n_states):
            if not allowed[row].any():
                raise InputError(f"the mask leaves state {row} without any move; allow at least one.")
            if total[row] > 1.0 + 1e-9 or (not free[row].any() and abs(total[row] - 1.0) > 1e-9):
                raise InputError(f"the fixed probabilities of row {row} sum to {total[row]:.6g}, not to 1.")
        return fixed, free & (total < 1.0 - 1e-12)[:, None]

    def _initial(self, n_states: int, flat: bool) -> Initial:
        if isinstance(self.initial, str):
            if self.initial == "learned":
                shape = (n_states,)
                return LearnedInitial(_hyperparameter("initial_concentration", self.initial_concentration, shape, flat))
            if self.initial == "stationary":
                return StationaryInitial()
            raise unknown_name("initial distribution", self.initial, ["learned", "stationary"])
        probabilities = np.asarray(self.initial, dtype=np.float64)
        fits = probabilities.shape == (n_states,) and bool((probabilities >= 0.0).all())
        if not fits or abs(probabilities.sum() - 1.0) > 1e-6:
            raise InputError(
                f"initial must be 'learned', 'stationary' or {n_states} probabilities that sum to 1, "
                f"not {self.initial!r}."
            )
        return GivenInitial(probabilities)


def _hyperparameter(name: str, given: Any, shape: tuple[int, ...], flat: bool) -> Array:
    value = np.asarray(1.0 if given is None else given, dtype=np.float64)
    if not (np.isfinite(value).all() and (value > 0.0).all()):
        raise InputError(f"{name} must be positive and finite, not {given!r}; use mask= for moves that cannot happen.")
    if flat and (value < 1.0).any():
        raise InputError(
            f"EM looks for the most probable parameters, which do not exist for {name} < 1 (given {given!r}); "
            "use at least 1, or variational inference, which accepts any positive value."
        )
    try:
        return np.broadcast_to(value, shape).copy()
    except ValueError:
        raise InputError(f"{name} has shape {value.shape}; expected a number or {shape}.") from None
