"""The states themselves: how long they last, how often they are visited, in which order they stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.columns import resolve_columns
from subchain.engines.statistics import HMMStatistics
from subchain.errors import InputError, unknown_name
from subchain.structures.chain.model import HMMPoint
from subchain.transitions import stationary_distribution

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def dwell_times(transition: Array) -> Array:
    """Expected number of positions from entering a state to leaving it, (K,); infinite for states never left."""
    leaving = transition.sum(axis=1) - np.diagonal(transition)
    return np.asarray(np.divide(1.0, leaving, out=np.full(len(leaving), np.inf), where=leaving > 0.0))


def occupancy(transition: Array, statistics: HMMStatistics) -> Array:
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


def state_keys(by: Any, point: HMMPoint, shares: Array, columns: Sequence[str] | None, column: str | int) -> Array:
    """What states are ordered by, (K,), the smallest first: most visited, smallest mean, or longest lasting."""
    if by == "occupancy":
        return -shares
    if by == "dwell":
        return -dwell_times(point.chain.transition)
    if by == "mean":
        return _means(point, columns, column)
    raise unknown_name("order of states", by, ["occupancy", "dwell", "mean"])


def _means(point: HMMPoint, columns: Sequence[str] | None, column: str | int) -> Array:
    if point.emission.marginals() is None:
        raise InputError(
            f"{type(point.emission).__name__} have no mean to order states by; order them by 'occupancy' or 'dwell', "
            "or by a function of the model."
        )
    means = point.emission.expectation()
    return np.asarray(means[:, resolve_columns(column, columns, means.shape[1])[0]])


def rising(keys: Any, n_states: int) -> Index:
    """The states by rising keys."""
    given = np.asarray(keys)
    if given.shape != (n_states,):
        raise InputError(
            f"the function that orders states gave an array of shape {given.shape}; expected one key for each of "
            f"{n_states} states."
        )
    return np.argsort(given, kind="stable")


def inherit_names(own: list[str], inherited: list[str]) -> list[str]:
    """Names in which the first states have inherited theirs; the others keep their own, marked where it is taken."""
    names = list(inherited)
    for name in own[len(inherited) :]:
        while name in names:
            name += "'"
        names.append(name)
    return names


def checked_names(names: Iterable[str], n_states: int) -> list[str]:
    """Names of the states: one for each, all different."""
    given = list(names)
    if isinstance(names, str) or len(given) != n_states or not all(isinstance(name, str) for name in given):
        raise InputError(f"state_names_ must be {n_states} strings, one for each state; given {names!r}.")
    repeated = {name for name in given if given.count(name) > 1}
    if repeated:
        raise InputError(f"the names of the states must differ, but {sorted(repeated)[0]!r} is given twice.")
    return given
