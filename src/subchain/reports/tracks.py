"""Plan of the timeline: the drawn sequences, their resolution, and where single positions are stored.

Every drawn sequence is a *track*. It is divided into bins, for which the page stores occupancies; the page computes
coarser levels from them. Single positions are stored for short tracks, and for a few stretches of long ones.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from subchain.data import Sequences

#: Maximum numbers of bytes and of bins, all tracks together; minimum number of bins, for models with many states.
BIN_BYTES, MOST_BINS, FEWEST_BINS = 400_000, 16_384, 1_024
#: Maximum number of single positions, all tracks together; number and length of the stretches of a long track.
MOST_POSITIONS, STRETCHES, STRETCH = 160_000, 16, 2_048
#: Maximum number of drawn sequences; this fraction are the longest ones, the others are evenly spaced among the rest.
MOST_TRACKS, SHARE_OF_LONGEST = 48, 0.5


@dataclasses.dataclass(frozen=True)
class Track:
    """One drawn sequence.

    Attributes
    ----------
    sequence : number of the sequence
    name : name of the sequence
    start : flat position of its first position
    length : number of positions
    n_bins : number of bins; bin b holds the positions p with p · n_bins // length = b
    is_whole : whether all single positions are stored
    n_stretches : number of stored stretches if not all positions are
    """

    sequence: int
    name: str
    start: int
    length: int
    n_bins: int
    is_whole: bool
    n_stretches: int


def plan(data: Sequences, bytes_a_bin: int) -> list[Track]:
    """Return the tracks of the data, in the order of the sequences; `bytes_a_bin` is the size of one bin in the page.

    Examples
    --------
    >>> [(track.n_bins, track.is_whole) for track in plan(Sequences(np.zeros(1_000_000)), 20)]
    [(16384, False)]
    """
    chosen = _chosen(data.lengths)
    lengths = data.lengths[chosen]
    most = int(np.clip(BIN_BYTES // bytes_a_bin, FEWEST_BINS, MOST_BINS))
    shares = np.maximum(lengths * min(1.0, most / lengths.sum()), 1.0).astype(np.int64)
    left, tracks = MOST_POSITIONS, []
    for sequence, length, n_bins in zip(chosen.tolist(), lengths.tolist(), shares.tolist(), strict=True):
        is_whole = length <= left
        n_stretches = 0 if is_whole else min(STRETCHES, left // STRETCH)
        left -= length if is_whole else n_stretches * STRETCH
        start, name = int(data.offsets[sequence]), str(sequence if data.names is None else data.names[sequence])
        tracks.append(Track(sequence, name, start, length, n_bins, is_whole, n_stretches))
    return tracks


def _chosen(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of the sequences to draw, increasing: the longest ones, and some of the others."""
    there = np.flatnonzero(lengths > 0)
    if len(there) <= MOST_TRACKS:
        return there
    by_length = there[np.argsort(-lengths[there], kind="stable")]
    n_longest = int(MOST_TRACKS * SHARE_OF_LONGEST)
    rest = np.sort(by_length[n_longest:])
    spread = rest[np.arange(MOST_TRACKS - n_longest) * (len(rest) - 1) // (MOST_TRACKS - n_longest - 1)]
    return np.sort(np.concatenate([by_length[:n_longest], spread]))
