"""Expected counts of hidden chains, for all transitions or for those of a band."""

from __future__ import annotations

import dataclasses
from typing import Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.ranges import COUNTS, STATES
from subchain.core.records import Sums, array
from subchain.errors import InputError
from subchain.transitions.layout import Layout

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Largest number of states for which a band is turned into a matrix where nothing else will do.
MOST_DENSE = 1024
#: Expected count below which a state, or a row of transitions, counts as empty.
EMPTY = 1e-8


@dataclasses.dataclass
class ChainSums(Sums):
    """Expected counts of hidden chains.

    Attributes
    ----------
    initial : (K,) expected number of chains that begin in each state
    pairs : (K, K) expected number of transitions from row to column
    """

    initial: Array = array("K", COUNTS)
    pairs: Array = array("KK", COUNTS)

    @property
    def visits(self) -> Array:
        """Expected number of positions in each state, (K,)."""
        return np.asarray(self.initial + self.pairs.sum(axis=0))

    def ended(self) -> Array:
        """Expected numbers of sequences that ended in each state, and of transitions out of it, (K, 2).

        For counts of whole sequences: what was visited and not left is where they ended.
        """
        left = self.pairs.sum(axis=1)
        return np.maximum(np.stack((self.visits - left, left), axis=1), 0.0)

    def matrix(self) -> Array:
        """Expected number of transitions from row to column, (K, K)."""
        return self.pairs

    def like(self, initial: Array, pairs: Array) -> Self:
        """Return other counts of the same form."""
        return dataclasses.replace(self, initial=initial, pairs=pairs)

    def count(self, rows: Index, columns: Index, weight: float) -> None:
        """Add transitions (n,) to the counts, each `weight` times."""
        np.add.at(self.pairs, (rows, columns), weight)

    def weighed(self, initial: float, pairs: float) -> Self:
        """Return the counts with factors for first states and for transitions."""
        return self.like(initial * self.initial, pairs * self.pairs)


@dataclasses.dataclass
class BandedSums(ChainSums):
    """Expected counts of chains whose transitions form a band.

    Attributes
    ----------
    pairs : (K, width) expected number of transitions
    first : (K,) column of each row's first entry
    """

    pairs: Array = array("KB", COUNTS)
    first: Index = array("K", STATES, is_constant=True)

    @property
    def layout(self) -> Layout:
        return Layout(self.first, self.pairs.shape[1])

    @property
    def visits(self) -> Array:
        return np.asarray(self.initial + self.layout.column_sums(self.pairs))

    def matrix(self) -> Array:
        return self.layout.spread(self.pairs)

    def count(self, rows: Index, columns: Index, weight: float) -> None:
        place = self.layout.place(rows, columns)
        inside = place < self.pairs.shape[1]
        np.add.at(self.pairs, (rows[inside], place[inside]), weight)

    def dense(self) -> ChainSums:
        """Return the same counts with a matrix."""
        return ChainSums(self.initial, self.matrix())

    def take(self, order: Index) -> ChainSums:  # type: ignore[override]
        check_dense(len(self.initial), "another order of states")
        return self.dense().take(order)

    def fold(self, into: int, gone: int) -> Self:
        raise InputError("states of a banded chain cannot be merged: a band has no room for the transitions of both.")


def check_dense(n_states: int, what: str) -> None:
    """Raise an `InputError` if a band of so many states is too large to be turned into a matrix."""
    if n_states > MOST_DENSE:
        raise InputError(
            f"{what} needs the whole transition matrix, which is too large for the {n_states} states of a banded chain "
            f"(at most {MOST_DENSE})."
        )
