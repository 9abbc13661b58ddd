"""The most probable transitions of chains that begin in their stationary distribution.

The first states then depend on the transitions, and the mode of the rows has no closed form: it maximises

    Σ_jk (c_jk − 1) log A_jk + Σ_k n_k log π_k(A),        π A = π,

with c the concentrations, transition counts included, and n the expected counts of first states. With
Z = (I − A + 1 π)⁻¹ the second sum has the gradient π_j (Z (n / π))_k (Schweitzer 1968).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.stationary import stationary_distribution

Array = NDArray[np.float64]

#: Smallest probability of a free entry that the search begins with: one of zero would stay there.
LEAST = 1e-8
#: Value of matrices under which first states are impossible.
IMPOSSIBLE = 1e100
#: Steps of a search; the next iteration of `EM` goes on from where it ends.
MAX_ITER = 20

#: What a run reports where the transitions are not the mode.
TOO_MANY = (
    "the transitions do not maximise the likelihood of the first states: that is done for at most 1024 states, and a "
    "larger chain that begins in its stationary distribution takes the mode without its first states"
)
UNSOLVED = (
    "the transitions do not maximise the likelihood of the first states: the chain has parts that never meet, and thus "
    'more than one stationary distribution; give initial="learned", or transitions between the parts'
)


class StationaryRows:
    """The function that the mode maximises, over matrices with some free entries.

    Parameters
    ----------
    powers : (K, K) concentrations minus one, zero where an entry is not free
    free : (K, K) of bool
    fixed : (K, K) probabilities of the other entries
    first : (K,) expected counts of first states
    """

    def __init__(self, powers: Array, free: NDArray[np.bool_], fixed: Array, first: Array) -> None:
        self.powers = powers
        self.free = free
        self.fixed = fixed
        self.first = first
        self.share = 1.0 - fixed.sum(axis=1, keepdims=True)

    def value(self, transition: Array) -> float:
        """Return the function at a transition matrix, up to a constant; −inf where first states are impossible."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs, starts = np.log(transition), np.log(stationary_distribution(transition))
        used, begun = self.powers > 0.0, self.first > 0.0
        return float(self.powers[used] @ logs[used] + self.first[begun] @ starts[begun])

    def parts(self, weights: Array) -> Array:
        """Return the free entries of each row relative to their sum, given log weights of the free entries."""
        logs = np.full(self.free.shape, -np.inf)
        logs[self.free] = weights
        top = np.where(self.free.any(axis=1), logs.max(axis=1, initial=-np.inf), 0.0)[:, None]
        found = np.exp(logs - top)
        return found / np.maximum(found.sum(axis=1, keepdims=True), np.finfo(float).tiny)

    def matrix(self, parts: Array) -> Array:
        return np.where(self.free, self.share * parts, self.fixed)

    def loss(self, weights: Array) -> tuple[float, Array]:
        """Return minus the function, and its gradient, for log weights of the free entries."""
        parts = self.parts(weights)
        transition = self.matrix(parts)
        stationary = stationary_distribution(transition)
        begun = self.first > 0.0
        if not (stationary[begun] > 0.0).all():
            return IMPOSSIBLE, np.zeros_like(weights)
        ratio = np.divide(self.first, stationary, out=np.zeros_like(self.first), where=begun)
        pull = np.linalg.solve(np.eye(len(ratio)) - transition + stationary, ratio)
        gradient = self.share * stationary[:, None] * pull
        gradient = parts * (gradient - (parts * gradient).sum(axis=1, keepdims=True))
        gradient += self.powers - parts * self.powers.sum(axis=1, keepdims=True)
        value = self.value(transition)
        return (-value, -gradient[self.free]) if np.isfinite(value) else (IMPOSSIBLE, np.zeros_like(weights))

    def climb(self, transition: Array) -> Array | None:
        """Return a matrix whose value is at least that of the given one; None where the gradient is not defined."""
        from scipy.optimize import minimize

        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.maximum(np.where(self.share > 0.0, transition / self.share, 0.0), LEAST)
        begin, options = np.log(parts[self.free]), {"maxiter": MAX_ITER}
        try:
            found = minimize(self.loss, begin, jac=True, method="L-BFGS-B", options=options)
        except np.linalg.LinAlgError:  # parts that never meet have more than one stationary distribution
            return None
        best = self.matrix(self.parts(found.x))
        return best if self.value(best) > self.value(transition) else transition
