"""How sure a model is: of the states of positions, of its transition probabilities, and of its own draws."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from subchain.errors import InputError
from subchain.reports import words
from subchain.reports.subject import Subject
from subchain.reports.walk import CLASSES

#: Moves that are listed with their intervals, and numbers of a sampler that are listed.
MOVES, MOST_DRAWN = 16, 16
#: Sequences whose borders are drawn where all the data stand side by side.
MOST_BORDERS = 24


@dataclasses.dataclass(frozen=True)
class Move:
    """A transition probability and its interval."""

    from_: str
    to: str
    probability: float
    low: float
    high: float


def sequences(subject: Subject) -> list[tuple[str, int]]:
    """Names of sequences and where they begin among all positions; none if there are too many to tell apart."""
    data = subject.data
    there = np.flatnonzero(data.lengths)
    if len(there) > MOST_BORDERS:
        return []
    names = [str(number if data.names is None else data.names[number]) for number in there.tolist()]
    return list(zip(names, data.offsets[there].tolist(), strict=True))


def moves(subject: Subject) -> list[Move]:
    """The most frequent moves from one state to another, with their intervals."""
    found = subject.intervals
    if found is None or found.transition is None:
        return []
    frequent = subject.occupancy[:, None] * subject.transition
    np.fill_diagonal(frequent, 0.0)
    names = [subject.model.state_names_[state] for state in subject.shown]
    best = np.argsort(-frequent, axis=None, kind="stable")[:MOVES]
    rows, columns = np.unravel_index(best, frequent.shape)
    low, high = found.transition
    return [
        Move(names[i], names[j], *(float(table[i, j]) for table in (subject.transition, low, high)))
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
        if frequent[i, j] > 0.0
    ]


def certainty(subject: Subject) -> list[tuple[str, float, str]]:
    """Shares of positions by the probability of their most probable state: label, height from 0 to 1, share."""
    counts = subject.picture.certainty
    shares = counts / counts.sum()
    first = int(np.flatnonzero(counts)[0])
    labels = [f"{index / CLASSES:.2f} to {(index + 1) / CLASSES:.2f}" for index in range(first, CLASSES)]
    heights = (shares / shares.max()).tolist()[first:]
    return [
        (label, height, words.share(share))
        for label, height, share in zip(labels, heights, shares[first:], strict=True)
    ]


def drawn(subject: Subject) -> dict[str, Any] | None:
    """What the draws of a sampler are worth: a line for each number; None without draws."""
    samples = subject.model.samples_
    if samples is None:
        return None
    try:
        summary = samples.summary()
    except InputError:
        return None  # too few draws to say anything
    heads = list(summary.columns)
    rows = [
        (name, [words.number(float(summary[head][row])) for head in heads], float(summary["r_hat"][row]) > 1.05)
        for row, name in enumerate(summary.names[:MOST_DRAWN])
        if np.isfinite(summary["mean"][row])
    ]
    return {"heads": heads, "rows": rows, "n_chains": samples.n_chains, "n_draws": samples.n_draws}
