"""Convergence of the run for a page: curves by iteration, events, and the end of every restart."""

from __future__ import annotations

import math
from typing import Any

from subchain.reports import formatting
from subchain.reports.facts import ENDS
from subchain.reports.subject import Subject

#: Maximum number of points of a curve; longer ones are thinned.
MOST_POINTS = 2_000
#: Maximum number of events on a page; the last ones are kept.
MOST_EVENTS = 60


def convergence(subject: Subject) -> dict[str, Any]:
    """Return charts, events and restarts as JSON values."""
    trace = subject.model.trace_
    every = max(1, math.ceil(len(trace) / MOST_POINTS))
    kept = sorted({*range(0, len(trace), every), len(trace) - 1} if len(trace) else set())
    chains = {name: values for name, values in trace.measures.items() if name.startswith("log_joint.")}
    charts = []
    if chains:
        lines = [_line(f"chain {name.removeprefix('log_joint.')}", values, kept) for name, values in chains.items()]
        charts.append({"title": "Log joint of every chain", "lines": lines})
    elif trace.known_objectives():
        charts.append({"title": "Objective", "lines": [_line("objective", trace.objective, kept)]})
    if trace.validation:
        title = "Held-out log likelihood per observation"
        charts.append({"title": title, "lines": [_line("held out", trace.validation, kept)]})
    events = [{"iteration": event.iteration, "message": event.message} for event in trace.events[-MOST_EVENTS:]]
    runs = [
        (number, formatting.number(run.objective), ENDS.get(run.status, run.status), run.iterations)
        for number, run in enumerate(subject.model.runs_)
    ]
    return {
        "iterations": [index + 1 for index in kept],
        "seconds": [round(trace.seconds[index], 4) for index in kept] if len(trace.seconds) == len(trace) else [],
        "charts": charts,
        "lack": "" if charts else _lack(subject),
        "events": events,
        "n_events": len(trace.events),
        "runs": runs,
    }


def _lack(subject: Subject) -> str:
    """Return the reason why there are no curves."""
    if subject.model.n_batches_:
        return "This model was fitted batch by batch, without curves."
    if len(subject.model.trace_):
        return "This run computed no objective and no held-out score."
    return "The parameters of this model were given, not fitted."


def _line(name: str, values: list[float], kept: list[int]) -> dict[str, Any]:
    found = [values[index] if index < len(values) else math.nan for index in kept]
    return {"name": name, "values": [value if math.isfinite(value) else None for value in found]}
