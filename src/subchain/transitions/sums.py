"""Expected counts of hidden chains: for all transitions, for those of a band, or for both halves of low-rank ones."""

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

    def drawn(self, n_sequences: float, n_transitions: float, rng: np.random.Generator) -> Self:
        """Return exponential counts of the same form, whose expected totals are given."""
        n_states = len(self.initial)
        initial = rng.exponential(n_sequences / n_states, n_states)
        return self.like(initial, rng.exponential(n_transitions / self.n_cells, self.pairs.shape))

    @property
    def n_cells(self) -> int:
        """Number of counts among which a transition is divided."""
        return len(self.initial) ** 2

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

    def drawn(self, n_sequences: float, n_transitions: float, rng: np.random.Generator) -> Self:
        """As for a matrix, of which the band is taken, unless that would be too large."""
        n_states = len(self.initial)
        if n_states > MOST_DENSE:
            return super().drawn(n_sequences, n_transitions, rng)
        initial = rng.exponential(n_sequences / n_states, n_states)
        whole = rng.exponential(n_transitions / self.n_cells, (n_states, n_states))
        return self.like(initial, self.layout.gather(whole))

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


#: Share of a transition that is counted for the feature of its target; the rest is divided among all features.
OF_TARGET = 0.5


@dataclasses.dataclass
class FactoredSums(ChainSums):
    """Expected counts of low-rank chains, whose transitions pass through features.

    Attributes
    ----------
    pairs : (K, 2, f) expected number of transitions out of state j through feature h, `[j, 0, h]`, and through feature
        h into state k, `[k, 1, h]`
    """

    pairs: Array = array("K2F", COUNTS)

    @classmethod
    def of_matrix(cls, sums: ChainSums, n_features: int) -> FactoredSums:
        """Return counts of transitions, (K, K), divided among the features as `count` does."""
        n_states = len(sums.initial)
        found = cls(sums.initial, np.zeros((n_states, 2, n_features)))
        rows, columns = np.divmod(np.arange(n_states**2), n_states)
        found._divide(rows, columns, sums.matrix().ravel())
        return found

    @property
    def n_cells(self) -> int:
        return self.pairs[:, 0].size

    @property
    def visits(self) -> Array:
        return np.asarray(self.initial + self.pairs[:, 1].sum(axis=1))

    def ended(self) -> Array:
        left = self.pairs[:, 0].sum(axis=1)
        return np.maximum(np.stack((self.visits - left, left), axis=1), 0.0)

    def matrix(self) -> Array:
        """Return numbers of transitions, (K, K), as if states before and behind a feature were independent.

        Counts of pairs of states are not kept; the sums of its rows and of its columns are those of the counts.
        """
        check_dense(len(self.initial), "a table of counts")
        out_of, into = self.pairs[:, 0], self.pairs[:, 1]
        total = out_of.sum(axis=0)
        return np.asarray((out_of / np.where(total > 0.0, total, 1.0)) @ into.T)

    def count(self, rows: Index, columns: Index, weight: float) -> None:
        """Add transitions (n,), each `weight` times: half through feature k % f for target k, half through all alike.

        Features that stand for groups of targets are different from each other, and none has a count of zero.
        """
        self._divide(rows, columns, np.full(len(rows), weight))

    def _divide(self, rows: Index, columns: Index, weights: Array) -> None:
        n_states, _, n_features = self.pairs.shape
        own = columns % n_features
        for side, states in enumerate((rows, columns)):
            np.add.at(self.pairs[:, side], (states, own), OF_TARGET * weights)
            total = np.bincount(states, weights, minlength=n_states)
            self.pairs[:, side] += (1.0 - OF_TARGET) / n_features * total[:, None]

    def fold(self, into: int, gone: int) -> Self:
        raise InputError(
            "states of a low-rank chain cannot be merged: their counts do not say which features they use."
        )


def check_dense(n_states: int, what: str) -> None:
    """Raise an `InputError` if a chain of so many states is too large for a transition matrix."""
    if n_states > MOST_DENSE:
        raise InputError(
            f"{what} needs the whole transition matrix, which is too large for the {n_states} states of a banded or "
            f"low-rank chain (at most {MOST_DENSE})."
        )
