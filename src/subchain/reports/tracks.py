"""Which sequences are drawn, how finely, and where single positions are kept: a plan that fits into the page.

Every drawn sequence is a *track*. It is cut into bins, for which the page carries shares of states; coarser levels are
made from these by the page itself. Single positions are kept for tracks that are short enough, and for a few stretches
of those that are not.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from subchain.data import Sequences

#: Bytes for bins, and most bins, all tracks together; fewest bins of a page that has many states.
BIN_BYTES, MOST_BINS, FEWEST_BINS = 400_000, 16_384, 1_024
#: Single positions that are kept, all tracks together; stretches of a long track, and how long these are.
MOST_POSITIONS, STRETCHES, STRETCH = 160_000, 16, 2_048
#: Sequences that are drawn; this share of them are the longest, the others are spread over the rest.
MOST_TRACKS, SHARE_OF_LONGEST = 48, 0.5


@dataclasses.dataclass(frozen=True)
class Track:
    """One sequence as it is drawn.

    Attributes
    ----------
    sequence : its number
    name : what it is called
    start : its first position, over all sequences
    length : its number of positions
    n_bins : bins that it is cut into; bin b holds the positions p with p · n_bins // length = b
    is_whole : whether all its positions are kept
    n_stretches : otherwise, how many stretches of it are
    """

    sequence: int
    name: str
    start: int
    length: int
    n_bins: int
    is_whole: bool
    n_stretches: int


def plan(data: Sequences, bytes_a_bin: int) -> list[Track]:
    """The tracks of the data, in their order.

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
    """Numbers of the sequences to draw, rising: the longest, and some of the others."""
    there = np.flatnonzero(lengths > 0)
    if len(there) <= MOST_TRACKS:
        return there
    by_length = there[np.argsort(-lengths[there], kind="stable")]
    n_longest = int(MOST_TRACKS * SHARE_OF_LONGEST)
    rest = np.sort(by_length[n_longest:])
    spread = rest[np.arange(MOST_TRACKS - n_longest) * (len(rest) - 1) // (MOST_TRACKS - n_longest - 1)]
    return np.sort(np.concatenate([by_length[:n_longest], spread]))
