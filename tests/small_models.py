"""Models so small that every path can be enumerated: one of each family, and some that are hard to compute with."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
from numpy.typing import NDArray

from subchain import HMM, Bernoulli, BlockSparse, Categorical, DiagonalGaussian, Gaussian, Poisson, Product

FAMILIES = ["bernoulli", "block_sparse", "categorical", "diagonal_gaussian", "gaussian", "poisson", "product"]


def emission(family: str) -> Any:
    """Parameters of a family for three states."""
    rng = np.random.default_rng(5)
    roots = rng.normal(size=(3, 2, 2))
    if family == "categorical":
        return Categorical.from_parameters(rng.dirichlet(np.ones(4), 3))
    if family == "block_sparse":
        table = np.array([[0.5, 0.0, 0.2, 0.3], [0.1, 0.0, 0.6, 0.3], [0.0, 1.0, 0.0, 0.0]])
        return BlockSparse.from_parameters(table, [0, 1, 0, 0])
    if family == "gaussian":
        covariances = roots @ roots.transpose(0, 2, 1) + np.eye(2)
        return Gaussian.from_parameters(rng.normal(size=(3, 2)) * 3, covariances)
    if family == "diagonal_gaussian":
        return DiagonalGaussian.from_parameters(rng.normal(size=(3, 2)) * 3, 1.0 + rng.random((3, 2)))
    if family == "poisson":
        return Poisson.from_parameters(rng.exponential(5.0, (3, 2)))
    if family == "bernoulli":
        return Bernoulli.from_parameters(rng.random((3, 3)))
    parts = {"a": emission("gaussian"), "b": emission("categorical")}
    return Product.from_parameters(columns={"a": [0, 2], "b": 1}, **parts)


def model_of(family: str, **settings: Any) -> HMM:
    """Three states between which every move is possible."""
    rng = np.random.default_rng(1)
    return HMM.from_parameters(rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3), emission(family), **settings)


def sparse_model(**settings: Any) -> HMM:
    """Moves to the right only, and symbols that some states never emit."""
    transition = [[0.6, 0.3, 0.1], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]]
    table = Categorical.from_parameters([[0.5, 0.5, 0.0], [0.0, 0.6, 0.4], [0.7, 0.0, 0.3]])
    return HMM.from_parameters([0.8, 0.2, 0.0], transition, table, **settings)


def steep_model(**settings: Any) -> HMM:
    """Two moves of 1e-200 to the only state that explains symbol 2: too small for scaled probabilities."""
    transition = [[1.0, 1e-200, 0.0], [0.0, 1.0, 1e-200], [0.0, 0.0, 1.0]]
    table = Categorical.from_parameters([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.05, 0.05, 0.9]])
    return HMM.from_parameters([1.0, 0.0, 0.0], transition, table, **settings)


def draw(model: HMM, n: int, seed: int = 0) -> NDArray[Any]:
    observations: NDArray[Any] = model.sample(n, random_state=seed).observations
    return observations


def with_holes(values: NDArray[Any], seed: int = 0) -> NDArray[Any]:
    """The values with some entries missing, and one whole row."""
    values = values.copy()
    hole = np.random.default_rng(seed).random(values.shape) < 0.3
    hole[len(values) // 2] = True
    values[hole] = np.nan if values.dtype.kind == "f" else -1
    return values


def enumerated(model: HMM, x: Any, weights: Any = 0.0) -> naive.Marginals:
    """Everything about one short sequence by summing over all paths; `weights` (T, K) are further log factors."""
    logs = model.emission_.log_likelihood(np.asarray(x)).T + weights
    return naive.enumerate_marginals(logs, model.initial_, model.transition_)


def followed(model: HMM, x: Any, weights: Any = 0.0) -> naive.Marginals:
    """The same for a sequence of any length, by plain loops in log space."""
    logs = model.emission_.log_likelihood(np.asarray(x)).T + weights
    return naive.marginals(logs, model.initial_, model.transition_)
