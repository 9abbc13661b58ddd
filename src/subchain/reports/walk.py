"""One walk over the data, block by block, that finds everything a page says about them; no table spans the data.

Shares of states and doubt go into bins: those of each track, and a few over all the data. Single positions are kept
where the plan says so. Of a long track these are stretches, one for each of the most frequent states: the stretch that
holds most of it so far takes the place of the one before; beside them its runs of equal states.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from subchain.data import Sequences
from subchain.reports.kernels import HIDDEN, add_to_bins, count_runs, look
from subchain.reports.runs import Packed, Runs
from subchain.reports.tracks import STRETCH, Track
from subchain.tasks.profiles import Numbers

Array = NDArray[np.float64]
Bytes = NDArray[np.uint8]

#: Bins over all the data.
WHOLE_BINS = 480
#: Classes of the probability of the best state.
CLASSES = 20


@dataclasses.dataclass
class Bins:
    """Sums over bins of equal width: marginals (n_bins, S), entropies and numbers of positions (n_bins,)."""

    shares: Array
    doubts: Array
    counts: Array

    @classmethod
    def empty(cls, n_bins: int, n_shown: int) -> Bins:
        return cls(np.zeros((n_bins, n_shown)), np.zeros(n_bins), np.zeros(n_bins))

    def mean_shares(self) -> Array:
        """Share of each state in each bin."""
        return self.shares / np.maximum(self.counts, 1.0)[:, None]

    def mean_doubts(self) -> Array:
        """Mean entropy of each bin."""
        return self.doubts / np.maximum(self.counts, 1.0)


@dataclasses.dataclass
class Stretch:
    """Neighbouring positions of a track: where it begins, its best states and their probabilities as bytes."""

    first: int
    best: Bytes
    chance: Bytes


@dataclasses.dataclass
class TrackPicture:
    """What was found along a track: its bins, single positions, and numbers (n_bins, D, [smallest, mean, largest]).

    `runs` are those of a track that is not kept whole, unless there are too many.
    """

    track: Track
    bins: Bins
    numbers: Array
    stretches: list[Stretch]
    runs: Packed | None


@dataclasses.dataclass
class Picture:
    """What was found in all the data.

    Attributes
    ----------
    tracks : the drawn sequences
    whole : bins over all the data
    runs, longest : number and greatest length of runs of each shown state, (S,)
    certainty : number of positions by the probability of their best state, (CLASSES,), from 0 to 1
    """

    tracks: list[TrackPicture]
    whole: Bins
    runs: NDArray[np.int64]
    longest: NDArray[np.int64]
    certainty: NDArray[np.int64]


class Walk:
    """Walks along blocks of marginals.

    Parameters
    ----------
    data : all sequences
    tracks : those to be drawn
    slot : (K,), where each state is shown; `HIDDEN` if it is not
    columns : the columns of numbers that are drawn
    """

    def __init__(self, data: Sequences, tracks: list[Track], slot: NDArray[np.uint8], columns: list[Numbers]) -> None:
        self.data, self.slot = data, slot
        self.n_shown = int((slot != HIDDEN).sum())
        self.columns = [column.column for column in columns]
        self.whole = Bins.empty(min(WHOLE_BINS, data.n_observations), self.n_shown)
        self.seen = [_Seen(track, self.n_shown, len(columns)) for track in tracks]
        # one more place for runs of states that are not shown
        self.runs, self.longest = np.zeros((2, HIDDEN + 1), dtype=np.int64)
        self.certainty = np.zeros(CLASSES, dtype=np.int64)

    def along(self, blocks: Iterator[tuple[int, Array]]) -> Picture:
        """Take in all blocks, which come in the order of the data."""
        run, offsets = np.array([-1, 0]), self.data.offsets
        for start, marginals in blocks:
            stop = start + len(marginals)
            best, chance = np.empty((2, len(marginals)), dtype=np.uint8)
            doubt = np.empty(len(marginals))
            look(marginals, self.slot, best, chance, doubt)
            begins = offsets[np.searchsorted(offsets, start) : np.searchsorted(offsets, stop)] - start
            count_runs(best, begins, run, self.runs, self.longest)
            self.certainty += np.bincount(chance.astype(np.int64) * CLASSES // 256, minlength=CLASSES)
            self._add(self.whole, marginals, doubt, start, self.data.n_observations)
            for seen in self.seen:
                first = max(start, seen.track.start)
                here = slice(first - start, min(stop, seen.track.start + seen.track.length) - start)
                if here.start >= here.stop:
                    continue
                inside = first - seen.track.start
                self._add(seen.bins, marginals[here], doubt[here], inside, seen.track.length)
                seen.keep(inside, best[here], chance[here])
                if self.columns:
                    seen.measure(inside, numbers_at(self.data, self.columns, first, start + here.stop))
        tracks = [seen.picture() for seen in self.seen]
        return Picture(tracks, self.whole, self.runs[: self.n_shown], self.longest[: self.n_shown], self.certainty)

    def _add(self, bins: Bins, marginals: Array, doubt: Array, first: int, length: int) -> None:
        add_to_bins(marginals, self.slot, doubt, first, length, bins.shares, bins.doubts, bins.counts)


def numbers_at(data: Sequences, columns: list[int], start: int, stop: int) -> Array:
    """Some columns of neighbouring positions as floating numbers, nan where missing, (n, D)."""
    values = data.values[start:stop]
    table = (values if values.ndim == 2 else values[:, None])[:, columns]
    if table.dtype.kind == "f":
        return np.asarray(table, dtype=np.float64)
    return np.where(table == -1, np.nan, table) if table.dtype.kind == "i" else table.astype(np.float64)


class _Seen:
    """A track while one walks along it."""

    def __init__(self, track: Track, n_shown: int, n_columns: int) -> None:
        self.track = track
        self.bins = Bins.empty(track.n_bins, n_shown)
        self.sums, self.known = np.zeros((2, track.n_bins, n_columns))
        self.smallest, self.largest = (np.full((track.n_bins, n_columns), value) for value in (np.inf, -np.inf))
        n_kept = track.length if track.is_whole else min(STRETCH, track.length)
        self.open = Stretch(0, np.zeros(n_kept, np.uint8), np.zeros(n_kept, np.uint8))
        self.filled = 0
        self.finest: dict[int, tuple[int, Stretch]] = {}
        self.beginning: Stretch | None = None
        self.runs = None if track.is_whole else Runs()

    def keep(self, first: int, best: Bytes, chance: Bytes) -> None:
        """Keep single positions: all of them, or those of stretches that are the best of their kind so far."""
        if self.runs is not None:
            self.runs.add(best)
        if not self.track.is_whole and not self.track.n_stretches:
            return
        taken = 0
        while taken < len(best):
            room = min(len(self.open.best) - self.filled, len(best) - taken)
            here, there = slice(self.filled, self.filled + room), slice(taken, taken + room)
            self.open.best[here], self.open.chance[here] = best[there], chance[there]
            self.filled += room
            taken += room
            if self.filled == len(self.open.best) and not self.track.is_whole:
                self._close(first + taken - self.filled)

    def _close(self, first: int) -> None:
        """A stretch is full: it stays if it is the first, or holds more of some state than any before."""
        done = Stretch(first, self.open.best.copy(), self.open.chance.copy())
        self.filled = 0
        if self.beginning is None:
            self.beginning = done
        counts = np.bincount(done.best, minlength=HIDDEN + 1)[:HIDDEN]
        for state in np.flatnonzero(counts):
            if counts[state] > self.finest.get(int(state), (0, done))[0]:
                self.finest[int(state)] = (int(counts[state]), done)

    def measure(self, first: int, numbers: Array) -> None:
        """Add numbers, (n, D), to smallest, mean and largest of the bins."""
        bins = (first + np.arange(len(numbers))) * self.track.n_bins // self.track.length
        begins = np.flatnonzero(np.diff(bins, prepend=-1))
        where = bins[begins]
        np.fmin.at(self.smallest, where, np.fmin.reduceat(numbers, begins, axis=0))
        np.fmax.at(self.largest, where, np.fmax.reduceat(numbers, begins, axis=0))
        known = ~np.isnan(numbers)
        self.sums[where] += np.add.reduceat(np.where(known, numbers, 0.0), begins, axis=0)
        self.known[where] += np.add.reduceat(known.astype(np.float64), begins, axis=0)

    def picture(self) -> TrackPicture:
        mean = np.where(self.known > 0, self.sums / np.maximum(self.known, 1.0), np.nan)
        nothing = self.known == 0
        bounds = (np.where(nothing, np.nan, bound) for bound in (self.smallest, self.largest))
        smallest, largest = bounds
        numbers = np.stack([smallest, mean, largest], axis=2)
        runs = None if self.runs is None else self.runs.packed()
        return TrackPicture(self.track, self.bins, numbers, self._stretches(), runs)

    def _stretches(self) -> list[Stretch]:
        if self.track.is_whole:
            return [self.open]
        wanted = {} if self.beginning is None else {self.beginning.first: self.beginning}
        frequent = np.argsort(-self.bins.shares.sum(axis=0), kind="stable")
        for state in frequent.tolist():
            if len(wanted) < self.track.n_stretches and state in self.finest:
                stretch = self.finest[state][1]
                wanted[stretch.first] = stretch
        return [wanted[first] for first in sorted(wanted)]
