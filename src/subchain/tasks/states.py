"""Properties of the states: dwell times, occupancy, order and names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.columns import resolve_columns
from subchain.emissions.product import ProductParameters
from subchain.engines.statistics import HMMStatistics
from subchain.errors import InputError, unknown_name
from subchain.structures.chain.model import HMMPoint
from subchain.transitions.operators import TransitionOperator
from subchain.transitions.stationary import stationary_of

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def dwell_times(transition: TransitionOperator) -> Array:
    """Return the expected dwell time of each state in positions, (K,); infinite for absorbing states."""
    leaving = transition.totals() - transition.diagonal()
    return np.asarray(np.divide(1.0, leaving, out=np.full(len(leaving), np.inf), where=leaving > 0.0))


def occupancy(transition: TransitionOperator, statistics: HMMStatistics) -> Array:
    """Return the share of positions in each state, (K,); without data the stationary distribution."""
    visits = statistics.visits
    total = visits.sum()
    return visits / total if total > 0.0 else stationary_of(transition)


def effective_states(shares: Array, coverage: float) -> int:
    """Return the smallest number of states that together hold a share `coverage` of the positions."""
    if not 0.0 < coverage <= 1.0:
        raise InputError(f"coverage must be above 0 and at most 1; got {coverage!r}.")
    held = np.cumsum(np.sort(shares)[::-1])
    return int(np.searchsorted(held, coverage * (1.0 - 1e-12) * held[-1]) + 1)


def state_keys(by: Any, point: HMMPoint, shares: Array, columns: Sequence[str] | None, column: str | int) -> Array:
    """Return sort keys of the states, (K,), by "occupancy" or "dwell" (largest first) or "mean" (smallest first)."""
    if by == "occupancy":
        return -shares
    if by == "dwell":
        return -dwell_times(point.chain.operator)
    if by == "mean":
        return _means(point, columns, column)
    raise unknown_name("order of states", by, ["occupancy", "dwell", "mean"])


def _means(point: HMMPoint, columns: Sequence[str] | None, column: str | int) -> Array:
    """Return the mean of a column in each state, (K,)."""
    emission, index = _described(point.emission, columns, column)
    if emission.marginals() is None:
        raise InputError(
            f"{type(emission).__name__} have no means to order states by; use 'occupancy', 'dwell', a function of the "
            "model, or, of a Product, a column of numbers."
        )
    means = emission.expectation()
    return np.asarray(means[:, resolve_columns(index, columns, means.shape[1])[0]])


def _described(emission: Any, columns: Sequence[str] | None, column: str | int) -> tuple[Any, str | int]:
    """Return the parameters that describe a column, and the column as these know it.

    A column of a `Product` may also be given as the name of a part that has no other column.
    """
    if not isinstance(emission, ProductParameters):
        return emission, column
    if column in emission.parts and column not in (columns or ()):
        part = emission[str(column)]
        if part.marginals() is None or part.expectation().shape[1] == 1:
            return part, 0
        raise InputError(f"part {column!r} of the Product has several columns; order states by one of them.")
    return emission.at_column(int(resolve_columns(column, columns, emission.layout.n_columns)[0]))


def rising(keys: Any, n_states: int) -> Index:
    """Return the states in the order of rising keys, (K,)."""
    given = np.asarray(keys)
    if given.shape != (n_states,):
        raise InputError(
            f"the function that orders states returned an array of shape {given.shape}; expected one key for each of "
            f"{n_states} states."
        )
    return np.argsort(given, kind="stable")


def inherit_names(own: list[str], inherited: list[str]) -> list[str]:
    """Return names of states: `inherited` for the first ones, own names for the rest, with ' appended if taken."""
    names = list(inherited)
    for name in own[len(inherited) :]:
        while name in names:
            name += "'"
        names.append(name)
    return names


def checked_names(names: Iterable[str], n_states: int) -> list[str]:
    """Return the names of the states as a list; raise an `InputError` unless there is one per state, all different."""
    given = list(names)
    if isinstance(names, str) or len(given) != n_states or not all(isinstance(name, str) for name in given):
        raise InputError(f"state_names_ must be {n_states} strings, one for each state; got {names!r}.")
    repeated = {name for name in given if given.count(name) > 1}
    if repeated:
        raise InputError(f"the names of the states must differ, but {sorted(repeated)[0]!r} is given twice.")
    return given
