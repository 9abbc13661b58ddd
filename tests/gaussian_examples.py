"""Random Gaussian parameters, distributions over them, and data with missing coordinates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.gaussian import Gaussian, GaussianParameters, NormalInverseWishart

Array = NDArray[np.float64]


NAN = np.nan


def random_covariances(rng: np.random.Generator, n_states: int, n_features: int) -> Array:
    roots = rng.normal(size=(n_states, n_features, n_features))
    return roots @ roots.transpose(0, 2, 1) + 0.3 * np.eye(n_features)


def random_parameters(seed: int, n_states: int, n_features: int) -> GaussianParameters:
    rng = np.random.default_rng(seed)
    return Gaussian.from_parameters(
        rng.normal(size=(n_states, n_features)), random_covariances(rng, n_states, n_features)
    )


def random_niw(seed: int, n_states: int, n_features: int) -> NormalInverseWishart:
    rng = np.random.default_rng(seed)
    return NormalInverseWishart(
        rng.normal(size=(n_states, n_features)),
        rng.uniform(0.5, 3.0, n_states),
        n_features + rng.uniform(3.0, 8.0, n_states),
        random_covariances(rng, n_states, n_features),
        rng.normal(size=n_features),
        np.eye(n_features),
    )


def with_holes(values: Array, seed: int = 0) -> Array:
    """Values with about a third of the coordinates missing, one row entirely."""
    holes = np.random.default_rng(seed).random(values.shape) < 0.3
    holes[1] = True
    return np.where(holes, NAN, values)
