"""Checks of hyperparameters and parameters of families with one prior per state and column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.emissions.checks import positive
from subchain.errors import InputError


def per_column(name: str, given: Any, n_states: int, n_columns: int) -> NDArray[np.float64]:
    """Broadcast a positive number, one per column (D,), or one per state and column (K, D) to (K, D)."""
    value = positive(name, given)
    if value.shape not in ((), (n_columns,), (n_states, n_columns)):
        raise InputError(
            f"{name} has shape {value.shape}; expected a number, ({n_columns},) or ({n_states}, {n_columns}) "
            f"for {n_states} states and {n_columns} columns."
        )
    return np.broadcast_to(value, (n_states, n_columns)).copy()


def check_mode(name: str, given: Any) -> None:
    """Raise an `InputError` if a hyperparameter is below 1: the prior density then has no maximum, and EM needs one."""
    value = positive(name, given)
    if (value < 1.0).any():
        raise InputError(
            f"{name} is {given!r}, but below 1 the prior density is unbounded, so that EM, which maximises it, has no "
            f"solution; give {name} ≥ 1, leave it out, or use variational inference."
        )


def state_table(name: str, given: ArrayLike, largest: float) -> NDArray[np.float64]:
    """Return parameters given as (K, D), or (K,) for one column, as (K, D); raise unless they are in [0, largest]."""
    table = np.asarray(given, dtype=np.float64)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.size == 0:
        raise InputError(f"{name} must be a table with one row per state; got shape {np.shape(given)}.")
    wrong = ~((table >= 0.0) & (table <= largest))
    if wrong.any():
        state, column = np.argwhere(wrong)[0]
        bound = "a finite number, not negative" if largest > 1.0 else f"between 0 and {largest:g}"
        raise InputError(f"{name} of state {state}, column {column} is {table[state, column]}; it must be {bound}.")
    return table.copy()
