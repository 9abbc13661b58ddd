"""Random data of every family, ordinary and odd: constant, tied, huge, tiny, missing, empty, of length one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import examples
import numpy as np
from numpy.typing import NDArray

from subchain.data import Sequences

Rng = np.random.Generator


@dataclasses.dataclass
class Data:
    """Observations of sequences with the given lengths; `oddities` say what is unusual about them."""

    values: NDArray[Any]
    lengths: list[int]
    oddities: set[str] = dataclasses.field(default_factory=set)

    @property
    def bounds(self) -> NDArray[np.int64]:
        return np.concatenate(([0], np.cumsum(self.lengths))).astype(np.int64)

    def sequences(self) -> Sequences:
        return Sequences(self.values, self.bounds)

    def listed(self) -> list[NDArray[Any]]:
        """The data as a user would give them: one array per sequence."""
        return np.split(self.values, self.bounds[1:-1])

    def without(self, left_out: NDArray[np.bool_]) -> Data:
        """The data without some sequences."""
        kept = np.repeat(~left_out, self.lengths)
        lengths = [length for length, gone in zip(self.lengths, left_out, strict=True) if not gone]
        return Data(self.values[kept], lengths, self.oddities)


def draw_lengths(rng: Rng, oddities: set[str]) -> list[int]:
    kind = rng.choice(["one", "few", "many", "ragged", "ones", "single"], p=[0.35, 0.25, 0.1, 0.2, 0.05, 0.05])
    if kind == "single":
        oddities.add("one observation")
        return [1]
    if kind == "ones":
        oddities.add("no transition")
        return [1] * int(rng.integers(2, 6))
    if kind == "one":
        return [int(rng.integers(2, 90))]
    lengths = rng.integers(1, 12 if kind == "many" else 40, size=int(rng.integers(2, 14 if kind == "many" else 5)))
    if kind == "ragged":
        lengths[rng.random(len(lengths)) < 0.3] = rng.integers(0, 2)
    if not lengths.any():
        lengths[0] = 5
    if (lengths == 0).any():
        oddities.add("empty sequence")
    return [int(length) for length in lengths]


def _reals(rng: Rng, n: int, oddities: set[str]) -> NDArray[Any]:
    n_features = int(rng.integers(1, 4))
    means = rng.normal(size=(3, n_features)) * rng.choice([0.5, 4.0])
    values = rng.normal(size=(n, n_features)) + means[examples.hidden(rng, n)]
    kind = rng.choice(
        ["plain", "scale", "shift", "constant column", "constant", "copies", "outlier", "ties", "float32"],
        p=[0.4, 0.15, 0.1, 0.05, 0.05, 0.05, 0.05, 0.1, 0.05],
    )
    oddities.add(str(kind))
    if kind == "scale":
        values *= 2.0 ** int(rng.integers(-490, 490))
    elif kind == "shift":
        values += 10.0 ** int(rng.integers(2, 9))
    elif kind == "constant column":
        values[:, 0] = 7.0
    elif kind == "constant":
        values[:] = -3.25
    elif kind == "copies":
        values = np.repeat(values[:, :1], n_features, axis=1)
    elif kind == "outlier":
        values[int(rng.integers(n))] = 10.0 ** int(rng.integers(3, 100))
    elif kind == "ties":
        values = np.round(values)
    elif kind == "float32":
        values = values.astype(np.float32)
    return values[:, 0].copy() if n_features == 1 and rng.random() < 0.5 else values


def _symbols(rng: Rng, n: int, oddities: set[str]) -> NDArray[Any]:
    kind = rng.choice(["plain", "one symbol", "all different", "rare", "small integers"], p=[0.6, 0.1, 0.1, 0.1, 0.1])
    oddities.add(str(kind))
    if kind == "one symbol":
        return np.zeros(n, dtype=np.int64)
    if kind == "all different":
        return rng.permutation(n)
    values = examples.symbols(rng, n)
    if kind == "rare":
        values[rng.integers(n)] = 40
    return values.astype(np.int8) if kind == "small integers" else values


def _counts(rng: Rng, n: int, oddities: set[str]) -> NDArray[Any]:
    values = examples.counts(rng, n)
    kind = rng.choice(["plain", "zeros", "large", "one column", "floats"], p=[0.5, 0.1, 0.1, 0.2, 0.1])
    oddities.add(str(kind))
    if kind == "zeros":
        values[:] = 0
    elif kind == "large":
        values *= 10 ** int(rng.integers(3, 9))
    elif kind == "one column":
        values = values[:, 0].copy()
    return values.astype(np.float64) if kind == "floats" else values


def _flags(rng: Rng, n: int, oddities: set[str]) -> NDArray[Any]:
    values = examples.flags(rng, n)
    kind = rng.choice(["plain", "all ones", "one column", "floats"], p=[0.6, 0.1, 0.2, 0.1])
    oddities.add(str(kind))
    if kind == "all ones":
        values[:] = 1
    elif kind == "one column":
        values = values[:, 0].copy()
    return values.astype(np.float64) if kind == "floats" else values


DRAWS: dict[str, Callable[[Rng, int, set[str]], NDArray[Any]]] = {
    "categorical": _symbols,
    "gaussian": _reals,
    "diagonal_gaussian": _reals,
    "poisson": _counts,
    "bernoulli": _flags,
    "product": lambda rng, n, oddities: examples.mixed(rng, n),
    "exponential": lambda rng, n, oddities: examples.times(rng, n),
}


def draw_data(rng: Rng, family: str) -> Data:
    """Draw data for a family."""
    oddities: set[str] = set()
    lengths = draw_lengths(rng, oddities)
    values = DRAWS[family](rng, sum(lengths), oddities)
    holes = rng.choice(["none", "entries", "a sequence", "most"], p=[0.7, 0.2, 0.05, 0.05])
    if holes != "none" and family != "exponential":
        values = _with_holes(rng, values, lengths, str(holes))
        oddities.add("missing")
    return Data(values, lengths, oddities)


def leaping(data: Data, family: str, rng: Rng) -> Data | None:
    """Now and then return data of the same lengths that stay at a place for some time, and leap to a distant one.

    In a chain that may only step to neighbouring states, the way leads through states that are most unlikely.
    """
    if family not in ("gaussian", "diagonal_gaussian") or rng.random() < 0.7:
        return None
    n, places = len(data.values), rng.normal(size=(6, 2)) * rng.choice([10.0, 20.0, 40.0])
    visits = np.repeat(rng.integers(6, size=n), rng.integers(5, 25, size=n))[:n]
    return Data(places[visits] + rng.normal(size=(n, 2)), data.lengths, {"leaps"})


def _with_holes(rng: Rng, values: NDArray[Any], lengths: list[int], kind: str) -> NDArray[Any]:
    if kind == "a sequence":
        hole = np.zeros(values.shape, dtype=bool)
        bounds = np.concatenate(([0], np.cumsum(lengths)))
        sequence = int(rng.integers(len(lengths)))
        hole[bounds[sequence] : bounds[sequence + 1]] = True
    else:
        hole = rng.random(values.shape) < (0.9 if kind == "most" else 0.2)
    if hole.all():
        hole[0] = False
    values = values.copy()
    values[hole] = -1 if values.dtype.kind == "i" else np.nan
    return values
