"""Subchains: stretches of sequences that are run by themselves, many at a time, between messages from outside.

A grid cuts every sequence into stretches of one length (the last may be shorter). A minibatch is a handful of them.
What lies beyond a stretch enters as two tables: the weights of its first states before anything in it is seen
(`start`), and the backward messages of its last positions (`stop`). A boundary
(`structures.chain.boundaries`) makes both.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from subchain.engines.statistics import HMMStatistics

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Minibatch(NamedTuple):
    """Subchains that are run together, the longest first.

    Attributes
    ----------
    pieces : (M,) number of each in its grid (or, without a grid, its first position)
    sequences : (M,) sequence that each belongs to
    starts, lengths : (M,) first flat position and number of positions
    is_first, is_last : (M,) whether it begins or ends its sequence
    user_weights : (M,) how often the sequence of each counts, or None
    weights, pair_weights : (M,) how often the observations and the transitions of each count, or None
    """

    pieces: Index
    sequences: Index
    starts: Index
    lengths: Index
    is_first: NDArray[np.bool_]
    is_last: NDArray[np.bool_]
    user_weights: Array | None
    weights: Array | None
    pair_weights: Array | None

    @property
    def size(self) -> int:
        return len(self.starts)

    @property
    def n_observations(self) -> int:
        return int(self.lengths.sum())


class Gains(NamedTuple):
    """How often what a minibatch of some size has seen is to be counted, to stand for all the data."""

    initial: float
    pairs: float
    emission: float


class SequenceScales(NamedTuple):
    """How often first states, observations and transitions of each sequence count, (S,); None where all count once."""

    first: Array | None
    each: Array | None
    each_move: Array | None


class Subchains(Protocol):
    """All subchains that can be drawn.

    Attributes
    ----------
    offsets, firsts : (S + 1,) position of each sequence's first observation, and number of its first subchain
    size : number of subchains
    length, stride : positions of a subchain that its sequence does not cut short, and between two beginnings
    """

    offsets: Index
    firsts: Index
    size: int
    length: int
    stride: int

    def gains(self, size: int) -> Gains: ...
    def scales(self, weights: Array | None) -> SequenceScales: ...
    def batch(self, pieces: Index, weights: Array | None = None) -> Minibatch: ...


class Grid:
    """All stretches of `length` positions into which sequences are cut; the last of a sequence may be shorter.

    Without a length every sequence is one stretch.
    """

    def __init__(self, offsets: Index, length: int | None) -> None:
        self.offsets = offsets
        lengths = np.diff(offsets)
        self.length = self.stride = int(length) if length is not None else max(int(lengths.max(initial=1)), 1)
        self.firsts = np.concatenate(([0], np.cumsum(-(-lengths // self.length))))
        self.size = int(self.firsts[-1])
        #: Transitions between stretches are seen by none of them; those inside stand for them, each for so many.
        self._for_each_move = _ratio(lengths - 1, lengths - np.diff(self.firsts))

    def gains(self, size: int) -> Gains:
        scale = self.size / size
        return Gains(scale, scale * _common(self._for_each_move), scale)

    def scales(self, weights: Array | None) -> SequenceScales:
        return _scales(weights, None, self._for_each_move)

    def batch(self, pieces: Index, weights: Array | None = None) -> Minibatch:
        """The stretches with these numbers; `weights` (n_sequences,) says how often each sequence counts."""
        sequences = np.searchsorted(self.firsts, pieces, side="right") - 1 if len(self.offsets) > 2 else 0 * pieces
        starts = self.offsets[sequences] + (pieces - self.firsts[sequences]) * self.length
        lengths = np.minimum(self.offsets[sequences + 1] - starts, self.length)
        return _batch(pieces, sequences, starts, lengths, self.offsets, weights, None, self._for_each_move)


def whole_sequences(offsets: Index) -> Minibatch:
    """Return all sequences that are not empty, each as one subchain: the minibatch of a grid without a length."""
    sequences = np.diff(offsets).nonzero()[0]
    starts = offsets[sequences]
    return _batch(sequences, sequences, starts, offsets[sequences + 1] - starts, offsets, None, None, None)


class Anywhere:
    """All stretches of `length` positions, wherever they begin; no sequence is shorter.

    A position belongs to several of them, so each counts the less; how much less depends on the length of the sequence.
    Those near the ends of a sequence belong to fewer, which is the one thing that is not made up for.
    """

    def __init__(self, offsets: Index, length: int) -> None:
        self.offsets = offsets
        self.length, self.stride = length, 1
        lengths = np.diff(offsets)
        starts = np.maximum(lengths - length + 1, 0)
        self.firsts = np.concatenate(([0], np.cumsum(starts)))
        self.size = int(self.firsts[-1])
        self._for_each = _ratio(lengths, length * starts)
        self._for_each_move = _ratio(lengths - 1, (length - 1) * starts)

    def gains(self, size: int) -> Gains:
        scale = self.size / size
        return Gains(scale, scale * _common(self._for_each_move), scale * _common(self._for_each))

    def scales(self, weights: Array | None) -> SequenceScales:
        return _scales(weights, self._for_each, self._for_each_move)

    def batch(self, pieces: Index, weights: Array | None = None) -> Minibatch:
        sequences = np.searchsorted(self.firsts, pieces, side="right") - 1
        starts = self.offsets[sequences] + pieces - self.firsts[sequences]
        lengths = np.full(len(starts), self.length)
        return _batch(starts, sequences, starts, lengths, self.offsets, weights, self._for_each, self._for_each_move)


def _ratio(wanted: Index, there: Index) -> Array:
    """For how many each one that is there has to stand; one where there is none."""
    return np.divide(wanted, there, out=np.ones(len(wanted)), where=there > 0)


def _common(ratios: Array) -> float:
    """What all sequences have in common; one where they differ, and single ones are weighed."""
    return float(ratios[0]) if len(ratios) and (ratios == ratios[0]).all() else 1.0


def _weighed(weights: Array | None, ratios: Array | None, sequences: Index) -> Array | None:
    """The users' weights times the sequences' ratios, where these differ; None if all is one."""
    differ = ratios is not None and bool((ratios != ratios[0]).any())
    if not differ:
        return None if weights is None else weights[sequences]
    assert ratios is not None
    return ratios[sequences] if weights is None else (ratios * weights)[sequences]


def _scales(weights: Array | None, ratios: Array | None, pair_ratios: Array) -> SequenceScales:
    every = np.arange(len(pair_ratios))
    return SequenceScales(weights, _weighed(weights, ratios, every), _weighed(weights, pair_ratios, every))


def _batch(
    pieces: Index,
    sequences: Index,
    starts: Index,
    lengths: Index,
    offsets: Index,
    weights: Array | None,
    ratios: Array | None,
    pair_ratios: Array | None,
) -> Minibatch:
    if len(lengths) and lengths.min() != lengths.max():
        order = np.argsort(-lengths, kind="stable")
        pieces, sequences, starts, lengths = pieces[order], sequences[order], starts[order], lengths[order]
    is_first = starts == offsets[sequences]
    is_last = starts + lengths == offsets[sequences + 1]
    own, of_pairs = _weighed(weights, ratios, sequences), _weighed(weights, pair_ratios, sequences)
    given = None if weights is None else weights[sequences]
    return Minibatch(pieces, sequences, starts, lengths, is_first, is_last, given, own, of_pairs)


class Ends(NamedTuple):
    """What subchains tell their neighbours, all (K, M): the first position's backward message times its likelihood, the
    last position's filtered marginal, and the smoothed marginals of both."""

    first_message: Array
    last_message: Array
    first_marginal: Array
    last_marginal: Array


@dataclasses.dataclass
class MinibatchRun:
    """What a minibatch gave.

    Attributes
    ----------
    statistics : summed over the subchains
    log_totals : (M,) log normalisers of the forward messages; `stop` does not count
    ends : what the subchains tell their neighbours
    surplus : (K, K) what −log q(transition never occurs) exceeds its expected number by, if asked for
    """

    statistics: HMMStatistics
    log_totals: Array
    ends: Ends
    surplus: Array | None = None
