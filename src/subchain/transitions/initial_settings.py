"""Settings of initial distributions and concentrations, checked: what priors over chains have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.checks import real_numbers
from subchain.errors import InputError, unknown_name
from subchain.transitions.initial import GivenInitial, Initial, LearnedInitial, StationaryInitial

Array = NDArray[np.float64]


def initial_of(given: Any, concentration: Any, n_states: int, flat: bool) -> Initial:
    """Return the initial distribution that a setting asks for, or raise an `InputError`.

    Parameters
    ----------
    given : "learned", "stationary" or (K,) probabilities
    concentration : number or (K,), of a learned one
    n_states : K
    flat : whether the mode shall be the maximum-likelihood estimate
    """
    if isinstance(given, str):
        if given == "learned":
            return LearnedInitial(hyperparameter("initial_concentration", concentration, (n_states,), flat).copy())
        if given == "stationary":
            return StationaryInitial()
        raise unknown_name("initial distribution", given, ["learned", "stationary"])
    probabilities = real_numbers("initial", given)
    fits = probabilities.shape == (n_states,) and bool((probabilities >= 0.0).all())
    if not fits or abs(probabilities.sum() - 1.0) > 1e-6:
        raise InputError(
            f"initial must be 'learned', 'stationary' or {n_states} probabilities that sum to 1; got {given!r}."
        )
    return GivenInitial(probabilities)


def hyperparameter(name: str, given: Any, shape: tuple[int, ...], flat: bool, advice: str = "") -> Array:
    """Broadcast a concentration to `shape`; raise an `InputError` if it is not positive, or below 1 and `flat`.

    `advice` says what to do where zeros were meant to forbid something.
    """
    value = real_numbers(name, 1.0 if given is None else given)
    if not (np.isfinite(value).all() and (value > 0.0).all()):
        raise InputError(f"{name} must be positive and finite; got {given!r}.{advice}")
    if flat and (value < 1.0).any():
        raise InputError(
            f"{name} is {given!r}, but below 1 the prior density is unbounded, so that there is no most probable "
            "parameter; use at least 1, or variational inference, which accepts any positive value."
        )
    try:
        return np.broadcast_to(value, shape)
    except ValueError:
        raise InputError(f"{name} has shape {value.shape}; expected a number or {shape}.") from None
