"""Checks of settings that components share."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError

#: Whole numbers beyond this cannot be counted with.
MOST = 2**62


def whole_number(owner: Any, name: str, least: int = 1) -> None:
    """Raise an `InputError` unless a setting is a whole number of at least `least`, and one that can be counted to."""
    value = getattr(owner, name)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{type(owner).__name__}: {name} must be a whole number of at least {least}, not {value!r}.")
    if value > MOST:
        raise InputError(f"{type(owner).__name__}: {name} is {value!r}; it may be {MOST} at most.")


def positive_number(owner: Any, name: str) -> None:
    """Raise an `InputError` unless a setting is a positive, finite number."""
    value = getattr(owner, name)
    if not isinstance(value, (int, float, np.number)) or not 0.0 < value < np.inf:
        raise InputError(f"{type(owner).__name__}: {name} must be positive and finite, not {value!r}.")


def number(owner: Any, name: str, least: float) -> None:
    """Raise an `InputError` unless a setting is a number of at least `least`."""
    value = getattr(owner, name)
    if not isinstance(value, (int, float, np.number)) or not value >= least:
        raise InputError(f"{type(owner).__name__}: {name} must be a number of at least {least:g}, not {value!r}.")


def real_numbers(name: str, given: Any) -> NDArray[np.float64]:
    """Return numbers as an array of any shape; raise an `InputError` that names them if they are none."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be a number or a rectangular array of numbers, not {given!r}.") from None


def path_of(name: str, given: Any) -> str | None:
    """Return a path as text, None for None; raise an `InputError` that names it if it is none."""
    if given is None:
        return None
    try:
        path = os.fspath(given)
    except TypeError:
        raise InputError(f"{name} must be the path of a file, not {given!r}.") from None
    return path if isinstance(path, str) else os.fsdecode(path)


def truth_value(owner: Any, name: str) -> None:
    """Raise an `InputError` unless a setting is True or False."""
    value = getattr(owner, name)
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{type(owner).__name__}: {name} must be True or False, not {value!r}.")
