"""Masks of allowed transitions for `Dirichlet(mask=…)`; forbidden transitions have probability exactly zero."""

from __future__ import annotations

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
    ahead = _differences(n_states)
    return (ahead >= 0) & (ahead <= (n_states if max_step is None else max_step))


def banded(n_states: int, width: int = 1) -> NDArray[np.bool_]:
    """Return the (K, K) mask of transitions to states at most `width` away.

    Examples
    --------
    >>> banded(3).astype(int)
    array([[1, 1, 0],
           [1, 1, 1],
           [0, 1, 1]])
    """
    return np.abs(_differences(n_states)) <= width


def cyclic(n_states: int, max_step: int = 1) -> NDArray[np.bool_]:
    """Return the (K, K) mask of self-transitions and transitions at most `max_step` ahead on a circle of states.

    Examples
    --------
    >>> cyclic(3).astype(int)
    array([[1, 1, 0],
           [0, 1, 1],
           [1, 0, 1]])
    """
    return _differences(n_states) % n_states <= max_step


def _differences(n_states: int) -> NDArray[np.int64]:
    """Return target minus source of each transition, (K, K)."""
    if n_states < 1:
        raise InputError(f"n_states must be at least 1, not {n_states}.")
    states = np.arange(n_states)
    return states[None, :] - states[:, None]
