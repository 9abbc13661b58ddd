"""Transitions as a product of two factors, A = L R: each passes through one of f features.

Row j of L, (K, f), has the weights of the features of state j, and row h of R, (f, K), those of the states behind
feature h. A product with A costs O(K f), and A is never made. Expected counts are those of both halves of transitions,
of features behind states and of states behind features, in one table (K, 2, f): `[j, 0, h]` belongs to L[j, h], and
`[k, 1, h]` to R[h, k].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Factors(NamedTuple):
    """A = `left` (K, f) times `right` (f, K)."""

    left: Array
    right: Array

    @property
    def turned(self) -> Factors:
        """The transpose of A."""
        return Factors(self.right.T, self.left.T)

    def carry(self, table: Array, out: Array) -> None:
        """Write Aᵀ times a (K, n) table, Σ_j A[j, k] · table[j], into `out`."""
        np.matmul(self.right.T, self.left.T @ table, out=out)

    @property
    def logs(self) -> Factors:
        """The logarithms of both factors."""
        return Factors(np.log(self.left), np.log(self.right))


def log_product(logs: Array, factor: Array) -> Array:
    """Return log Σ_j exp(logs[j] + factor[j, h]), (f,), for logarithms (K,) and a factor of logarithms (K, f)."""
    terms = logs[:, None] + factor
    top = terms.max(axis=0)
    top[top == -np.inf] = 0.0
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(np.exp(terms - top).sum(axis=0)))


def log_carry(logs: Array, factors: Factors) -> Array:
    """Return log Σ_j exp(logs[j]) · A[j, k], (K,), for factors of logarithms."""
    return log_product(log_product(logs, factors.left), factors.right)


def log_forward(logs: Array, factors: Factors, alpha: Array, out: Array) -> None:
    """Log joint of past and state at each position, for factors of logarithms; see `serial.log_forward`."""
    for position in range(len(logs)):
        out[position] = alpha + logs[position]
        alpha[:] = log_carry(out[position], factors)


def log_backward(logs: Array, factors: Factors, beta: Array, out: Array) -> None:
    """Log probability of the future at each position, for factors of logarithms; see `serial.log_backward`."""
    turned = factors.turned
    for position in range(len(logs) - 1, -1, -1):
        out[position] = beta
        beta[:] = log_carry(beta + logs[position], turned)


def log_pair_sums(alpha: Array, logs: Array, factors: Factors, beta: Array, log_total: float, sums: Array) -> None:
    """Add the expected counts of both halves of transitions, (K, 2, f), for factors of logarithms.

    `alpha` (n, K) belongs to n positions, `logs` and `beta` (n, K) to the positions one later.
    """
    for before, after in zip(alpha - log_total, logs + beta, strict=True):
        entered, onward = log_product(before, factors.left), log_product(after, factors.right.T)
        sums[:, 0] += np.exp(before[:, None] + factors.left + onward)
        sums[:, 1] += np.exp(after[:, None] + factors.right.T + entered)


def pair_sums(before: Array, after: Array, factors: Factors, sums: Array) -> None:
    """Add Σ_n of both halves of transitions, without the factor of their weights, to sums (K, 2, f).

    `before` and `after` are (K, n) tables of forward weights, and of backward weights with the likelihoods.
    """
    sums[:, 0] += before @ (factors.right @ after).T
    sums[:, 1] += after @ (factors.left.T @ before).T
