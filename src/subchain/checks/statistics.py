"""Statistics of data that a predictive check compares: moments, tails, dependence between neighbours and columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.data import Sequences
from subchain.data.missing import is_missing
from subchain.tasks.profiles import Numbers, Profile, Symbols

Array = NDArray[np.float64]


class Value(NamedTuple):
    """A statistic of one data set: the column, empty for all columns together; what it is; its value."""

    column: str
    name: str
    value: float


def statistics(data: Sequences, profile: Profile) -> Iterator[Value]:
    """Yield the statistics of all columns that a model emits, always the same ones in the same order."""
    follows = np.ones(data.n_observations, dtype=bool)
    follows[data.offsets[:-1][data.lengths > 0]] = False
    numbers = [part for part in profile if isinstance(part, Numbers)]
    for part in profile:
        column = column_of(data, part)
        kind = _of_symbols if isinstance(part, Symbols) else _of_chances if part.is_chance else _of_numbers
        for name, value in kind(column, follows).items():
            yield Value(part.name, name, value)
    if len(numbers) > 1:
        table = np.column_stack([column_of(data, part) for part in numbers])
        yield Value("", "mean absolute correlation of two columns", _mean_correlation(table))


def column_of(data: Sequences, part: Symbols | Numbers) -> Array:
    """Return one column as floats, (n,), nan where it is missing."""
    values = data.values.reshape(data.n_observations, -1)
    column = values[:, part.column if values.shape[1] > part.column else 0]
    return np.where(is_missing(column), np.nan, column.astype(np.float64))


def _of_numbers(x: Array, follows: NDArray[np.bool_]) -> dict[str, float]:
    known = x[~np.isnan(x)]
    if len(known) < 2:
        return dict.fromkeys(("mean", "standard deviation", "1 % quantile", "99 % quantile", "kurtosis"), np.nan) | {
            "autocorrelation": np.nan
        }
    mean, spread = float(known.mean()), float(known.std())
    low, high = np.quantile(known, [0.01, 0.99])
    fourth = float(np.mean((known - mean) ** 4)) / spread**4 if spread > 0.0 else np.nan
    return {
        "mean": mean, "standard deviation": spread, "1 % quantile": float(low), "99 % quantile": float(high),
        "kurtosis": fourth, "autocorrelation": _correlation(*_neighbours(x, follows)),
    }  # fmt: skip


def _of_chances(x: Array, follows: NDArray[np.bool_]) -> dict[str, float]:
    known = x[~np.isnan(x)]
    share = float(known.mean()) if len(known) else np.nan
    return {"share of ones": share, "autocorrelation": _correlation(*_neighbours(x, follows))}


def _of_symbols(x: Array, follows: NDArray[np.bool_]) -> dict[str, float]:
    before, after = _neighbours(x, follows)
    one, other = _entropy(before), _entropy(after)
    pair = _entropy(before * (np.nanmax(x, initial=0.0) + 1.0) + after)
    return {
        "different symbols": float(len(np.unique(x[~np.isnan(x)]))),
        "entropy (bits)": _entropy(x[~np.isnan(x)]),
        "share of repeated symbols": float(np.mean(before == after)) if len(before) else np.nan,
        "mutual information of neighbours (bits)": one + other - pair,
    }


def _neighbours(x: Array, follows: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the known values before and at each position that follows another one in its sequence."""
    here = np.flatnonzero(follows)
    before, after = x[here - 1], x[here]
    known = ~(np.isnan(before) | np.isnan(after))
    return before[known], after[known]


def _correlation(a: Array, b: Array) -> float:
    """Return the correlation of two columns, 0 if one of them is constant."""
    if not len(a):
        return 0.0
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / scale if scale > 0.0 else 0.0


def _mean_correlation(table: Array) -> float:
    known = table[~np.isnan(table).any(axis=1)]
    if not len(known):
        return np.nan
    away = known - known.mean(axis=0)
    spread = np.sqrt((away**2).sum(axis=0))
    away = np.divide(away, spread, out=np.zeros_like(away), where=spread > 0.0)
    return float(np.abs((away.T @ away)[np.triu_indices(table.shape[1], 1)]).mean())


def _entropy(symbols: Array) -> float:
    """Return the entropy in bits of the observed frequencies of symbols."""
    if not len(symbols):
        return np.nan
    shares = np.unique(symbols, return_counts=True)[1] / len(symbols)
    return float(-(shares @ np.log2(shares)))
