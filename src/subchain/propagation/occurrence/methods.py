"""Four methods for the probability that a transition occurs at least once in a chain.

The posterior over the path of one chain is an inhomogeneous Markov chain: `first` (K,) is the marginal of its first
state, and `steps` (T − 1, K, K) are the conditional probabilities q(z_t | z_{t−1}). With C_jk the number of transitions
from j to k, each method returns L = −log q(C = 0), (K, K) (Wang 2016, section 5.4).

- `exact` propagates, for each transition, the probability of every state on paths without it (5.55): O(T K⁴).
- `pairs` treats pairs of neighbouring positions as independent of each other (5.67): O(T K²). It is the default; for
  many chains at a time it is computed from the expected transitions (`pairs.py`).
- `mean_field` treats positions as independent (5.63): O(T K²), inaccurate where states follow each other in order.
- `sampling` draws paths (5.65): O(T log K) for each, plus O(T K²).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.compiled import kernel
from subchain.propagation.occurrence.pairs import absence

Array = NDArray[np.float64]
Method = Callable[[Array, Array], Array]

#: Smallest probability of no occurrence, so that L is finite.
LEAST = 1e-300


def conditionals(weighted: Array, transition: Array) -> Array:
    """Return q(z_t | z_{t−1}), (T − 1, K, K), from the weighted backward messages (T, K) of a chain.

    Rows of states from which no path continues are zero.

    Examples
    --------
    >>> conditionals(np.array([[1.0, 1.0], [3.0, 1.0]]), np.array([[0.5, 0.5], [0.0, 0.9]]))
    array([[[0.75, 0.25],
            [0.  , 1.  ]]])
    """
    steps = transition * weighted[1:, None, :]
    totals = steps.sum(axis=2, keepdims=True)
    return np.asarray(steps / np.where(totals > 0.0, totals, 1.0))


def marginals(first: Array, steps: Array) -> Array:
    """Return the marginals (T, K) of all positions."""
    marginals = np.empty((len(steps) + 1, len(first)))
    marginals[0] = first
    for position, step in enumerate(steps):
        marginals[position + 1] = marginals[position] @ step
    return marginals


def pairs(first: Array, steps: Array) -> Array:
    """Return L, (K, K), with pairs of neighbouring positions treated as independent (5.67).

    Examples
    --------
    >>> pairs(np.array([0.5, 0.5]), np.full((1, 2, 2), 0.5)).round(3)
    array([[0.288, 0.288],
           [0.288, 0.288]])
    """
    absent = np.zeros((len(first), len(first)))
    for marginal, step in zip(marginals(first, steps), steps, strict=False):
        absent += absence(marginal[:, None] * step)
    return absent


def exact(first: Array, steps: Array) -> Array:
    """Return L, (K, K), exactly (5.55).

    Examples
    --------
    >>> exact(np.array([0.5, 0.5]), np.full((1, 2, 2), 0.5)).round(3)
    array([[0.288, 0.288],
           [0.288, 0.288]])
    """
    n_states = len(first)
    # for each transition j → k, the probability of all paths without it that end in each state
    message = np.tile(first, (n_states * n_states, 1))
    onward = np.empty_like(message)
    for step in steps:
        np.matmul(message, step, out=onward)
        leaving, arriving = (table.reshape(3 * (n_states,)) for table in (message, onward))
        np.einsum("jkk->jk", arriving)[:] -= np.einsum("jkj->jk", leaving) * step
        message, onward = onward, message
    return _negative_log(message.sum(axis=1).reshape(n_states, n_states))


def mean_field(first: Array, steps: Array) -> Array:
    """Return L, (K, K), with positions treated as independent (5.63).

    Examples
    --------
    >>> mean_field(np.array([0.5, 0.5]), np.full((1, 2, 2), 0.5)).round(3)
    array([[0.288, 0.288],
           [0.288, 0.288]])
    """
    n_states = len(first)
    # of all paths without the transition j → k: their probability, and that of those which are in j at this position
    total, leaving = np.ones((n_states, n_states)), np.repeat(first[:, None], n_states, axis=1)
    for marginal in marginals(first, steps)[1:]:
        lost = leaving * marginal
        leaving = marginal[:, None] * total
        np.einsum("jj->j", leaving)[:] -= np.diag(lost)
        total -= lost
    return _negative_log(total)


def sampling(first: Array, steps: Array, n_samples: int, rng: np.random.Generator) -> Array:
    """Return L, (K, K), from the share of `n_samples` drawn paths without each transition (5.65).

    Examples
    --------
    >>> sampling(np.array([0.5, 0.5]), np.full((1, 2, 2), 0.5), 10_000, np.random.default_rng(0)).round(1)
    array([[0.3, 0.3],
           [0.3, 0.3]])
    """
    with_transition = np.zeros((len(first), len(first)))
    _count_paths(np.cumsum(first), np.cumsum(steps, axis=2), n_samples, rng, with_transition)
    return _negative_log(1.0 - with_transition / n_samples)


@kernel
def _count_paths(first, steps, n_samples, rng, out):  # type: ignore[no-untyped-def]
    """Count the drawn paths that contain each transition; `first` and `steps` are cumulative sums."""
    latest = np.full(out.shape, -1)
    last = len(first) - 1
    for path in range(n_samples):
        state = min(np.searchsorted(first, rng.random() * first[last], side="right"), last)
        for step in range(steps.shape[0]):
            row = steps[step, state]
            following = min(np.searchsorted(row, rng.random() * row[last], side="right"), last)
            if latest[state, following] != path:
                latest[state, following] = path
                out[state, following] += 1.0
            state = following


def _negative_log(absent: Array) -> Array:
    return np.asarray(-np.log(np.clip(absent, LEAST, 1.0)))


#: Methods without random numbers.
DETERMINISTIC: dict[str, Method] = {"pairs": pairs, "exact": exact, "mean_field": mean_field}
#: All methods; "pairs" is nearly exact and by far the cheapest.
METHODS = (*DETERMINISTIC, "sampling")
#: Number of paths that "sampling" draws per chain.
SAMPLES = 1000


def absence_in(
    method: str, first: Array, steps: Array, n_samples: int = SAMPLES, key: tuple[int, ...] = (0,)
) -> Array:  # fmt: skip
    """Return L of a chain, (K, K), by the given method; `key` seeds the random numbers of "sampling"."""
    if method == "sampling":
        return sampling(first, steps, n_samples, np.random.default_rng(key))
    return DETERMINISTIC[method](first, steps)


def expected_transitions(first: Array, steps: Array) -> Array:
    """Return the expected numbers of transitions of a chain, (K, K).

    Examples
    --------
    >>> expected_transitions(np.array([1.0, 0.0]), np.full((2, 2, 2), 0.5))
    array([[0.75, 0.75],
           [0.25, 0.25]])
    """
    return np.asarray(np.einsum("tj,tjk->jk", marginals(first, steps)[:-1], steps))
