"""Run-length encoding of the best states of a track, with a byte or two per run.

If states last long, it is small enough for every position of a long sequence. If they change often it is not, and a
page shows only occupancies per bin.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

#: Maximum number of runs of a track; with more, runs are not stored.
MOST_RUNS = 1_500_000
#: Maximum number of compressed bytes of runs in a page, all tracks together.
RUN_BYTES = 800_000


class Packed(NamedTuple):
    """Encoded runs: states, one byte each, and lengths, as variable-length integers of seven bits per byte."""

    states: Bytes
    lengths: Bytes

    @property
    def deflated(self) -> int:
        """Approximate number of compressed bytes."""
        return sum(len(zlib.compress(part.tobytes(), 1)) for part in self)


class Runs:
    """Builder of the runs of a track from successive blocks."""

    def __init__(self) -> None:
        self._states: list[Bytes] = []
        self._starts: list[NDArray[np.int64]] = []
        self._number = 0
        self._last = -1
        self._length = 0

    @property
    def are_too_many(self) -> bool:
        """Whether there are more than MOST_RUNS runs."""
        return self._number > MOST_RUNS

    def add(self, best: Bytes) -> None:
        """Append the best states of the next positions, (n,)."""
        if not self.are_too_many and len(best):
            begins = np.flatnonzero(np.diff(best.astype(np.int16), prepend=np.int16(self._last)))
            self._states.append(best[begins])
            self._starts.append(self._length + begins)
            self._number += len(begins)
            self._last = int(best[-1])
        self._length += len(best)

    def packed(self) -> Packed | None:
        """Return all runs encoded; None if there are too many."""
        if self.are_too_many:
            return None
        states = np.concatenate([np.zeros(0, np.uint8), *self._states])
        starts = np.concatenate([np.zeros(0, np.int64), *self._starts, [self._length]])
        return Packed(states, _in_sevens(np.diff(starts)))


def affordable(all_runs: list[Packed | None]) -> list[Packed | None]:
    """Return the runs, with None for tracks that exceed the budget of RUN_BYTES, which is spent in order."""
    left, kept = RUN_BYTES, []
    for runs in all_runs:
        size = 0 if runs is None else runs.deflated
        kept.append(runs if size <= left else None)
        left -= size if size <= left else 0
    return kept


def _in_sevens(numbers: NDArray[np.int64]) -> Bytes:
    """Encode positive integers in bytes of seven bits, lowest first; the highest bit is set if more bytes follow.

    Examples
    --------
    >>> _in_sevens(np.array([5, 300]))
    array([  5, 172,   2], dtype=uint8)
    """
    sizes = np.ones(len(numbers), dtype=np.int64)
    for bits in range(7, 63, 7):
        sizes += numbers >> bits > 0
    at = np.cumsum(sizes) - sizes
    written = np.zeros(int(sizes.sum()), dtype=np.uint8)
    for place in range(int(sizes.max(initial=0))):
        here = sizes > place
        more = np.where(sizes[here] > place + 1, 128, 0)
        written[at[here] + place] = (numbers[here] >> 7 * place & 127) + more
    return written
