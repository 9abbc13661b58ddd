"""Mean field over single states, slow and obviously right: one position at a time, the bound from its definition.

A chain is a table of log likelihoods (T, K), log weights of first states (K,) and of moves (K, K). Chains that are cut
into pieces of so many positions have their even pieces swept first, then the odd ones.
"""

from __future__ import annotations

import numpy as np
from naive import log_sum
from numpy.typing import NDArray

Array = NDArray[np.float64]


def times(marginal: float, log_weight: float) -> float:
    """What is not believed counts nothing."""
    return marginal * log_weight if marginal > 0.0 else 0.0


def best_marginal(t: int, logs: Array, first: Array, moves: Array, marginals: Array) -> Array:
    """The marginal of position t that is best given all others."""
    n_positions, n_states = logs.shape
    scores = np.empty(n_states)
    for k in range(n_states):
        scores[k] = logs[t, k]
        if t == 0:
            scores[k] += first[k]
        else:
            scores[k] += sum(times(marginals[t - 1, j], moves[j, k]) for j in range(n_states))
        if t + 1 < n_positions:
            scores[k] += sum(times(marginals[t + 1, j], moves[k, j]) for j in range(n_states))
    return np.exp(scores - log_sum(scores))


def sweep(logs: Array, first: Array, moves: Array, marginals: Array, piece: int | None = None) -> Array:
    """New marginals (T, K) after every position was visited on the way there and on the way back."""
    marginals, n_positions = marginals.copy(), len(logs)
    starts = list(range(0, n_positions, piece or max(n_positions, 1)))
    for start in starts[0::2] + starts[1::2]:
        stop = min(start + (piece or n_positions), n_positions)
        for t in [*range(start, stop), *range(stop - 1, start - 1, -1)]:
            marginals[t] = best_marginal(t, logs, first, moves, marginals)
    return marginals


def pairs(marginals: Array) -> Array:
    """Expected moves of neighbours that are independent."""
    return np.einsum("tj,tk->jk", marginals[:-1], marginals[1:])


def bound(logs: Array, first: Array, moves: Array, marginals: Array) -> float:
    """E[log p(x, z)] under the marginals, plus their entropy."""
    n_positions, n_states = logs.shape
    total = 0.0
    for t in range(n_positions):
        for k in range(n_states):
            marginal = marginals[t, k]
            if marginal > 0.0:
                total += marginal * (logs[t, k] - np.log(marginal) + (first[k] if t == 0 else 0.0))
                if t > 0:
                    total += sum(times(marginals[t - 1, j] * marginal, moves[j, k]) for j in range(n_states))
    return total
