"""Masks of allowed transitions for `Dirichlet(mask=…)` and `HDP(mask=…)`; others have probability exactly zero."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError


def left_right(n_states: int, max_step: int | None = None) -> NDArray[np.bool_]:
    """Return the (K, K) mask of self-transitions and transitions to later states, at most `max_step` ahead.

    Examples
    --------
    >>> left_right(3, max_step=1).astype(int)
    array([[1, 1, 0],
           [0, 1, 1],
           [0, 0, 1]])
    """
    return _diagonals(n_states, range(n_states if max_step is None else min(max_step + 1, n_states)))


def banded(n_states: int, width: int = 1) -> NDArray[np.bool_]:
    """Return the (K, K) mask of transitions to states at most `width` away.

    Examples
    --------
    >>> banded(3).astype(int)
    array([[1, 1, 0],
           [1, 1, 1],
           [0, 1, 1]])
    """
    return _diagonals(n_states, range(-width, width + 1))


def cyclic(n_states: int, max_step: int = 1) -> NDArray[np.bool_]:
    """Return the (K, K) mask of self-transitions and transitions at most `max_step` ahead on a circle of states.

    Examples
    --------
    >>> cyclic(3).astype(int)
    array([[1, 1, 0],
           [0, 1, 1],
           [1, 0, 1]])
    """
    return _diagonals(n_states, range(min(max_step, n_states - 1) + 1)) | _diagonals(
        n_states, range(-n_states + 1, min(max_step, n_states - 1) - n_states + 1)
    )


def _diagonals(n_states: int, ahead: Iterable[int]) -> NDArray[np.bool_]:
    """Return the mask of transitions that go so many states ahead (back, if negative), (K, K)."""
    if n_states < 1:
        raise InputError(f"n_states must be at least 1, not {n_states}.")
    mask = np.zeros((n_states, n_states), dtype=np.bool_)
    for step in ahead:
        if abs(step) < n_states:
            np.fill_diagonal(mask[max(-step, 0) :, max(step, 0) :], True)
    return mask


def checked_mask(given: Any, n_states: int) -> NDArray[np.bool_] | None:
    """Return the allowed transitions, (K, K), for the argument `mask` of a prior; None if there is none.

    Raises an `InputError` if the shape is wrong or a state cannot be left. `given` may be a function of the number of
    states.

    Examples
    --------
    >>> checked_mask(left_right, 2)
    array([[ True,  True],
           [False,  True]])
    """
    mask = given(n_states) if callable(given) else given
    if mask is None:
        return None
    allowed = np.asarray(mask).astype(np.bool_)
    if allowed.shape != (n_states, n_states):
        raise InputError(f"mask has shape {allowed.shape}, but {n_states} states need {(n_states, n_states)}.")
    stuck = np.flatnonzero(~allowed.any(axis=1))
    if stuck.size:
        raise InputError(f"the mask allows no transition from state {stuck[0]}; allow at least one.")
    return allowed
