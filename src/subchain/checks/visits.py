"""Visits of states in a decoded path: how many there are of each length, and which state follows which.

A visit is a run of equal states. The end of a sequence cuts a visit off: it would have lasted at least that long. The
distribution of dwell times is estimated by the product-limit estimator, which uses such visits for what they tell
(Kaplan and Meier, 1958).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.checks.kernels import split_runs

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


class Visits:
    """Numbers of visits by state and length, accumulated over blocks.

    Memory grows with the number of different lengths, not with the number of positions.

    Parameters
    ----------
    offsets : first flat positions of the sequences, and the end of the last one
    n_states : number of states

    Attributes
    ----------
    changes : (K, K) numbers of changes of state, from row to column

    Examples
    --------
    >>> visits = Visits(np.array([0, 6]), n_states=2)
    >>> visits.add(0, np.array([0, 0, 1, 1, 1, 0]))
    >>> visits.close()
    >>> [counts.tolist() for counts in visits.of(0)]
    [[1, 2], [0, 1], [1, 0]]
    """

    def __init__(self, offsets: NDArray[np.int64], n_states: int) -> None:
        self.changes = np.zeros((n_states, n_states), dtype=np.int64)
        self._offsets, self._n_states = offsets, n_states
        self._open = np.array([-1, 0])
        self._keys, self._counts = np.zeros((2, 0), dtype=np.int64)

    def add(self, start: int, best: NDArray[np.integer]) -> None:
        """Add a block: the states of the positions from flat position `start` on, (n,), in the order of the data."""
        low, high = np.searchsorted(self._offsets, [start, start + len(best)])
        states, lengths, is_cut = np.empty((3, len(best)), dtype=np.int64)
        begins = self._offsets[low:high] - start
        n = split_runs(best, begins, self._open, states, lengths, is_cut, self.changes)
        self._count(states[:n], lengths[:n], is_cut[:n])

    def close(self) -> None:
        """Count the last visit, which the end of the data cuts off."""
        if self._open[0] >= 0:
            self._count(self._open[:1], self._open[1:], np.ones(1, dtype=np.int64))
            self._open[:] = [-1, 0]

    def _count(self, states: Counts, lengths: Counts, is_cut: Counts) -> None:
        keys = np.concatenate([self._keys, (lengths * self._n_states + states) * 2 + is_cut])
        counts = np.concatenate([self._counts, np.ones(len(states), dtype=np.int64)])
        self._keys, place = np.unique(keys, return_inverse=True)
        self._counts = np.bincount(place, counts, minlength=len(self._keys)).astype(np.int64)

    def of(self, state: int) -> tuple[Counts, Counts, Counts]:
        """Return the lengths of a state's visits, increasing, with the numbers that ended and that were cut off."""
        here = self._keys // 2 % self._n_states == state
        keys, counts = self._keys[here], self._counts[here]
        lengths, place = np.unique(keys // 2 // self._n_states, return_inverse=True)
        is_cut = keys % 2 == 1
        ended, cut = (np.bincount(place[part], counts[part], minlength=len(lengths)) for part in (~is_cut, is_cut))
        return lengths, ended.astype(np.int64), cut.astype(np.int64)

    def totals(self) -> tuple[Counts, Counts]:
        """Return the number of visits of each state, (K,), and the length of the longest, (K,)."""
        number, longest = np.zeros((2, self._n_states), dtype=np.int64)
        states = self._keys // 2 % self._n_states
        np.add.at(number, states, self._counts)
        np.maximum.at(longest, states, self._keys // 2 // self._n_states)
        return number, longest


def survival(lengths: Counts, ended: Counts, cut: Counts, at: Counts) -> Array:
    """Return the estimated share of visits that last longer than each length of `at`, nan where nothing is known.

    Parameters
    ----------
    lengths, ended, cut : increasing lengths, and numbers of visits that ended or were cut off after each
    at : lengths at which the estimate is wanted

    Examples
    --------
    >>> survival(np.array([1, 2]), np.array([1, 1]), np.array([2, 0]), at=np.array([1, 2]))
    array([0.5, 0. ])
    """
    if not len(lengths):
        return np.full(len(at), np.nan)
    longer = np.cumsum((ended + cut)[::-1])[::-1]
    at_risk = longer - cut  # a visit that was cut off after d positions does not tell whether it ends there
    hazard = np.divide(ended, at_risk, out=np.zeros(len(lengths)), where=at_risk > 0)
    steps = np.concatenate([[1.0], np.cumprod(1.0 - hazard)])
    found = steps[np.searchsorted(lengths, at, side="right")]
    return np.where(at <= lengths[-1], found, 0.0 if ended[-1] else np.nan)
