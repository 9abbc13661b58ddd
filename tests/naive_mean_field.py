"""Mean field over single states, slow and obviously right: one position at a time, the bound from its definition.

A chain is a table of log likelihoods (T, K), log weights of first states (K,) and of moves (K, K). Chains that are cut
into pieces of so many positions have their even pieces swept first, then the odd ones.
"""

from __future__ import annotations

import numpy as np
from naive import log_sum
from numpy.typing import NDArray

Array = NDArray[np.float64]


def times(belief: float, log_weight: float) -> float:
    """What is not believed counts nothing."""
    return belief * log_weight if belief > 0.0 else 0.0


def best_belief(t: int, logs: Array, first: Array, moves: Array, beliefs: Array) -> Array:
    """The belief of position t that is best given all others."""
    n_positions, n_states = logs.shape
    scores = np.empty(n_states)
    for k in range(n_states):
        scores[k] = logs[t, k]
        if t == 0:
            scores[k] += first[k]
        else:
            scores[k] += sum(times(beliefs[t - 1, j], moves[j, k]) for j in range(n_states))
        if t + 1 < n_positions:
            scores[k] += sum(times(beliefs[t + 1, j], moves[k, j]) for j in range(n_states))
    return np.exp(scores - log_sum(scores))


def sweep(logs: Array, first: Array, moves: Array, beliefs: Array, piece: int | None = None) -> Array:
    """New beliefs (T, K) after every position was visited on the way there and on the way back."""
    beliefs, n_positions = beliefs.copy(), len(logs)
    starts = list(range(0, n_positions, piece or max(n_positions, 1)))
    for start in starts[0::2] + starts[1::2]:
        stop = min(start + (piece or n_positions), n_positions)
        for t in [*range(start, stop), *range(stop - 1, start - 1, -1)]:
            beliefs[t] = best_belief(t, logs, first, moves, beliefs)
    return beliefs


def pairs(beliefs: Array) -> Array:
    """Expected moves of neighbours that are independent."""
    return np.einsum("tj,tk->jk", beliefs[:-1], beliefs[1:])


def bound(logs: Array, first: Array, moves: Array, beliefs: Array) -> float:
    """E[log p(x, z)] under the beliefs, plus their entropy."""
    n_positions, n_states = logs.shape
    total = 0.0
    for t in range(n_positions):
        for k in range(n_states):
            belief = beliefs[t, k]
            if belief > 0.0:
                total += belief * (logs[t, k] - np.log(belief) + (first[k] if t == 0 else 0.0))
                if t > 0:
                    total += sum(times(beliefs[t - 1, j] * belief, moves[j, k]) for j in range(n_states))
    return total
