"""Missing coordinates of observations whose other coordinates are known, drawn along with the hidden states.

Where the columns of a family are independent given the state, a missing entry drops out. Coordinates of a Gaussian are
not, and with some of them missing its posterior is not in the family any more. It is once they are filled in; so they
are, by a draw given the state and given parameters that were drawn themselves, which keeps the whole sampler exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.base import Parameters
from subchain.emissions.checks import as_matrix
from subchain.emissions.gaussian import GaussianParameters
from subchain.emissions.moments import patterns
from subchain.emissions.product import ProductParameters

Values = NDArray[Any]
States = NDArray[np.int32]


def has_incomplete_rows(parameters: Parameters, values: Values) -> bool:
    """Whether any observation lacks some of the coordinates that depend on each other, but not all."""
    if isinstance(parameters, ProductParameters):
        parts = zip(parameters.parts.values(), parameters.layout.take_apart(values), strict=True)
        return any(has_incomplete_rows(part, block) for part, block in parts)
    if not isinstance(parameters, GaussianParameters) or values.dtype.kind != "f":
        return False
    missing = np.isnan(as_matrix(values))
    return bool((missing.any(axis=1) & ~missing.all(axis=1)).any())


def fill_incomplete_rows(parameters: Parameters, values: Values, states: States, rng: np.random.Generator) -> Values:
    """A copy of the observations with such coordinates drawn; rows that are missing entirely stay so.

    Parameters
    ----------
    values : (n, D), nan where missing
    states : (n,)
    """
    filled = values.copy()
    if isinstance(parameters, ProductParameters):
        for part, columns in zip(parameters.parts.values(), parameters.layout.slots(), strict=True):
            filled[:, columns] = fill_incomplete_rows(part, values[:, columns], states, rng)
    elif isinstance(parameters, GaussianParameters):
        _fill_gaussian(parameters, filled, states, rng)
    return filled


def _fill_gaussian(parameters: GaussianParameters, values: Values, states: States, rng: np.random.Generator) -> None:
    """Draw missing coordinates from their normal distribution given the known ones, in place."""
    for known, rows in patterns(np.isnan(values).T):
        if known.all() or not known.any():
            continue
        for state in np.unique(states[rows]):
            members = rows[states[rows] == state]
            mean, covariance = parameters.means[state], parameters.covariances[state]
            cross = covariance[np.ix_(known, ~known)]
            gain = np.linalg.solve(covariance[np.ix_(known, known)], cross)
            rest = covariance[np.ix_(~known, ~known)] - cross.T @ gain
            expected = mean[~known] + (values[np.ix_(members, known)] - mean[known]) @ gain
            noise = rng.standard_normal(expected.shape) @ np.linalg.cholesky(rest).T
            values[np.ix_(members, ~known)] = expected + noise
