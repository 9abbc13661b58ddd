"""Emissions of all states in all columns as one table, for heat maps, and their covariances, for ellipses."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from subchain.emissions import Parameters
from subchain.emissions.product import ProductParameters
from subchain.tasks.profiles import Numbers, Profile, Symbols, shown

Array = NDArray[np.float64]

#: Maximum number of symbols per state, and approximate maximum number of symbols of all states together.
TOP, SYMBOLS = 6, 40


@dataclasses.dataclass(frozen=True)
class EmissionTable:
    """Means of the columns of numbers, and probabilities of the most probable symbols, state by state.

    Attributes
    ----------
    labels : names of the D columns and symbols
    values, spreads : (S, D) means and probabilities, and standard deviations, 0 where they are not known
    colours : (S, D) the same for colours: probabilities from 0 to 1 if all columns are probabilities; otherwise
        differences of a state's mean from the mean of all data, in standard deviations of the data
    are_chances : whether all columns are probabilities
    has_symbols : whether some columns are symbols
    """

    labels: list[str]
    values: Array
    spreads: Array
    colours: Array
    are_chances: bool
    has_symbols: bool


def emission_table(profile: Profile, states: NDArray[np.int64], occupancy: Array) -> EmissionTable:
    """Return the table of some states.

    Parameters
    ----------
    profile : description of the emissions of all K states
    states : (S,) numbers of the states, in the order of the rows
    occupancy : (K,) share of each state in the data

    Examples
    --------
    >>> from subchain import Poisson
    >>> from subchain.tasks.profiles import profile
    >>> parts = profile(Poisson.from_parameters([[4.0], [8.0]]), Poisson())
    >>> emission_table(parts, np.array([0, 1]), np.array([0.5, 0.5])).colours.round(2).ravel()
    array([-0.63,  0.63])
    """
    labels, means, spreads = _columns(profile, states)
    are_chances = all(isinstance(part, Symbols) or part.is_chance for part in profile)
    has_symbols = any(isinstance(part, Symbols) for part in profile)
    colours = means if are_chances else _standardised(means, spreads, occupancy)
    return EmissionTable(labels, means[states], spreads[states], colours[states], are_chances, has_symbols)


def _columns(parts: Profile, states: NDArray[np.int64]) -> tuple[list[str], Array, Array]:
    """Return labels (D,), means and standard deviations (K, D) of the columns of numbers and of the shown symbols."""
    labels, means, spreads = [], [], []
    for part in parts:
        if isinstance(part, Symbols):
            before = f"{part.name}: " if len(parts) > 1 else ""
            symbols = _top_symbols(part, states)
            labels += [before + shown(part.labels[symbol]) for symbol in symbols]
            means += list(part.chances[:, symbols].T)
            spreads += list(np.sqrt(part.chances * (1.0 - part.chances))[:, symbols].T)
            continue
        labels.append(part.name)
        means.append(part.means)
        own = np.sqrt(part.means * (1.0 - part.means)) if part.is_chance else part.spreads
        spreads.append(np.zeros_like(part.means) if own is None else own)
    return labels, np.array(means).T, np.array(spreads).T


def _top_symbols(part: Symbols, states: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the most probable symbols of some states, those of the first state first."""
    each = max(1, min(TOP, SYMBOLS // len(states)))
    top = np.concatenate([part.top(int(state), each) for state in states])
    symbols = top[np.sort(np.unique(top, return_index=True)[1])]
    return symbols[np.argsort(part.chances[np.ix_(states, symbols)].argmax(axis=0), kind="stable")]


def _standardised(means: Array, spreads: Array, occupancy: Array) -> Array:
    """Return the difference of each state's mean from the overall mean, in overall standard deviations, (K, D)."""
    away = means - occupancy @ means
    scale = np.sqrt(occupancy @ (spreads**2 + away**2))
    return np.divide(away, scale, out=np.zeros_like(away), where=scale > 0.0)


def covariances(emission: Parameters, profile: Profile) -> Array:
    """Return the covariances of the described columns given the state, (K, D, D); zero between independent columns.

    Columns of symbols have none: their entries are zero.

    Examples
    --------
    >>> from subchain import Gaussian
    >>> from subchain.tasks.profiles import profile
    >>> emission = Gaussian.from_parameters([[0.0, 0.0]], [[[2.0, 1.0], [1.0, 3.0]]])
    >>> covariances(emission, profile(emission, Gaussian()))
    array([[[2., 1.],
            [1., 3.]]])
    """
    n_states = emission.n_states
    found = np.zeros((n_states, len(profile), len(profile)))
    for place, part in enumerate(profile):
        if isinstance(part, Numbers):
            spread = np.sqrt(part.means * (1.0 - part.means)) if part.is_chance else part.spreads
            found[:, place, place] = 0.0 if spread is None else spread**2
    first = 0
    for family in emission.parts.values() if isinstance(emission, ProductParameters) else [emission]:
        joint = getattr(family, "covariances", None)  # families without this field have independent columns
        width = family.expectation().shape[1] if isinstance(profile[first], Numbers) else 1
        if joint is not None:
            found[:, first : first + width, first : first + width] = joint
        first += width
    return found


def pair_order(profile: Profile, columns: list[int], states: NDArray[np.int64], occupancy: Array) -> list[int]:
    """Return columns, as places in the profile, sorted by how well they separate the states, the best first."""
    _, means, spreads = _columns([profile[column] for column in columns], states)
    differences = np.abs(_standardised(means, spreads, occupancy)[states])
    worth = occupancy[states] @ differences**2
    return [columns[place] for place in np.argsort(-worth, kind="stable")]
