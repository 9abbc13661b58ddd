"""Uncertainty of a model: about the states, about its transition probabilities, and convergence of its draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from subchain.errors import InputError
from subchain.reports import formatting
from subchain.reports.subject import Subject

#: Maximum numbers of transitions with intervals, and of scalar variables of a sampler, on a page.
MAX_TRANSITIONS, MAX_VARIABLES = 16, 16
#: Maximum number of sequences whose boundaries are drawn along the data.
MAX_BORDERS = 24


def sequence_starts(subject: Subject) -> list[tuple[str, int]]:
    """Return names and first flat positions of the sequences; an empty list if there are more than MAX_BORDERS."""
    data = subject.data
    there = np.flatnonzero(data.lengths)
    if len(there) > MAX_BORDERS:
        return []
    names = [str(number if data.names is None else data.names[number]) for number in there.tolist()]
    return list(zip(names, data.offsets[there].tolist(), strict=True))


def frequent_transitions(subject: Subject) -> list[dict[str, Any]]:
    """Return the most frequent transitions between different states with credible intervals, as JSON values."""
    found = subject.intervals
    if found is None or found.transition is None:
        return []
    frequent = subject.occupancy[:, None] * subject.transition
    np.fill_diagonal(frequent, 0.0)
    best = np.argsort(-frequent, axis=None, kind="stable")[:MAX_TRANSITIONS]
    rows, columns = np.unravel_index(best, frequent.shape)
    tables = {"probability": subject.transition, "low": found.transition[0], "high": found.transition[1]}
    return [
        {"from": i, "to": j} | {name: float(f"{table[i, j]:.5g}") for name, table in tables.items()}
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
        if frequent[i, j] > 0.0
    ]


def certainty(subject: Subject) -> list[float]:
    """Return the shares of positions by the probability of their most probable state, in CLASSES from 0 to 1."""
    counts = subject.summary.certainty
    return (counts / counts.sum()).round(6).tolist()


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
