"""One scan over the posterior marginals, block by block, that computes everything a page shows of the data.

Memory does not grow with the data. Occupancies and entropies are summed in bins: those of each track, and WHOLE_BINS
over all data. Single positions are kept according to the plan in `tracks`. For a long track these are stretches, one
for each of the most frequent states (the stretch that holds most positions of the state so far), and the runs of equal
states. Of a few thousand evenly spaced positions the best state is kept for scatter plots.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from subchain.checks.simulation import Starts
from subchain.checks.visits import Visits
from subchain.data import Sequences
from subchain.reports.kernels import HIDDEN, add_to_bins, best_states
from subchain.reports.runs import Packed, Runs
from subchain.reports.tracks import STRETCH, Track
from subchain.tasks.profiles import Numbers

Array = NDArray[np.float64]
Bytes = NDArray[np.uint8]

#: Number of bins over all data.
WHOLE_BINS = 480
#: Number of bins of the histogram of the best state's probability.
CLASSES = 20
#: Maximum number of positions in scatter plots.
MOST_POINTS = 2_000


@dataclasses.dataclass
class Bins:
    """Sums over bins of equal width.

    Attributes
    ----------
    shares : (n_bins, S) sums of the marginals of the shown states
    entropies : (n_bins,) sums of the entropies in nats
    counts : (n_bins,) numbers of positions
    """

    shares: Array
    entropies: Array
    counts: Array

    @classmethod
    def empty(cls, n_bins: int, n_shown: int) -> Bins:
        """Return bins with zero sums."""
        return cls(np.zeros((n_bins, n_shown)), np.zeros(n_bins), np.zeros(n_bins))

    def mean_shares(self) -> Array:
        """Return the occupancy of each state in each bin, (n_bins, S)."""
        return self.shares / np.maximum(self.counts, 1.0)[:, None]

    def mean_entropies(self) -> Array:
        """Return the mean entropy of each bin, (n_bins,)."""
        return self.entropies / np.maximum(self.counts, 1.0)


@dataclasses.dataclass
class Stretch:
    """Stretch of neighbouring positions of a track: first position, best states and their probabilities as bytes."""

    first: int
    best: Bytes
    probability: Bytes


@dataclasses.dataclass
class TrackSummary:
    """Results for one track.

    Attributes
    ----------
    track : the track
    bins : occupancies and entropies
    numbers : (n_bins, D, 3) smallest, mean and largest value of each drawn column
    stretches : single positions
    runs : runs of equal states of a track that is not kept whole; None if it is whole or there are too many
    """

    track: Track
    bins: Bins
    numbers: Array
    stretches: list[Stretch]
    runs: Packed | None


@dataclasses.dataclass
class DataSummary:
    """Results for all data.

    Attributes
    ----------
    tracks : the drawn sequences
    whole : bins over all data
    visits : visits of the best states, by their slots
    certainty : histogram of the best state's probability, (CLASSES,), from 0 to 1
    ranges : (D, 2) smallest and largest value of each drawn column in all data; nan if all are missing
    positions, best : (P,) evenly spaced flat positions, and slots of their best states
    starts : marginals where the pieces of simulations start
    """

    tracks: list[TrackSummary]
    whole: Bins
    visits: Visits
    certainty: NDArray[np.int64]
    ranges: Array
    positions: NDArray[np.int64]
    best: Bytes
    starts: Starts


class Scan:
    """Scan over blocks of posterior marginals.

    Parameters
    ----------
    data : all sequences
    tracks : the sequences to draw
    slot : (K,) index of each state among the shown ones, or `HIDDEN`
    columns : the drawn columns of numbers
    bounds : (P, 2) first and last + 1 flat positions of the pieces of simulations
    """

    def __init__(
        self,
        data: Sequences,
        tracks: list[Track],
        slot: NDArray[np.uint8],
        columns: list[Numbers],
        bounds: NDArray[np.int64],
    ) -> None:
        self.data, self.slot = data, slot
        self.n_shown = int((slot != HIDDEN).sum())
        self.columns = [column.column for column in columns]
        self.whole = Bins.empty(min(WHOLE_BINS, data.n_observations), self.n_shown)
        self.scanned = [_TrackScan(track, self.n_shown, len(columns)) for track in tracks]
        self.visits = Visits(data.offsets, HIDDEN + 1)
        self.starts = Starts(bounds, len(slot))
        self.certainty = np.zeros(CLASSES, dtype=np.int64)
        self.ranges = np.column_stack([np.full(len(columns), np.inf), np.full(len(columns), -np.inf)])
        n_points = min(MOST_POINTS, data.n_observations)
        self.positions = np.arange(n_points) * data.n_observations // n_points
        self.best = np.zeros(n_points, dtype=np.uint8)

    def run(self, blocks: Iterator[tuple[int, Array]]) -> DataSummary:
        """Return the summary of all blocks (first flat position, marginals (n, K)), given in the order of the data."""
        for start, marginals in blocks:
            stop = start + len(marginals)
            best, probability = np.empty((2, len(marginals)), dtype=np.uint8)
            entropy = np.empty(len(marginals))
            best_states(marginals, self.slot, best, probability, entropy)
            self.visits.add(start, best)
            self.starts.add(start, marginals)
            low, high = np.searchsorted(self.positions, [start, stop])
            self.best[low:high] = best[self.positions[low:high] - start]
            if self.columns:
                self._widen(numbers_at(self.data, self.columns, start, stop))
            self.certainty += np.bincount(probability.astype(np.int64) * CLASSES // 256, minlength=CLASSES)
            self._add(self.whole, marginals, entropy, start, self.data.n_observations)
            for scanned in self.scanned:
                first = max(start, scanned.track.start)
                here = slice(first - start, min(stop, scanned.track.start + scanned.track.length) - start)
                if here.start >= here.stop:
                    continue
                inside = first - scanned.track.start
                self._add(scanned.bins, marginals[here], entropy[here], inside, scanned.track.length)
                scanned.keep(inside, best[here], probability[here])
                if self.columns:
                    scanned.measure(inside, numbers_at(self.data, self.columns, first, start + here.stop))
        self.visits.close()
        tracks, ranges = [scanned.summary() for scanned in self.scanned], self.ranges
        ranges[ranges[:, 0] > ranges[:, 1]] = np.nan
        return DataSummary(
            tracks, self.whole, self.visits, self.certainty, ranges, self.positions, self.best, self.starts
        )

    def _widen(self, numbers: Array) -> None:
        """Widen the ranges of the drawn columns to hold some numbers, (n, D)."""
        self.ranges[:, 0] = np.fmin(self.ranges[:, 0], np.fmin.reduce(numbers, axis=0))
        self.ranges[:, 1] = np.fmax(self.ranges[:, 1], np.fmax.reduce(numbers, axis=0))

    def _add(self, bins: Bins, marginals: Array, entropy: Array, first: int, length: int) -> None:
        add_to_bins(marginals, self.slot, entropy, first, length, bins.shares, bins.entropies, bins.counts)


def numbers_at(data: Sequences, columns: list[int], start: int, stop: int) -> Array:
    """Return columns of the positions start … stop − 1 as floats, (n, D), nan where missing."""
    values = data.values[start:stop]
    table = (values if values.ndim == 2 else values[:, None])[:, columns]
    if table.dtype.kind == "f":
        return np.asarray(table, dtype=np.float64)
    return np.where(table == -1, np.nan, table) if table.dtype.kind == "i" else table.astype(np.float64)


class _TrackScan:
    """Accumulated results of one track during the scan."""

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

    def keep(self, first: int, best: Bytes, probability: Bytes) -> None:
        """Store single positions: all of them, or the stretches that hold most positions of some state so far."""
        if self.runs is not None:
            self.runs.add(best)
        if not self.track.is_whole and not self.track.n_stretches:
            return
        taken = 0
        while taken < len(best):
            room = min(len(self.open.best) - self.filled, len(best) - taken)
            here, there = slice(self.filled, self.filled + room), slice(taken, taken + room)
            self.open.best[here], self.open.probability[here] = best[there], probability[there]
            self.filled += room
            taken += room
            if self.filled == len(self.open.best) and not self.track.is_whole:
                self._close(first + taken - self.filled)

    def _close(self, first: int) -> None:
        """Finish a full stretch; keep it if it is the first or holds more positions of some state than all before."""
        done = Stretch(first, self.open.best.copy(), self.open.probability.copy())
        self.filled = 0
        if self.beginning is None:
            self.beginning = done
        counts = np.bincount(done.best, minlength=HIDDEN + 1)[:HIDDEN]
        for state in np.flatnonzero(counts):
            if counts[state] > self.finest.get(int(state), (0, done))[0]:
                self.finest[int(state)] = (int(counts[state]), done)

    def measure(self, first: int, numbers: Array) -> None:
        """Add the numbers of the positions from `first` on, (n, D), to minimum, mean and maximum of their bins."""
        bins = (first + np.arange(len(numbers))) * self.track.n_bins // self.track.length
        begins = np.flatnonzero(np.diff(bins, prepend=-1))
        where = bins[begins]
        np.fmin.at(self.smallest, where, np.fmin.reduceat(numbers, begins, axis=0))
        np.fmax.at(self.largest, where, np.fmax.reduceat(numbers, begins, axis=0))
        known = ~np.isnan(numbers)
        self.sums[where] += np.add.reduceat(np.where(known, numbers, 0.0), begins, axis=0)
        self.known[where] += np.add.reduceat(known.astype(np.float64), begins, axis=0)

    def summary(self) -> TrackSummary:
        """Return the results of the track."""
        mean = np.where(self.known > 0, self.sums / np.maximum(self.known, 1.0), np.nan)
        nothing = self.known == 0
        bounds = (np.where(nothing, np.nan, bound) for bound in (self.smallest, self.largest))
        smallest, largest = bounds
        numbers = np.stack([smallest, mean, largest], axis=2)
        runs = None if self.runs is None else self.runs.packed()
        return TrackSummary(self.track, self.bins, numbers, self._stretches(), runs)

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
