"""Slow, obviously right versions of what hierarchical priors ask of beliefs: whether moves happen, and tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import naive
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Path = tuple[int, ...]


def pair_beliefs(alpha: Array, weighted: Array, transition: Array) -> Array:
    """Probability (T − 1, K, K) of neighbouring pairs from messages (T, K) of one chain."""
    return alpha[:-1, :, None] * transition * weighted[1:, None, :]


def pairs_occurrence(pairs: Array) -> Array:
    """−Σ log(1 − q) over pair beliefs (T − 1, K, K)."""
    return -np.log1p(-np.minimum(pairs, 1.0 - 1e-12)).sum(axis=0)


def chain_paths(log_likelihood: Array, initial: Array, transition: Array) -> Iterator[tuple[Path, float]]:
    """Every path of a chain with its probability given the observations."""
    paths, joint = naive.all_paths(log_likelihood, initial, transition)
    for path, probability in zip(paths, np.exp(joint - naive.log_sum(joint)), strict=True):
        yield tuple(path), float(probability)


def independent_paths(beliefs: Array) -> Iterator[tuple[Path, float]]:
    """Every path of positions (T, K) that know nothing of each other, with its probability."""
    for path in itertools.product(range(beliefs.shape[1]), repeat=len(beliefs)):
        yield path, float(np.prod(beliefs[np.arange(len(beliefs)), path]))


def absent(paths: Iterator[tuple[Path, float]], n_states: int) -> Array:
    """Probability (K, K) that a move is on none of the path's steps."""
    out = np.zeros((n_states, n_states))
    for path, probability in paths:
        seen = np.zeros((n_states, n_states), dtype=bool)
        seen[list(path[:-1]), list(path[1:])] = True
        out += np.where(seen, 0.0, probability)
    return out


def simulated_paths(first: Array, moves: Array) -> Iterator[tuple[Path, float]]:
    """Every path of a Markov chain, `first` (K,) and `moves` (T − 1, K, K), with its probability."""
    for path in itertools.product(range(len(first)), repeat=len(moves) + 1):
        steps = [moves[t, j, k] for t, (j, k) in enumerate(itertools.pairwise(path))]
        yield path, float(first[path[0]] * np.prod(steps))


# ---- tables ----------------------------------------------------------------------------------------------------------


def seat(base: float, n_customers: int, n_times: int, rng: np.random.Generator) -> Array:
    """Numbers of tables (n_times,) that customers open who come one by one."""
    tables = np.zeros(n_times)
    for seated in range(n_customers):
        tables += rng.random(n_times) < base / (base + seated)
    return tables


def tables_of(base: float, n_customers: int) -> float:
    """Expected number of tables: the chances of every customer to open one."""
    return sum(base / (base + seated) for seated in range(n_customers))


def tables_of_paths(base: Array, paths: Iterator[tuple[Path, float]]) -> Array:
    """Expected number of tables (K, K) over all paths; `base` (K, K)."""
    out = np.zeros_like(base)
    for path, probability in paths:
        counts = np.zeros(base.shape, dtype=int)
        np.add.at(counts, (list(path[:-1]), list(path[1:])), 1)
        out += probability * np.vectorize(tables_of)(base, counts)
    return out


def counts_of_paths(paths: Iterator[tuple[Path, float]], n_states: int) -> Array:
    """Expected number of moves (K, K) over all paths."""
    out = np.zeros((n_states, n_states))
    for path, probability in paths:
        np.add.at(out, (list(path[:-1]), list(path[1:])), probability)
    return out
