"""Convergence of the run for a page: curves by iteration, events, and the end of every restart."""

from __future__ import annotations

import math
from typing import Any

from subchain.inference.run.journey import RunSummary
from subchain.reports import formatting
from subchain.reports.facts import ENDS
from subchain.reports.subject import Subject

#: Maximum number of points of a curve; longer ones are thinned.
MOST_POINTS = 2_000
#: Maximum number of events on a page; the last ones are kept.
MOST_EVENTS = 60
#: Restarts whose objectives differ by less, in nats, found the same solution.
SAME = 1.0


def convergence(subject: Subject) -> dict[str, Any]:
    """Return charts, events and restarts as JSON values."""
    trace = subject.model.trace_
    every = max(1, math.ceil(len(trace) / MOST_POINTS))
    kept = sorted({*range(0, len(trace), every), len(trace) - 1} if len(trace) else set())
    chains = {name: values for name, values in trace.measures.items() if name.startswith("log_joint.")}
    charts = []
    if chains:
        lines = [_line(f"chain {name.removeprefix('log_joint.')}", values, kept) for name, values in chains.items()]
        title, about = "Log joint probability of every chain", "Chains that converged vary around the same level."
        charts.append({"title": title, "axis": "log joint in nats", "lines": lines, "about": about})
    elif trace.known_objectives():
        lines = [_line("objective", trace.objective, kept)]
        about = "What the run maximises on the training data (in-sample). It is flat where the run has converged."
        charts.append({"title": "Objective of the run", "axis": "objective in nats", "lines": lines, "about": about})
    if trace.validation:
        lines = [_line("held out", trace.validation, kept)]
        title, about = "Held-out log likelihood", "Of the validation data, which were not fitted. Higher is better."
        charts.append({"title": title, "axis": "nats per observation", "lines": lines, "about": about})
    events = [{"iteration": event.iteration, "message": event.message} for event in trace.events[-MOST_EVENTS:]]
    return {
        "iterations": [index + 1 for index in kept],
        "seconds": [round(trace.seconds[index], 4) for index in kept] if len(trace.seconds) == len(trace) else [],
        "charts": charts,
        "lack": "" if charts else _lack(subject),
        "events": events,
        "n_events": len(trace.events),
        "restarts": restarts(subject.model.runs_),
    }


def restarts(runs: list[RunSummary]) -> dict[str, Any] | None:
    """Return every restart, the best first, and a sentence that compares them; None for a single run."""
    known = [(number, run) for number, run in enumerate(runs) if math.isfinite(run.objective)]
    if len(known) < 2:
        return None
    ranked = sorted(known, key=lambda entry: -entry[1].objective)
    best = ranked[0][1].objective
    near = sum(best - run.objective <= SAME for _, run in ranked)
    if near == 1:
        said = "No other restart comes within 1 nat of the best: more restarts may find a still better solution."
    else:
        said = f"{near} of {len(ranked)} restarts end within 1 nat of the best, which is the one that is kept."
    return {
        "runs": [
            {
                "number": number,
                "below": round(best - run.objective, 3),
                "objective": formatting.number(run.objective, 8),
                "end": ENDS.get(run.status, run.status),
                "iterations": run.iterations,
                "more": f"start: {run.start}" if run.start else "",
            }
            for number, run in ranked
        ],
        "verdict": said,
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
