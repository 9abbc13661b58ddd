"""Symbols for compiled passes: a table of weights."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.symbol_kernels import gather, round_rows, scatter
from subchain.propagation.lanes.observing import (
    add_observations,
    likelihoods,
    log_likelihoods,
    observation_room,
    observe,
)
from subchain.propagation.verbs import implements

Array = NDArray[np.float64]


class SymbolTable(NamedTuple):
    """Symbols, −1 or nan where missing, and their weights.

    Attributes
    ----------
    values : (N,)
    weights : (W, K), scaled
    shift : (W + 1,) logarithms of what each row was divided by, that of the missing symbol last; (0,) if all are 0
    """

    values: NDArray[Any]
    weights: NDArray[Any]
    shift: Array

    def single(self) -> SymbolTable:
        """Return the same with weights of single precision, scaled where they come near the ends of its range."""
        weights = np.empty(self.weights.shape, dtype=np.float32)
        shift = self.shift.copy() if len(self.shift) else np.zeros(len(weights) + 1)
        any_scaled = round_rows(self.weights, weights, shift)
        return SymbolTable(self.values, weights, shift if any_scaled else self.shift)


class SymbolLogs(NamedTuple):
    """Symbols as in `SymbolTable`, and the logarithms of their weights, (W, K): for best paths, and in products."""

    values: NDArray[Any]
    logs: Array


class Codes(NamedTuple):
    """The symbols of a tile, and how many of the room are in use."""

    codes: NDArray[np.int64]
    n: NDArray[np.int64]


@implements(observation_room, SymbolTable)
@implements(observation_room, SymbolLogs)
def _room(family, columns):
    return Codes(np.empty(columns, dtype=np.int64), np.zeros(1, dtype=np.int64))


@implements(observe, SymbolTable)
@implements(observe, SymbolLogs)
def _observe(family, positions, seen):
    seen.n[0] = positions.shape[0]
    for i in range(positions.shape[0]):
        value = family.values[positions[i]]
        seen.codes[i] = np.int64(value) if value == value else -1
    return True


@implements(likelihoods, SymbolTable)
def _likelihoods(family, seen, out, shift):
    codes = seen.codes[: seen.n[0]]
    gather(family.weights, codes, out)
    if family.shift.shape[0] == 0:
        shift[:] = 0.0
    else:
        for i in range(codes.shape[0]):
            shift[i] = family.shift[codes[i]]


@implements(log_likelihoods, SymbolLogs)
def _log_likelihoods(family, seen, out):
    codes = seen.codes[: seen.n[0]]
    gather(family.logs, codes, out)
    for i in range(codes.shape[0]):
        if codes[i] < 0:
            out[:, i] = 0.0


@implements(add_observations, SymbolTable)
@implements(add_observations, SymbolLogs)
def _add(family, seen, marginals, sums):
    n_states = marginals.shape[0]
    scatter(sums.reshape(sums.shape[0] // n_states, n_states), seen.codes[: seen.n[0]], marginals)
