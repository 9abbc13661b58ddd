"""The states themselves: how long they last, how often they are visited, in which order they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError, unknown_name
from subchain.inference.posterior import Point
from subchain.statistics import Statistics
from subchain.transitions import stationary_distribution

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def dwell_times(transition: Array) -> Array:
    """Expected number of positions from entering a state to leaving it, (K,); infinite for states never left."""
    leaving = transition.sum(axis=1) - np.diagonal(transition)
    return np.divide(1.0, leaving, out=np.full(len(leaving), np.inf), where=leaving > 0.0)


def occupancy(statistics: Statistics, transition: Array) -> Array:
    """Share of the positions spent in each state, (K,); in the long run, where there are no data."""
    visits = statistics.initial + statistics.pairs.sum(axis=0)
    total = visits.sum()
    return visits / total if total > 0.0 else stationary_distribution(transition)


def effective_states(shares: Array, coverage: float) -> int:
    """The least number of states that hold this share of the positions."""
    if not 0.0 < coverage <= 1.0:
        raise InputError(f"coverage must be above 0 and at most 1; given {coverage!r}.")
    held = np.cumsum(np.sort(shares)[::-1])
    return int(np.searchsorted(held, coverage * (1.0 - 1e-12) * held[-1]) + 1)


def by_occupancy(point: Point, shares: Array, column: int) -> Array:
    """Most visited first."""
    return -shares


def by_mean(point: Point, shares: Array, column: int) -> Array:
    """Smallest mean first."""
    means = point.emission.expectation()
    if point.emission.marginals() is None:
        raise InputError(
            f"{type(point.emission).__name__} have no mean to order states by; order them by 'occupancy' or 'dwell', "
            "or by a function of the model."
        )
    return means[:, column]


def by_dwell(point: Point, shares: Array, column: int) -> Array:
    """Longest lasting first."""
    return -dwell_times(point.chain.transition)


ORDERS: dict[str, Callable[[Point, Array, int], Array]] = {
    "occupancy": by_occupancy,
    "mean": by_mean,
    "dwell": by_dwell,
}


def order_by(name: Any, point: Point, shares: Array, column: int) -> Index:
    """The states in the order of this name."""
    if not isinstance(name, str) or name not in ORDERS:
        raise unknown_name("order of states", name, ORDERS)
    return np.argsort(ORDERS[name](point, shares, column), kind="stable")


def order_by_keys(keys: Any, n_states: int) -> Index:
    """The states by rising keys, one a state."""
    given = np.asarray(keys)
    if given.shape != (n_states,):
        raise InputError(
            f"the function that orders states gave an array of shape {given.shape}; expected one key for each of "
            f"{n_states} states."
        )
    return np.argsort(given, kind="stable")


def checked_names(names: Iterable[str], n_states: int) -> list[str]:
    """Names of the states: one for each, all different."""
    given = list(names)
    if isinstance(names, str) or len(given) != n_states or not all(isinstance(name, str) for name in given):
        raise InputError(f"state_names_ must be {n_states} strings, one for each state; given {names!r}.")
    repeated = {name for name in given if given.count(name) > 1}
    if repeated:
        raise InputError(f"the names of the states must differ, but {sorted(repeated)[0]!r} is given twice.")
    return given
