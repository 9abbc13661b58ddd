"""Transition weights as an operator: what engines and inference may ask of them, whatever form they are kept in.

`Dense` keeps a (K, K) matrix. `Banded` keeps the entries of a band around the diagonal (or on a circle), (K, width), so
that a chain whose states lead to few others costs O(K · width) in time and memory. `Factored` keeps two factors of a
low-rank matrix, (K, 2, f), and costs O(K · f). Expected counts of transitions have the form of the weights that they
belong to: (K, K), (K, width) or (K, 2, f).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from subchain.numerics import simplex
from subchain.propagation import band as bands
from subchain.propagation import factors as products
from subchain.propagation.band import Band
from subchain.propagation.factors import Factors
from subchain.transitions.layout import Layout
from subchain.transitions.sums import BandedSums, ChainSums, FactoredSums, check_dense

Array = NDArray[np.float64]


class TransitionOperator(Protocol):
    """Weights A of transitions between K states; rows may sum to less than one.

    Attributes
    ----------
    weights : in the operator's own form, which is also that of counts
    """

    weights: Array

    @property
    def n_states(self) -> int: ...

    def apply(self, table: Array) -> Array:
        """Carry the columns of a (K, n) table one step forward: Σ_j A[j, k] · table[j]."""
        ...

    def apply_transposed(self, table: Array) -> Array:
        """Carry the columns of a (K, n) table one step back: Σ_k A[j, k] · table[k]."""
        ...

    def log_apply(self, logs: Array) -> Array:
        """Return the logarithm of `apply` for log weights (K,), which may differ by more than a double can hold."""
        ...

    def log_apply_transposed(self, logs: Array) -> Array:
        """Return the logarithm of `apply_transposed` for log weights (K,)."""
        ...

    def sums(self, initial: Array, pairs: Array) -> ChainSums:
        """Return counts of first states, (K,), and of transitions, in the operator's form, as statistics."""
        ...

    def zeros(self) -> ChainSums:
        """Return counts of nothing."""
        ...

    def accumulate(self, before: Array, after: Array, sums: Array) -> None:
        """Add Σ_n before[j, n] · after[k, n] to counts in the operator's form; tables are (K, n)."""
        ...

    def weight(self, i: int, j: int) -> float:
        """Return A[i, j]."""
        ...

    def diagonal(self) -> Array:
        """Return the weights (K,) of staying in each state."""
        ...

    def totals(self) -> Array:
        """Return the sums (K,) of the rows."""
        ...

    def dense(self) -> Array:
        """Return A as a matrix (K, K)."""
        ...

    def mapped(self, function: Callable[[Array], Array]) -> TransitionOperator:
        """Return the operator with a function applied to every weight, (n, m) tables of them at a time."""
        ...

    def stochastic(self, least: float) -> TransitionOperator:
        """Return the operator with positive weights of at least `least`, and rows that sum to one."""
        ...


class Dense:
    """Weights as a matrix, (K, K).

    Examples
    --------
    >>> moves = Dense(np.array([[0.9, 0.1], [0.0, 1.0]]))
    >>> moves.apply(np.array([[0.5], [0.5]])).ravel()
    array([0.45, 0.55])
    """

    def __init__(self, weights: Array) -> None:
        self.weights = np.ascontiguousarray(weights)

    @property
    def n_states(self) -> int:
        return len(self.weights)

    @cached_property
    def transposed(self) -> Array:
        """The transposed matrix, rows one after the other in memory."""
        return np.ascontiguousarray(self.weights.T)

    def apply(self, table: Array) -> Array:
        return np.asarray(self.transposed @ table)

    def apply_transposed(self, table: Array) -> Array:
        return np.asarray(self.weights @ table)

    @cached_property
    def _logs(self) -> Array:
        return simplex.logs(self.weights)

    def log_apply(self, logs: Array) -> Array:
        return np.asarray(np.logaddexp.reduce(logs[:, None] + self._logs, axis=0))

    def log_apply_transposed(self, logs: Array) -> Array:
        return np.asarray(np.logaddexp.reduce(self._logs + logs, axis=1))

    def sums(self, initial: Array, pairs: Array) -> ChainSums:
        return ChainSums(initial, pairs)

    def zeros(self) -> ChainSums:
        return ChainSums(np.zeros(self.n_states), np.zeros_like(self.weights))

    def accumulate(self, before: Array, after: Array, sums: Array) -> None:
        sums += before @ after.T

    def weight(self, i: int, j: int) -> float:
        return float(self.weights[i, j])

    def diagonal(self) -> Array:
        return np.diagonal(self.weights)

    def totals(self) -> Array:
        return np.asarray(self.weights.sum(axis=1))

    def dense(self) -> Array:
        return self.weights

    def mapped(self, function: Callable[[Array], Array]) -> Dense:
        return Dense(function(self.weights))

    def stochastic(self, least: float) -> Dense:
        return Dense(simplex.normalized(_at_least(least, self.weights), 1))


class Banded:
    """Weights of a band, (K, width); all others are `outside`, zero unless they are logarithms.

    Examples
    --------
    >>> moves = Banded(Layout(np.array([0, 1, 1]), 2), np.array([[0.9, 0.1], [0.7, 0.3], [0.0, 1.0]]))
    >>> moves.dense()
    array([[0.9, 0.1, 0. ],
           [0. , 0.7, 0.3],
           [0. , 0. , 1. ]])
    >>> moves.apply(np.array([[1.0], [1.0], [0.0]])).ravel()
    array([0.9, 0.8, 0.3])
    """

    def __init__(self, layout: Layout, weights: Array, outside: float = 0.0) -> None:
        self.layout = layout
        self.weights = weights
        self.outside = outside

    @property
    def n_states(self) -> int:
        return self.layout.n_states

    @cached_property
    def out_of(self) -> Band:
        """Weights of what each state leads to."""
        return Band(self.layout.first, np.ascontiguousarray(self.weights))

    @cached_property
    def into(self) -> Band:
        """Weights of what leads to each state."""
        turned = self.layout.turned
        weights = np.full((self.n_states, turned.width), self.outside)
        bands.transpose(self.out_of, turned.first, weights)
        return Band(turned.first, weights)

    def apply(self, table: Array) -> Array:
        return _product(self.into, table)

    def apply_transposed(self, table: Array) -> Array:
        return _product(self.out_of, table)

    def log_apply(self, logs: Array) -> Array:
        return _log_product(self.into, self.layout.turned, logs)

    def log_apply_transposed(self, logs: Array) -> Array:
        return _log_product(self.out_of, self.layout, logs)

    def sums(self, initial: Array, pairs: Array) -> BandedSums:
        return BandedSums(initial, pairs, self.layout.first)

    def zeros(self) -> BandedSums:
        return self.sums(np.zeros(self.n_states), np.zeros_like(self.weights))

    def accumulate(self, before: Array, after: Array, sums: Array) -> None:
        bands.outer_sums(np.ascontiguousarray(before), np.ascontiguousarray(after), self.layout.first, sums)

    def weight(self, i: int, j: int) -> float:
        place = (j - self.layout.first[i]) % self.n_states
        return float(self.weights[i, place]) if place < self.layout.width else self.outside

    def diagonal(self) -> Array:
        return np.asarray((self.weights * self.layout.diagonal()).sum(axis=1))

    def totals(self) -> Array:
        return np.asarray(self.weights.sum(axis=1))

    def dense(self) -> Array:
        return self.layout.spread(self.weights)

    def mapped(self, function: Callable[[Array], Array]) -> Banded:
        outside = float(function(np.full((1, 1), self.outside))[0, 0])
        return Banded(self.layout, function(self.weights), outside)

    def stochastic(self, least: float) -> Banded:
        return Banded(self.layout, simplex.normalized(_at_least(least, self.weights), 1))


class Factored:
    """Positive weights of a low-rank matrix L R: L[j, h] is `weights[j, 0, h]`, and R[h, k] is `weights[k, 1, h]`.

    Examples
    --------
    >>> left, right = np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([[0.2, 0.8], [1.0, 0.0]])
    >>> moves = Factored(np.stack((left, right.T), axis=1))
    >>> moves.dense()
    array([[0.28, 0.72],
           [0.6 , 0.4 ]])
    >>> moves.apply(np.array([[1.0], [0.0]])).ravel()
    array([0.28, 0.72])
    """

    def __init__(self, weights: Array) -> None:
        self.weights = weights

    @property
    def n_states(self) -> int:
        return len(self.weights)

    @cached_property
    def factors(self) -> Factors:
        """L and R, each with its entries one after the other in memory."""
        left, right = self.weights[:, 0], self.weights[:, 1].T
        return Factors(np.ascontiguousarray(left), np.ascontiguousarray(right))

    def apply(self, table: Array) -> Array:
        return np.asarray(self.factors.right.T @ (self.factors.left.T @ table))

    def apply_transposed(self, table: Array) -> Array:
        return np.asarray(self.factors.left @ (self.factors.right @ table))

    @cached_property
    def log_factors(self) -> Factors:
        """The logarithms of L and R."""
        return self.factors.logs

    def log_apply(self, logs: Array) -> Array:
        return products.log_carry(logs, self.log_factors)

    def log_apply_transposed(self, logs: Array) -> Array:
        return products.log_carry(logs, self.log_factors.turned)

    def sums(self, initial: Array, pairs: Array) -> FactoredSums:
        return FactoredSums(initial, pairs)

    def zeros(self) -> FactoredSums:
        return FactoredSums(np.zeros(self.n_states), np.zeros_like(self.weights))

    def accumulate(self, before: Array, after: Array, sums: Array) -> None:
        products.pair_sums(before, after, self.factors, sums)

    def weight(self, i: int, j: int) -> float:
        return float(self.weights[i, 0] @ self.weights[j, 1])

    def diagonal(self) -> Array:
        return np.asarray((self.weights[:, 0] * self.weights[:, 1]).sum(axis=1))

    def totals(self) -> Array:
        return np.asarray(self.factors.left @ self.factors.right.sum(axis=1))

    def rows(self, states: slice) -> Array:
        """Return the weights out of some states, (n, K)."""
        return np.asarray(self.factors.left[states] @ self.factors.right)

    def dense(self) -> Array:
        return np.asarray(self.factors.left @ self.factors.right)

    def mapped(self, function: Callable[[Array], Array]) -> Dense:
        check_dense(self.n_states, "a function of all transitions")
        return Dense(function(self.dense()))

    def stochastic(self, least: float) -> Factored:
        left, right = self.weights[:, 0], self.weights[:, 1]
        total = right.sum(axis=0)
        left = left * np.where(total > 0.0, total, 1.0)
        return Factored(np.stack((simplex.normalized(left, 1), simplex.normalized(right, 0)), axis=1))


def as_operator(given: Array | TransitionOperator) -> TransitionOperator:
    """Return an operator; a matrix becomes a dense one."""
    return Dense(given) if isinstance(given, np.ndarray) else given


def _at_least(least: float, weights: Array) -> Array:
    """Weights of possible transitions, none so small that it may as well be impossible."""
    return np.where(weights > 0.0, np.maximum(weights, least), 0.0)


def _log_product(band: Band, layout: Layout, logs: Array) -> Array:
    return np.asarray(np.logaddexp.reduce(simplex.logs(band.weights) + logs[layout.columns], axis=1))


def _product(band: Band, table: Array) -> Array:
    out = np.empty_like(table, order="C")
    bands.product(band, np.ascontiguousarray(table), out)
    return out
