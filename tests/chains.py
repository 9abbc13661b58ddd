"""Hidden chains for tests: parameters of all characters, and observations drawn from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Chain(NamedTuple):
    """Log likelihoods (T, K), initial (K,), transition (K, K)."""

    log_likelihood: Array
    initial: Array
    transition: Array


def sticky(n_states: int, stay: float) -> Array:
    """States that last."""
    return stay * np.eye(n_states) + (1.0 - stay) / n_states


def nearly_periodic(n_states: int, slip: float) -> Array:
    """States that follow each other in a circle, hardly ever out of turn."""
    return (1.0 - slip) * np.roll(np.eye(n_states), 1, axis=1) + slip / n_states


def left_right(n_states: int, stay: float) -> Array:
    """States that are left for good."""
    transition = stay * np.eye(n_states) + (1.0 - stay) * np.eye(n_states, k=1)
    transition[-1, -1] = 1.0
    return transition


def random_rows(rng: np.random.Generator, *shape: int, zeros: float = 0.0) -> Array:
    """Rows of probabilities, some of them exact zeros; every row keeps its first entry."""
    rows = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
    keep = rng.random(rows.shape) >= zeros
    keep[..., 0] = True
    rows = np.where(keep, rows, 0.0)
    return rows / rows.sum(axis=-1, keepdims=True)


@st.composite
def small_chains(draw: st.DrawFn) -> Chain:
    """Chains short enough to list all paths, with forbidden moves, unequal likelihoods and rows that lose weight."""
    n_states, n_positions = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    share = draw(st.sampled_from([0.0, 0.3]))
    loss = draw(st.sampled_from([1.0, 0.7]))
    scale = draw(st.sampled_from([1.0, 30.0, 700.0]))
    logs = scale * np.log(rng.random((n_positions, n_states)))
    logs[rng.random(logs.shape) < share] = -np.inf
    initial, transition = random_rows(rng, n_states, zeros=share), random_rows(rng, n_states, n_states, zeros=share)
    return Chain(logs, initial, loss * transition)
