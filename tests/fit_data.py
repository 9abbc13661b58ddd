"""Data of the fits whose results are stored: one generator for each family, and shapes of sequences."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from subchain import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Gaussian,
    Poisson,
    Product,
)

# ---- data ------------------------------------------------------------------------------------------------------------


def _path(rng: np.random.Generator, n: int) -> np.ndarray:
    """A sticky path over three states."""
    return np.cumsum(rng.random(n) < 0.2) % 3


def _symbols(rng: np.random.Generator, path: np.ndarray) -> np.ndarray:
    return np.where(rng.random(len(path)) < 0.7, path, rng.integers(0, 6, len(path)))


def _vectors(rng: np.random.Generator, path: np.ndarray) -> np.ndarray:
    return rng.normal(size=(len(path), 2)) + np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])[path]


def _numbers(rng: np.random.Generator, path: np.ndarray) -> np.ndarray:
    return rng.normal(size=len(path)) + np.array([0.0, 3.0, 7.0])[path]


def _counts(rng: np.random.Generator, path: np.ndarray) -> np.ndarray:
    return rng.poisson(np.array([[1.0, 6.0], [5.0, 1.0], [9.0, 9.0]])[path])


def _flags(rng: np.random.Generator, path: np.ndarray) -> np.ndarray:
    table = np.array([[0.9, 0.1, 0.2], [0.1, 0.9, 0.5], [0.5, 0.5, 0.95]])[path]
    return (rng.random((len(path), 3)) < table).astype(np.int64)


def _mixed(rng: np.random.Generator, path: np.ndarray) -> np.ndarray:
    return np.column_stack((_vectors(rng, path), _symbols(rng, path), _counts(rng, path)[:, 0]))


WORDS = ("the", "a", "dog", "cat", "run", "walks")


#: How observations are drawn, and the emission family that describes them.
FAMILIES: dict[str, tuple[Callable[..., np.ndarray], Callable[[], Any]]] = {
    "categorical": (_symbols, lambda: Categorical(n_categories=6)),
    "gaussian": (_vectors, Gaussian),
    "scalar": (_numbers, Gaussian),
    "diagonal": (_vectors, DiagonalGaussian),
    "poisson": (_counts, Poisson),
    "bernoulli": (_flags, Bernoulli),
    "product": (
        _mixed,
        lambda: Product(a=Gaussian(columns=[0, 1]), b=Categorical(n_categories=6, columns=2), c=Poisson(columns=3)),
    ),
    "words": (_symbols, Categorical),
}


#: Lengths of the sequences; "missing" has holes, the others are complete.
SHAPES: dict[str, list[int]] = {
    "chain": [240],
    "long chain": [1200],
    "many": [12] * 24,
    "ragged": [31, 1, 0, 53, 2, 17],
    "missing": [60, 45, 12],
    "new": [23, 1, 9],
}


@functools.cache
def draw(family: str, shape: str, seed: int = 0) -> tuple[Any, tuple[np.ndarray, ...]]:
    """Observations as `fit` takes them, and the states that they were drawn from, one array for each sequence."""
    rng = np.random.default_rng([seed, *map(ord, family)])
    lengths = SHAPES[shape]
    path = _path(rng, sum(lengths))
    values = FAMILIES[family][0](rng, path)
    if shape == "missing":
        values = _punch(values, rng)
    stops = np.cumsum(lengths)[:-1]
    paths = tuple(np.split(path, stops))
    if family == "words":
        return [[WORDS[code] for code in part] for part in np.split(values, stops)], paths
    return (values if len(lengths) == 1 else (values, lengths)), paths


def _punch(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Make entries missing, and some rows entirely: −1 in integers, nan in floating numbers."""
    hole = rng.random(values.shape) < 0.15
    hole[rng.random(len(values)) < 0.1] = True
    values = values.copy()
    values[hole] = -1 if values.dtype.kind == "i" else np.nan
    return values


def fingerprint(family: str, shape: str, seed: int = 0) -> str:
    """A few hexadecimal digits that change with the data."""
    x, _ = draw(family, shape, seed)
    values = x[0] if isinstance(x, tuple) else x
    content = repr(values).encode() if family == "words" else np.ascontiguousarray(values).tobytes()
    return hashlib.blake2b(content, digest_size=6).hexdigest()
