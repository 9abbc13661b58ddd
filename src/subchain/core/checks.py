"""Checks of settings that components share."""

from __future__ import annotations

from typing import Any

import numpy as np

from subchain.errors import InputError


def whole_number(owner: Any, name: str, least: int = 1) -> None:
    """Raise an `InputError` unless a setting is a whole number of at least `least`."""
    value = getattr(owner, name)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{type(owner).__name__}: {name} must be a whole number of at least {least}, not {value!r}.")


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


def truth_value(owner: Any, name: str) -> None:
    """Raise an `InputError` unless a setting is True or False."""
    value = getattr(owner, name)
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{type(owner).__name__}: {name} must be True or False, not {value!r}.")
