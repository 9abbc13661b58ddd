"""Marginals of the training data that a run has kept, for decoding these data as the run saw them.

Collapsed inference never lets a position see its own share in the counts. Parameters that are made from all counts do
contain it, so decoding the training data with them is not the same; the marginals of the run itself are better.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.ranges import FRACTIONS, SUM_TOLERANCE, WHOLE_NUMBERS, Range
from subchain.core.records import Record, array, number
from subchain.data.legal_states import spread_out
from subchain.data.sequences import Sequences

Array = NDArray[np.float64]

#: Values that are expanded or hashed at a time.
BLOCK_VALUES = 1 << 20


@dataclasses.dataclass
class TrainingMarginals(Record):
    """Probability of each state at each position of the training data.

    Attributes
    ----------
    entries : (N · K,) or, if only some states were legal, one number for each of these
    offsets, states : where each position's entries begin and which states they belong to; empty if all are legal
    contents, knowledge : what the data and what is known of their states are told by
    n_states : number of states
    """

    entries: Array = array("E", FRACTIONS)
    offsets: NDArray[np.int64] = array("O", WHOLE_NUMBERS)
    states: NDArray[np.int32] = array("S", Range("int32", least=0))
    contents: NDArray[np.uint64] = array("2", Range("uint64"))
    knowledge: NDArray[np.uint64] = array("1", Range("uint64"))
    n_states: int = number(Range(least=1))

    @property
    def n_positions(self) -> int:
        return len(self.offsets) - 1 if len(self.offsets) else len(self.entries) // self.n_states

    def check_fields(self) -> None:
        ends = self.offsets if len(self.offsets) else np.arange(0, len(self.entries) + 1, self.n_states)
        fits = ends[0] == 0 and ends[-1] == len(self.entries) and bool((np.diff(ends) > 0).all())
        if not fits or (len(self.offsets) and not self._states_fit()):
            raise ValueError("the marginals of the training data do not fit together")
        sums = np.add.reduceat(self.entries, ends[:-1]) if len(self.entries) else np.ones(0)
        if (np.abs(sums - 1.0) > SUM_TOLERANCE).any():
            raise ValueError("the marginals of a position do not sum to 1")

    def _states_fit(self) -> bool:
        """Return whether the states of each position increase, and each has an entry."""
        if len(self.states) != len(self.entries) or self.states.max(initial=0) >= self.n_states:
            return False
        rises = np.diff(self.states) > 0
        rises[self.offsets[1:-1] - 1] = True
        return bool(rises.all())

    def table(self, first: int, last: int) -> Array:
        """Marginals of neighbouring positions, (K, n)."""
        low, high = first * self.n_states, last * self.n_states
        if len(self.offsets):
            low, high = int(self.offsets[first]), int(self.offsets[last])
        return spread_out(self.entries[low:high], first, last, self.offsets, self.states, self.n_states)

    def write(self, out: NDArray[np.floating]) -> None:
        """All marginals into a table (N, K)."""
        for first, last in self._blocks():
            out[first:last] = self.table(first, last).T

    def best(self, out: NDArray[np.integer]) -> None:
        """The most probable state of each position into an array (N,)."""
        for first, last in self._blocks():
            out[first:last] = self.table(first, last).argmax(axis=0)

    def of_states(self, states: NDArray[np.integer], out: NDArray[np.floating]) -> None:
        """The marginal in one given state of each position into an array (N,)."""
        for first, last in self._blocks():
            out[first:last] = self.table(first, last)[states[first:last], np.arange(last - first)]

    def _blocks(self) -> list[tuple[int, int]]:
        rows = max(BLOCK_VALUES // self.n_states, 1)
        return [(first, min(first + rows, self.n_positions)) for first in range(0, self.n_positions, rows)]

    def take(self, order: NDArray[np.int64]) -> Self:
        """The marginals with the states in another order."""
        if not len(self.offsets):
            table = self.entries.reshape(-1, self.n_states)[:, order]
            return dataclasses.replace(self, entries=table.reshape(-1))
        states = np.argsort(order).astype(np.int32)[self.states]
        positions = np.repeat(np.arange(self.n_positions), np.diff(self.offsets))
        rising = np.lexsort((states, positions))
        return dataclasses.replace(self, entries=self.entries[rising], states=states[rising])


def contents_of(data: Sequences) -> NDArray[np.uint64]:
    """Tell data from any other by all their values."""
    hashed = hashlib.blake2b(digest_size=16)
    kind = np.float64 if data.values.dtype.kind == "f" else np.int64
    hashed.update(f"{data.values.shape} {np.dtype(kind).name}".encode())
    hashed.update(data.offsets.tobytes())
    rows = max(BLOCK_VALUES // data.n_features, 1)
    for first in range(0, data.n_observations, rows):
        hashed.update(np.ascontiguousarray(data.values[first : first + rows], dtype=kind).tobytes())
    return np.frombuffer(hashed.digest(), dtype=np.uint64)


def knowledge_of(digested: str | None) -> NDArray[np.uint64]:
    """What is known of states, by its fingerprint."""
    return np.frombuffer(hashlib.blake2b(str(digested).encode(), digest_size=8).digest(), dtype=np.uint64)
