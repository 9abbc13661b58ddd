"""The argument `frozen` of families and priors: everything, nothing, or some states keep given parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError


def freezes(frozen: Any) -> bool:
    """Return whether an argument `frozen` keeps anything: True, or a list of states that is not empty.

    Examples
    --------
    >>> freezes(True), freezes([2]), freezes([]), freezes(False)
    (True, True, False, False)
    """
    return bool(frozen) if isinstance(frozen, (bool, np.bool_)) else np.size(frozen) > 0


def frozen_states(frozen: Any, n_states: int, owner: str) -> NDArray[np.bool_]:
    """Return which states keep their parameters, (K,); raise an `InputError` that names `owner` if it is unclear.

    Examples
    --------
    >>> frozen_states([2], 3, "Gaussian")
    array([False, False,  True])
    """
    if isinstance(frozen, (bool, np.bool_)):
        return np.full(n_states, bool(frozen))
    states = np.asarray(frozen if isinstance(frozen, (list, tuple, range, np.ndarray)) else [None])
    if states.ndim != 1 or (states.size and states.dtype.kind not in "iu"):
        raise InputError(f"{owner}: frozen must be True, False or a list of states, such as [0, 2], not {frozen!r}.")
    outside = states[(states < 0) | (states >= n_states)] if states.size else states
    if outside.size:
        raise InputError(f"{owner}: frozen names state {outside[0]}, but the states are 0 to {n_states - 1}.")
    found = np.zeros(n_states, dtype=np.bool_)
    found[states.astype(np.int64)] = True
    return found
