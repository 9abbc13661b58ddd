"""Checked input of the user functions: a table of log likelihoods, an initial distribution and a transition matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.errors import InputError

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Tolerance for rounding in the condition that probabilities sum to at most one.
SLACK = 1e-6


class Chains(NamedTuple):
    """Checked input of one call.

    Attributes
    ----------
    log_likelihood : (T, K), sequences concatenated
    initial : (K,)
    transition : (K, K)
    starts, stops : (n_sequences,) first position of each sequence, and the one after its last
    """

    log_likelihood: Array
    initial: Array
    transition: Array
    starts: Index
    stops: Index

    @property
    def n_states(self) -> int:
        return len(self.initial)

    @property
    def n_sequences(self) -> int:
        return len(self.starts)

    def rows(self, sequence: int) -> slice:
        """Return the positions of one sequence as a slice."""
        return slice(int(self.starts[sequence]), int(self.stops[sequence]))

    def of(self, sequences: Index) -> Chains:
        """Return the given sequences only; the table is shared."""
        return self._replace(starts=self.starts[sequences], stops=self.stops[sequences])


def check(log_likelihood: ArrayLike, initial: ArrayLike, transition: ArrayLike, lengths: ArrayLike | None) -> Chains:
    """Return the checked input; raise an `InputError` if a shape or a value is wrong."""
    first = _weights("initial", initial)
    if first.ndim != 1 or not len(first):
        raise InputError(f"initial must have the shape (n_states,); got {first.shape}.")
    matrix = _weights("transition", transition)
    if matrix.shape != (len(first), len(first)):
        raise InputError(
            f"transition must have the shape {(len(first), len(first))}, a row and a column for each of the "
            f"{len(first)} states of initial; got {matrix.shape}."
        )
    logs = _numbers("log_likelihood", log_likelihood)
    if logs.ndim != 2 or logs.shape[1] != len(first):
        raise InputError(
            f"log_likelihood must have the shape (positions, {len(first)}), a column for each state; got {logs.shape}."
        )
    edges = _edges(lengths, len(logs))
    chains = Chains(logs, first, matrix, edges[:-1], edges[1:])
    _check_logs(chains)
    return chains


def _numbers(name: str, given: ArrayLike) -> Array:
    try:
        return np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be an array of numbers; got {type(given).__name__}.") from None


def _weights(name: str, given: ArrayLike) -> Array:
    """Return probabilities as an array; raise an `InputError` if one is negative or a row sums to more than one."""
    weights = _numbers(name, given)
    rows = np.atleast_2d(weights)
    bad = ~((rows >= 0.0) & (rows < np.inf)).all(axis=-1) | ~(rows.sum(axis=-1) <= 1.0 + SLACK)
    if bad.any():
        row = int(bad.argmax())
        where = f", row {row}" if weights.ndim > 1 else ""
        raise InputError(
            f"{name}{where}: probabilities must not be negative and must sum to at most one; got {rows[row]}, with sum "
            f"{rows[row].sum():.6g}."
        )
    return weights


def _edges(lengths: ArrayLike | None, n_positions: int) -> Index:
    """Return the first position of each sequence and the end of the last, (n_sequences + 1,)."""
    if lengths is None:
        return np.array([0, n_positions])
    given = np.asarray(lengths)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise InputError(f"lengths must be whole numbers in one dimension; got {given.dtype} of shape {given.shape}.")
    if (given < 0).any():
        sequence = int((given < 0).argmax())
        raise InputError(f"lengths must not be negative; sequence {sequence} has length {given[sequence]}.")
    edges = np.concatenate(([0], np.cumsum(given, dtype=np.int64)))
    if edges[-1] != n_positions:
        raise InputError(f"lengths sum to {edges[-1]}, but log_likelihood has {n_positions} rows.")
    return edges


def _check_logs(chains: Chains) -> None:
    """Raise an `InputError` at the first log likelihood that is nan or +inf."""
    wrong = ~(chains.log_likelihood < np.inf)
    if wrong.any():
        position, state = (int(place) for place in np.argwhere(wrong)[0])
        sequence = int(np.searchsorted(chains.stops, position, side="right"))
        raise InputError(
            f"log_likelihood of state {state} at sequence {sequence}, position {position - chains.starts[sequence]} is "
            f"{chains.log_likelihood[position, state]}; log likelihoods must be below infinity: −inf where the "
            "observation is impossible, and 0 in every state where it is missing."
        )
