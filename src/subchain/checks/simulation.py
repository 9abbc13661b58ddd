"""Simulated copies of data, for checks: an excerpt of the data, and data of the same shape drawn from the model.

A copy has as many pieces of the same lengths as the excerpt, with the same entries missing. The first state of a piece
is drawn from the posterior marginal of the data's first position there, so that pieces from the middle of a sequence
can be compared too. Everything else comes from the fitted parameters.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from subchain.checks.kernels import walk_pieces
from subchain.data import Sequences
from subchain.data.missing import is_missing
from subchain.datasets.paths import cumulative_rows
from subchain.models.hmm import HMM
from subchain.structures.chain.model import HMMPoint
from subchain.tasks.profiles import Profile

Array = NDArray[np.float64]

#: Number of simulations.
SIMULATIONS = 50
#: Bounds of the number of positions of an excerpt; between them it follows from the work, n · K² operations each.
FEWEST, MOST, WORK = 2_000, 20_000, 3.2e7
#: Smallest number of pieces of an excerpt from a long sequence.
PIECES = 4


def excerpt_size(n_states: int) -> int:
    """Return the largest number of positions of an excerpt for a model with this number of states.

    Examples
    --------
    >>> excerpt_size(10), excerpt_size(80), excerpt_size(1000)
    (20000, 5000, 2000)
    """
    return int(np.clip(WORK // n_states**2, FEWEST, MOST))


def pieces(data: Sequences, most: int) -> NDArray[np.int64]:
    """Return first and last + 1 flat positions of the pieces of an excerpt, (P, 2), in the order of the data.

    All sequences if they have at most `most` positions together. Otherwise pieces of at most `most` / PIECES
    positions, evenly spaced among all such pieces of the data.

    Examples
    --------
    >>> pieces(Sequences(np.zeros(100)), most=20).tolist()
    [[0, 5], [30, 35], [65, 70], [95, 100]]
    """
    bounds = np.column_stack([data.offsets[:-1], data.offsets[1:]])
    bounds = bounds[bounds[:, 1] > bounds[:, 0]]
    if data.n_observations <= most:
        return bounds
    longest = most // PIECES
    counts = -(-(bounds[:, 1] - bounds[:, 0]) // longest)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = np.repeat(bounds[:, 0], counts) + within * longest
    cut = np.column_stack([starts, np.minimum(starts + longest, np.repeat(bounds[:, 1], counts))])
    n_chosen = max(1, int(len(cut) * most / data.n_observations))
    chosen = cut[np.linspace(0, len(cut) - 1, n_chosen).round().astype(np.int64)]
    return chosen[np.cumsum(chosen[:, 1] - chosen[:, 0]) <= most]


class Starts:
    """Posterior marginals at the first positions of pieces, collected from blocks."""

    def __init__(self, bounds: NDArray[np.int64], n_states: int) -> None:
        self.first = bounds[:, 0]
        self.marginals = np.zeros((len(bounds), n_states))

    def add(self, start: int, marginals: Array) -> None:
        """Take what a block has: the marginals (n, K) of the positions from flat position `start` on."""
        low, high = np.searchsorted(self.first, [start, start + len(marginals)])
        self.marginals[low:high] = marginals[self.first[low:high] - start]


@dataclasses.dataclass(frozen=True)
class Simulation:
    """Source of simulated copies of an excerpt.

    Attributes
    ----------
    model : HMM
    excerpt : pieces of the data
    starts : (P, K) distributions of the first states of the pieces
    profile : columns that the model emits
    is_whole : whether the excerpt is all of the data
    seed : of the random numbers
    """

    model: HMM
    excerpt: Sequences
    starts: Array
    profile: Profile
    is_whole: bool
    seed: int = 0

    @classmethod
    def of(cls, model: HMM, data: Sequences, starts: Starts, bounds: NDArray[np.int64], profile: Profile) -> Simulation:
        """Return the source for pieces of data, given by first and last + 1 flat positions, (P, 2)."""
        values = np.concatenate([data.values[first:last] for first, last in bounds])
        excerpt = _alike(data, values, np.concatenate([[0], np.cumsum(bounds[:, 1] - bounds[:, 0])]))
        is_whole = excerpt.n_observations == data.n_observations
        return cls(model, excerpt, starts.marginals, profile, is_whole)

    def reader(self) -> HMM:
        """Return the model that decodes and scores pieces: its initial distribution is that of the pieces' starts."""
        if self.is_whole:
            return self.model
        reader = copy.copy(self.model)
        chain = self.model.point_.chain
        reader.point_ = HMMPoint(
            chain.with_weights(self.starts.mean(axis=0), chain.weights), self.model.point_.emission
        )
        reader.training_marginals_ = None
        return reader

    def copies(self, n: int = SIMULATIONS) -> Iterator[Sequences]:
        """Yield n simulated copies of the excerpt; the same ones in every call."""
        rng = np.random.default_rng(self.seed)
        rows = cumulative_rows("transition", self.model.transition_)
        starts = cumulative_rows("starts", self.starts / self.starts.sum(axis=1, keepdims=True))
        states = np.empty(self.excerpt.n_observations, dtype=np.int64)
        for _ in range(n):
            walk_pieces(rows, starts, self.excerpt.offsets, rng.random(len(states)), states)
            yield self._with(self.model.emission_.sample(states, rng))

    def _with(self, drawn: NDArray[np.generic]) -> Sequences:
        """Return the excerpt with drawn observations in the model's columns, and the same entries missing."""
        values = self.excerpt.values
        table, drawn = values.reshape(len(values), -1), drawn.reshape(len(values), -1)
        columns = [part.column for part in self.profile]
        taken = drawn[:, columns] if drawn.shape[1] == table.shape[1] else drawn
        filled = table.astype(np.result_type(table, drawn))
        filled[:, columns] = taken
        filled = np.where(is_missing(table), table, filled)
        return _alike(self.excerpt, filled.reshape(values.shape), self.excerpt.offsets)


def _alike(data: Sequences, values: NDArray[np.generic], offsets: NDArray[np.int64]) -> Sequences:
    return Sequences(values, offsets, columns=data.columns, vocabulary=data.vocabularies)
