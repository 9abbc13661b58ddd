"""Cards of the states: occupancy, dwell time, emissions, occurrence along the data, previous and next states."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from subchain.reports import formatting
from subchain.reports.positions import Positions
from subchain.reports.subject import Subject
from subchain.reports.uncertainty import sequence_starts
from subchain.tasks.profiles import Numbers, Symbols, shown

Array = NDArray[np.float64]

#: Maximum numbers of neighbouring states and of columns on a card.
NEIGHBOURS, MOST_COLUMNS = 3, 12
#: Maximum length of a column name on a card.
LONGEST_NAME = 18
#: Symbols with smaller probabilities are left out, except for the first three.
NEGLIGIBLE = 0.005
#: Width and height of the curve along the data in SVG units, and its number of points.
WIDTH, HEIGHT, POINTS = 240, 40, 120


@dataclasses.dataclass(frozen=True)
class Bar:
    """Bar of a symbol's probability or a column's mean; coordinates are fractions of the available width.

    Attributes
    ----------
    label, name : shortened name for the card, and full name
    value : the number as text
    at : coordinate of the number
    low, high : coordinates of mean ∓ standard deviation; None if there is none
    from_, to : coordinates of the credible interval; None if there is none
    interval : the credible interval as text
    """

    label: str
    name: str
    value: str
    at: float
    low: float | None = None
    high: float | None = None
    from_: float | None = None
    to: float | None = None
    interval: str = ""


@dataclasses.dataclass(frozen=True)
class Emitted:
    """Emissions of a state in one column of symbols, or in all columns of numbers of one kind."""

    title: str
    is_symbols: bool
    bars: list[Bar]
    more: str = ""


@dataclasses.dataclass(frozen=True)
class Changes:
    """Counted changes of state into or out of a state.

    Attributes
    ----------
    others : slot, name and percentage of the most frequent other states
    number : how many changes there are, as text
    lack : what is said if there are none
    """

    others: list[tuple[int, str, str]]
    number: str
    lack: str


@dataclasses.dataclass(frozen=True)
class Card:
    """Contents of the card of one state; texts are formatted."""

    slot: int
    number: int
    name: str
    occupancy: str
    dwell: str
    runs: str
    emitted: list[Emitted]
    line: str
    entered: Changes
    left: Changes


def cards(subject: Subject, positions: Positions) -> list[Card]:
    """Return one card for each shown state, in the order of the states."""
    shares = subject.summary.whole.mean_shares()
    return [_card(subject, positions, slot, shares[:, slot]) for slot in range(len(subject.shown))]


def _card(subject: Subject, positions: Positions, slot: int, shares: Array) -> Card:
    state, dwell = int(subject.shown[slot]), float(subject.model.dwell_times_[subject.shown[slot]])
    number, longest = (int(counts[slot]) for counts in subject.summary.visits.totals())
    visits = subject.occupancy[slot] * subject.data.n_observations
    seen = f"{formatting.several(number, 'visit')}" if number else "never the most probable state"
    if number:
        seen += f", longest {formatting.count(longest) if positions.are_plain else positions.length(longest)}"
    never = "never left: the model gives it no way out" if math.isinf(dwell) else "never left in these data"
    return Card(
        slot=slot,
        number=state,
        name=subject.names[slot],
        occupancy=f"{formatting.share(subject.occupancy[slot])} · {formatting.count(visits)} positions",
        dwell=_dwell(dwell, positions),
        runs=seen,
        emitted=list(_emitted(subject, slot)),
        line=_line(shares),
        entered=_changes(subject.changes[:, slot], subject.names, "never entered from another state in these data"),
        left=_changes(subject.changes[slot], subject.names, never),
    )


def _dwell(n: float, positions: Positions) -> str:
    """Return a mean dwell time of `n` positions by the model as text."""
    return "for ever: never left" if math.isinf(n) else f"{positions.several(n)} by the model"


def _changes(counts: NDArray[np.int64], names: list[str], lack: str) -> Changes:
    """Return the most frequent states before or after a state, given the numbers of changes, (S,)."""
    total = int(counts.sum())
    best = np.argsort(-counts, kind="stable")[:NEIGHBOURS]
    others = [(int(slot), names[slot], formatting.share(counts[slot] / total)) for slot in best if counts[slot]]
    return Changes(others, formatting.count(total), lack if not total else "")


def _emitted(subject: Subject, slot: int) -> Iterator[Emitted]:
    state, place = int(subject.shown[slot]), 0
    found, bounds = subject.intervals, []
    for part in subject.profile:
        width = min(subject.n_symbols, len(part.labels)) if isinstance(part, Symbols) else 1
        here = slice(place, place + width)
        bounds.append(None if found is None or found.emission is None else found.emission[:, slot, here])
        place += width
    described = list(zip(subject.profile, bounds, strict=True))
    for part, bound in described:
        if isinstance(part, Symbols):
            title = f"{part.name}: most probable symbols" if len(described) > 1 else "most probable symbols"
            yield Emitted(title, True, _symbols(part, state, subject.n_symbols, bound))
    numbers = [(part, bound) for part, bound in described if isinstance(part, Numbers)]
    for title, kind in groupby(numbers, key=lambda entry: _caption(entry[0])):
        columns = list(kind)
        bars = [_number(part, state, subject.shown, bound) for part, bound in columns[:MOST_COLUMNS]]
        hidden = len(columns) - MOST_COLUMNS
        yield Emitted(title, False, bars, f"and {formatting.several(hidden, 'more column')}" if hidden > 0 else "")


def _caption(part: Numbers) -> str:
    """Return the caption of a column of numbers."""
    if part.is_chance:
        return "share of positions where present"
    return "mean" if part.spreads is None else "mean ± standard deviation"


def _symbols(part: Symbols, state: int, n: int, bound: Array | None) -> list[Bar]:
    top = part.top(state, n)
    chances = part.chances[state, top]
    bars = []
    for index, (symbol, chance) in enumerate(zip(top, chances, strict=True)):
        if chance < NEGLIGIBLE and index >= 3:
            break
        low, high = (None, None) if bound is None else bound[:, index].tolist()
        text = "" if low is None or high is None else f"95 % of {formatting.share(low)} to {formatting.share(high)}"
        scale = chances[0] if bound is None else max(chances[0], bound[1, : len(chances)].max())
        low, high = (None if edge is None else edge / scale for edge in (low, high))
        label = part.labels[symbol]
        bars.append(
            Bar(shown(label), label, formatting.share(chance), chance / scale, from_=low, to=high, interval=text)
        )
    return bars


def _number(part: Numbers, state: int, states: NDArray[np.int64], bound: Array | None) -> Bar:
    """Return the bar of a column's mean, on the scale of all shown states."""
    means = part.means[states]
    spreads = np.zeros_like(means) if part.spreads is None else part.spreads[states]
    least, most = float((means - 1.2 * spreads).min()), float((means + 1.2 * spreads).max())
    if part.is_chance:
        least, most = 0.0, 1.0
    width = most - least or 1.0

    def at(value: float) -> float:
        return float(np.clip((value - least) / width, 0.0, 1.0))

    mean = float(part.means[state])
    spread = None if part.spreads is None else float(part.spreads[state])
    as_text = formatting.share if part.is_chance else formatting.number
    value = as_text(mean) if spread is None else formatting.with_spread(mean, spread)
    low, high = (None, None) if spread is None else (at(mean - spread), at(mean + spread))
    from_, to = (None, None) if bound is None else (at(float(bound[0, 0])), at(float(bound[1, 0])))
    text = "" if bound is None else f"95 % of {as_text(float(bound[0, 0]))} to {as_text(float(bound[1, 0]))}"
    return Bar(formatting.shortened(part.name, LONGEST_NAME), part.name, value, at(mean), low, high, from_, to, text)


def borders(subject: Subject) -> str:
    """Return the SVG path of marks between sequences along the data; empty for one sequence or too many."""
    starts = [start for _, start in sequence_starts(subject)[1:]]
    return "".join(f"M{start / subject.data.n_observations * WIDTH:.1f} 0V{HEIGHT}" for start in starts)


def _line(shares: Array) -> str:
    """Return the SVG path of a filled curve of occupancies, (n_bins,), scaled to the largest one."""
    edges = np.unique(np.arange(POINTS) * len(shares) // POINTS)
    pooled = np.add.reduceat(shares, edges) / np.diff(edges, append=len(shares))
    if pooled.max() <= 0.0:
        return ""
    across = (np.arange(len(pooled)) + 0.5) * WIDTH / len(pooled)
    height = HEIGHT - pooled / pooled.max() * (HEIGHT - 2)
    points = "L".join(f"{x:.0f} {y:.0f}" for x, y in zip(across, height, strict=True))
    return f"M0 {HEIGHT}V{height[0]:.0f}L{points}H{WIDTH}V{HEIGHT}Z"
