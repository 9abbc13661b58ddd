"""Tracks of a page as arrays of bytes: occupancies per bin, runs, and single positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.reports.packing import Packing, as_bytes
from subchain.reports.runs import Packed, affordable
from subchain.reports.scan import numbers_at
from subchain.reports.subject import Subject
from subchain.tasks.profiles import shown

Array = NDArray[np.float64]

#: Codes of missing numbers and symbols.
NO_NUMBER, NO_SYMBOL = 255, 65_535
#: Fractions of the smallest and of the largest values that may lie outside the drawn range.
OUTLIERS = 0.002
#: Everything is drawn if the range without outliers is this share of the range with them.
CLOSE = 0.6


def timeline(subject: Subject, packing: Packing) -> dict[str, Any]:
    """Return a description of the tracks as JSON values, and append their arrays to `packing`."""
    tracks, n_shown = subject.summary.tracks, len(subject.shown)
    most = math.log(max(n_shown, 2))
    packing.add("shares", as_bytes(np.concatenate([track.bins.mean_shares() for track in tracks]).T))
    packing.add("doubts", as_bytes(np.concatenate([track.bins.mean_entropies() for track in tracks]), most))
    pieces = [stretch for track in tracks for stretch in track.stretches]
    for name, field in (("best", "best"), ("chance", "probability")):
        parts = [getattr(stretch, field) for stretch in pieces]
        packing.add(name, np.concatenate(parts) if parts else np.zeros(0, np.uint8))
    runs = affordable([track.runs for track in tracks])
    for name in Packed._fields:
        parts = [getattr(part, name) for part in runs if part is not None]
        packing.add(f"run{name.capitalize()}", np.concatenate(parts) if parts else np.zeros(0, np.uint8))
    return {
        "tracks": [
            {
                "name": shown(track.track.name),
                "length": track.track.length,
                "bins": track.track.n_bins,
                "whole": track.track.is_whole,
                "stretches": [[stretch.first, len(stretch.best)] for stretch in track.stretches],
                "runs": 0 if part is None else len(part.states),
            }
            for track, part in zip(tracks, runs, strict=True)
        ],
        "columns": _numbers(subject, packing),
        "symbols": _symbols(subject, packing),
        "mostDoubt": most / math.log(2),
        "nSequences": subject.data.n_sequences,
    }


def _spans(subject: Subject) -> list[tuple[int, int]]:
    """Return first and last + 1 flat positions of all stretches with single positions."""
    return [
        (track.track.start + stretch.first, track.track.start + stretch.first + len(stretch.best))
        for track in subject.summary.tracks
        for stretch in track.stretches
    ]


def _numbers(subject: Subject, packing: Packing) -> list[dict[str, Any]]:
    """Append the numbers of bins and single positions to `packing`; return names and drawn ranges of the columns."""
    if not subject.drawn:
        return []
    bins = np.concatenate([track.numbers for track in subject.summary.tracks])
    columns = [part.column for part in subject.drawn]
    singles = [numbers_at(subject.data, columns, *span) for span in _spans(subject)]
    described, low, high = [], [], []
    for index, part in enumerate(subject.drawn):
        least, most = (0.0, 1.0) if part.is_chance else _bounds(bins[:, index])
        low.append(least)
        high.append(most)
        true = [None if np.isnan(edge) else float(edge) for edge in subject.summary.ranges[index]]
        described.append({"name": part.name, "low": least, "high": most, "range": true, "strip": part.is_chance})
    lows, highs = np.array(low), np.array(high)
    packing.add("binNumbers", _quantised(bins, lows[:, None], highs[:, None]))
    packing.add("numbers", _quantised(np.concatenate(singles) if singles else np.zeros((0, len(columns))), lows, highs))
    return described


def _bounds(bins: Array) -> tuple[float, float]:
    """Return the smallest and the largest drawn value, without the OUTLIERS on both sides."""
    least, most = bins[:, 0][~np.isnan(bins[:, 0])], bins[:, 2][~np.isnan(bins[:, 2])]
    if not len(least):
        return 0.0, 1.0
    low, high = float(np.quantile(least, OUTLIERS)), float(np.quantile(most, 1.0 - OUTLIERS))
    whole = float(least.min()), float(most.max())
    if high - low > CLOSE * (whole[1] - whole[0]):
        low, high = whole
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _quantised(values: Array, low: Array, high: Array) -> NDArray[np.uint8]:
    """Return numbers between low and high as bytes 0 … 254; 255 for missing ones."""
    inside = np.clip((values - low) / (high - low), 0.0, 1.0)
    return np.where(np.isnan(inside), NO_NUMBER, np.rint(np.nan_to_num(inside) * 254.0)).astype(np.uint8)


def _symbols(subject: Subject, packing: Packing) -> list[str] | None:
    """Append the symbols at single positions to `packing` as indices of labels, and return the labels."""
    part = subject.symbols
    if part is None or part.column >= subject.data.n_features:
        return None
    singles = [numbers_at(subject.data, [part.column], *span)[:, 0] for span in _spans(subject)]
    codes = np.nan_to_num(np.concatenate(singles) if singles else np.zeros(0), nan=-1.0).astype(np.int64)
    found, places = np.unique(codes, return_inverse=True)
    labels = ["" if code < 0 else shown(part.labels[code]) for code in found[:NO_SYMBOL]]
    packing.add("symbols", np.where(codes < 0, NO_SYMBOL, np.minimum(places, NO_SYMBOL)).astype(np.uint16))
    return labels
