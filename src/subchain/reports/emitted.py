"""Figures of emissions: a heat map of states by columns, and pairs of columns with an ellipse for each state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.reports import formatting
from subchain.reports.packing import Packing
from subchain.reports.scan import numbers_at
from subchain.reports.subject import Subject
from subchain.tasks.emission_table import covariances, emission_table, pair_order
from subchain.tasks.profiles import Numbers

Array = NDArray[np.float64]

#: Maximum number of columns of the heat map, and of columns to choose pairs from, with few states and with many.
MOST_COLUMNS, MOST_PAIRED, FEWER_PAIRED, MANY_STATES = 80, 12, 5, 60
#: Code of a missing number in a scatter plot.
NO_NUMBER = 65_535


def heat_map(subject: Subject) -> dict[str, Any]:
    """Return the heat map as JSON values; rows are the shown states, in the order of their numbers."""
    occupancy = np.zeros(subject.model.n_states_)
    occupancy[subject.shown] = subject.occupancy / max(subject.occupancy.sum(), np.finfo(float).tiny)
    table = emission_table(subject.profile, subject.shown, occupancy)
    n = len(table.labels)
    kept = slice(0, MOST_COLUMNS)
    return {
        "labels": table.labels[kept],
        "colours": _rounded(table.colours[:, kept]),
        "values": _rounded(table.values[:, kept]),
        "texts": [
            [formatting.mean_beside(value, spread) for value, spread in zip(*rows, strict=True)]
            for rows in zip(table.values[:, kept], table.spreads[:, kept], strict=True)
        ],
        "chances": table.are_chances,
        "symbols": table.has_symbols,
        "more": f"{formatting.several(n - MOST_COLUMNS, 'more column')} not shown" if n > MOST_COLUMNS else "",
    }


def pairs(subject: Subject, packing: Packing) -> dict[str, Any] | None:
    """Return columns, means and covariances of the states, and append points of the data; None for fewer than two."""
    profile, columns = subject.profile, []
    for place, part in enumerate(profile):
        has_spread = isinstance(part, Numbers) and not part.is_chance and part.spreads is not None
        if has_spread and part.column < subject.data.n_features:
            columns.append(place)
    if len(columns) < 2:
        return None
    columns = columns[: MOST_PAIRED if len(subject.shown) <= MANY_STATES else FEWER_PAIRED]
    parts = [part for part in (profile[place] for place in columns) if isinstance(part, Numbers)]
    joint = covariances(subject.model.emission_, profile)[np.ix_(subject.shown, np.array(columns), np.array(columns))]
    points = _points(subject, [part.column for part in parts])
    low, high = _range(points)
    packing.add("points", _quantised(points, low, high))
    packing.add("pointStates", subject.summary.best)
    first = pair_order(profile, columns, subject.shown, subject.model.state_occupancy_)[:2]
    return {
        "columns": [part.name for part in parts],
        "low": _rounded(low),
        "high": _rounded(high),
        "means": _rounded(np.column_stack([part.means[subject.shown] for part in parts])),
        "covariances": _rounded(joint),
        "first": sorted(columns.index(place) for place in first),
        "nPoints": len(points),
    }


def _points(subject: Subject, columns: list[int]) -> Array:
    """Return the numbers at the positions of the scatter plot, (P, D)."""
    at = subject.summary.positions
    return np.concatenate([numbers_at(subject.data, columns, int(first), int(first) + 1) for first in at])


def _range(points: Array) -> tuple[Array, Array]:
    """Return the smallest and the largest number of each column, (D,) each; 0 and 1 if there is none."""
    known = ~np.isnan(points)
    low = np.where(known, points, np.inf).min(axis=0)
    high = np.where(known, points, -np.inf).max(axis=0)
    is_known = low <= high
    low, high = np.where(is_known, low, 0.0), np.where(is_known, high, 1.0)
    return low, np.where(high > low, high, low + 1.0)


def _quantised(points: Array, low: Array, high: Array) -> NDArray[np.uint16]:
    scaled = np.rint((points - low) / (high - low) * (NO_NUMBER - 1))
    return np.where(np.isnan(scaled), NO_NUMBER, scaled).astype(np.uint16)


def _rounded(values: Array) -> list[Any]:
    """Return numbers with five significant digits as nested lists."""
    size = np.floor(np.log10(np.maximum(np.abs(values), 1e-300)))
    power = 10.0 ** (4 - np.clip(size, -290, 290))
    found: list[Any] = (np.rint(values * power) / power).tolist()
    return found
