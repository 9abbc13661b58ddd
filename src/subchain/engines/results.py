"""What engines return: scores, marginals of some positions, occurrence of transitions, memory of a pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from subchain.errors import impossible_error
from subchain.numerics.linking import linked

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Scores(NamedTuple):
    """Log likelihoods of sequences.

    Attributes
    ----------
    log_likelihood : (S,) log normaliser of each sequence; 0 for an empty one, −inf for an impossible one
    impossible : position (within its sequence) at which every path ends, for each impossible sequence
    """

    log_likelihood: Array
    impossible: dict[int, int]

    def checked(self) -> Array:
        """Return the log likelihoods; raise an `ImpossibleSequenceError` if a sequence has no path."""
        if self.impossible:
            raise impossible_error(self.impossible)
        return self.log_likelihood


@linked()
def _write_rows(table, positions, out):  # type: ignore[no-untyped-def]
    for column in range(positions.shape[0]):
        for k in range(table.shape[0]):
            out[positions[column], k] = table[k, column]


class MarginalBlock:
    """Marginals of some positions.

    Attributes
    ----------
    positions : (n,) flat positions
    table : (K, n) probability of each state at each of them
    """

    def __init__(self, positions: Index, table: Array) -> None:
        self.positions = positions
        self._table = table

    @property
    def table(self) -> Array:
        return self._table

    def write(self, out: NDArray[Any]) -> None:
        """Write the marginals into the rows of `out` (N, K) that belong to the positions."""
        if out.dtype.isnative:
            _write_rows(self.table, self.positions, out)
        else:  # a file of another machine
            out[self.positions] = self.table.T

    def write_best(self, out: NDArray[Any]) -> None:
        """Write the most probable state of each position into `out` (N,); the lowest among equals."""
        out[self.positions] = self.table.argmax(axis=0)

    def write_of(self, states: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the probability of one given state (N,) of each position into `out` (N,)."""
        out[self.positions] = self.table[states[self.positions], np.arange(len(self.positions))]


class FilteredBlock(MarginalBlock):
    """Marginals of some positions given the past and present alone.

    Attributes
    ----------
    scale : (n,) probability of each observation given those before it, divided by exp(shift)
    shift : (n,)
    """

    def __init__(self, positions: Index, table: Array, scale: Array, shift: Array) -> None:
        super().__init__(positions, table)
        self.scale = scale
        self.shift = shift

    @property
    def increments(self) -> Array:
        """Log probability (n,) of each observation given those before it in its sequence."""
        with np.errstate(divide="ignore"):  # blocks with a zero are followed by the same ones computed in log space
            return np.asarray(np.log(self.scale) + self.shift)


@dataclasses.dataclass
class WriteMarginals:
    """Writes the marginals of all positions into the rows of `out` (N, K)."""

    out: NDArray[Any]

    def __call__(self, block: MarginalBlock) -> None:
        block.write(self.out)


@dataclasses.dataclass
class WriteBest:
    """Writes the most probable state of each position into `out` (N,)."""

    out: NDArray[Any]

    def __call__(self, block: MarginalBlock) -> None:
        block.write_best(self.out)


#: What is done with blocks of marginals. Blocks come in any order and from several threads; none of them shares a
#: position with another that is under way. A position may come more than once: the last time counts.
Consume: TypeAlias = Callable[[MarginalBlock], None]
ConsumeFiltered: TypeAlias = Callable[[FilteredBlock], None]
#: Is given flat positions (n,) and their smoothed marginals (K, n).
Keep: TypeAlias = Callable[[Index, Array], None]


@dataclasses.dataclass
class Occurrence:
    """−log of the probability that no sequence begins with a state, (K,), and that none has a transition, (K, K)."""

    first: Array
    moves: Array

    @property
    def probability(self) -> Array:
        """Probability (K, K) that each transition occurs at least once."""
        return np.asarray(-np.expm1(-self.moves))

    def absorb(self, other: Occurrence) -> None:
        self.first += other.first
        self.moves += other.moves


class PassMemory(NamedTuple):
    """Bytes that a pass takes beside data and model.

    Attributes
    ----------
    tables : likelihoods and messages of the tiles that are worked on at once
    sums : statistics of the groups, before they are added
    borders : messages at the borders of cut chains, and the list of their pieces
    n_jobs : number of tasks that the engine does at once
    """

    tables: int
    sums: int
    borders: int
    n_jobs: int = 1


class Approach(NamedTuple):
    """Messages that arrive at the subchains of a minibatch from both sides.

    In a column, states to which the positions on that side can lead have weights of at least e^-700 times the largest.

    Attributes
    ----------
    start : (K, M) weights of the first positions' states before their observations are seen
    stop : (K, M) backward messages of the last positions, in any scale
    reach : (M, 2) number of positions before and after each subchain that the messages come from
    """

    start: Array
    stop: Array
    reach: Index
