"""Uncertainty of a model: about the states, about its transition probabilities, and convergence of its draws."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from subchain.errors import InputError
from subchain.reports import formatting
from subchain.reports.scan import CLASSES
from subchain.reports.subject import Subject

#: Maximum numbers of transitions with intervals, and of scalar variables of a sampler, on a page.
MAX_TRANSITIONS, MAX_VARIABLES = 16, 16
#: Maximum number of sequences whose boundaries are drawn along the data.
MAX_BORDERS = 24


@dataclasses.dataclass(frozen=True)
class FrequentTransition:
    """Transition probability with its credible interval."""

    from_: str
    to: str
    probability: float
    low: float
    high: float


def sequence_starts(subject: Subject) -> list[tuple[str, int]]:
    """Return names and first flat positions of the sequences; an empty list if there are more than MAX_BORDERS."""
    data = subject.data
    there = np.flatnonzero(data.lengths)
    if len(there) > MAX_BORDERS:
        return []
    names = [str(number if data.names is None else data.names[number]) for number in there.tolist()]
    return list(zip(names, data.offsets[there].tolist(), strict=True))


def frequent_transitions(subject: Subject) -> list[FrequentTransition]:
    """Return the most frequent transitions between different states, with their credible intervals."""
    found = subject.intervals
    if found is None or found.transition is None:
        return []
    frequent = subject.occupancy[:, None] * subject.transition
    np.fill_diagonal(frequent, 0.0)
    names = [subject.model.state_names_[state] for state in subject.shown]
    best = np.argsort(-frequent, axis=None, kind="stable")[:MAX_TRANSITIONS]
    rows, columns = np.unravel_index(best, frequent.shape)
    low, high = found.transition
    return [
        FrequentTransition(names[i], names[j], *(float(table[i, j]) for table in (subject.transition, low, high)))
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
        if frequent[i, j] > 0.0
    ]


def certainty(subject: Subject) -> list[tuple[str, float, str]]:
    """Return the histogram of the probability of the most probable state: label, height from 0 to 1, percentage."""
    counts = subject.summary.certainty
    shares = counts / counts.sum()
    first = int(np.flatnonzero(counts)[0])
    labels = [f"{index / CLASSES:.2f} to {(index + 1) / CLASSES:.2f}" for index in range(first, CLASSES)]
    heights = (shares / shares.max()).tolist()[first:]
    return [
        (label, height, formatting.share(share))
        for label, height, share in zip(labels, heights, shares[first:], strict=True)
    ]


def sampler_summary(subject: Subject) -> dict[str, Any] | None:
    """Return convergence diagnostics of a sampler's draws, one row per scalar variable; None without draws."""
    samples = subject.model.samples_
    if samples is None:
        return None
    try:
        summary = samples.summary()
    except InputError:
        return None  # too few draws for diagnostics
    heads = list(summary.columns)
    rows = [
        (name, [formatting.number(float(summary[head][row])) for head in heads], float(summary["r_hat"][row]) > 1.05)
        for row, name in enumerate(summary.names[:MAX_VARIABLES])
        if np.isfinite(summary["mean"][row])
    ]
    return {"heads": heads, "rows": rows, "n_chains": samples.n_chains, "n_draws": samples.n_draws}
