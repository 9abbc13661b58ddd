"""Figures of how well the model fits: dwell times against the geometric distribution, and a predictive check."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.checks.predictive import Distribution, PredictiveCheck, Statistic
from subchain.checks.simulation import SIMULATIONS
from subchain.reports import formatting
from subchain.reports.positions import Positions
from subchain.reports.subject import Subject
from subchain.tasks.profiles import Numbers, shown

Array = NDArray[np.float64]

#: Maximum numbers of states with dwell times, of drawn statistics and of drawn distributions.
MOST_STATES, MOST_STATISTICS, MOST_DISTRIBUTIONS = 48, 24, 24


def dwelling(subject: Subject, positions: Positions) -> dict[str, Any]:
    """Return the dwell times of the most frequent states as JSON values, with a sentence that sums them up."""
    frequent = np.sort(np.argsort(-subject.occupancy, kind="stable")[:MOST_STATES])
    states = []
    for slot in frequent.tolist():
        found = subject.dwell_times[slot]
        implied = math.inf if found.stay >= 1.0 else 1.0 / (1.0 - found.stay)
        states.append(
            {
                "slot": slot,
                "lengths": found.lengths.tolist(),
                "observed": _known(found.observed),
                "geometric": _known(found.geometric),
                "low": _known(found.low),
                "high": _known(found.high),
                "far": found.is_far,
                "visits": found.n_ended + found.n_cut,
                "text": _visits(found.n_ended, found.n_cut),
                "means": f"mean {_mean(found.mean, positions)}, model {_mean(implied, positions)}",
            }
        )
    hidden = len(subject.shown) - len(frequent)
    more = f"The {formatting.several(hidden, 'rarest state is', 'rarest states are')} not drawn." if hidden else ""
    return {"states": states, "verdict": _dwell_verdict(subject), "more": more}


def _visits(ended: int, cut: int) -> str:
    if not ended + cut:
        return "no visits"
    return formatting.several(ended + cut, "visit") + (f", {formatting.count(cut)} cut off" if cut else "")


def _mean(n: float, positions: Positions) -> str:
    if math.isinf(n):
        return "never left"
    return formatting.number(n, 3) if positions.are_plain else positions.length(n)


def _dwell_verdict(subject: Subject) -> str:
    found = [one.is_far for one in subject.dwell_times]
    far, known = found.count(True), len(found) - found.count(None)
    if not known:
        return "No state has the ten ended visits that a comparison needs."
    of = f"of {formatting.several(known, 'state')} with enough visits"
    if not far:
        return f"None {of} is far outside the simulations."
    names = [subject.names[slot] for slot, is_far in enumerate(found) if is_far]
    listed = ", ".join(names[:8]) + (" and others" if far > 8 else "")
    return f"{formatting.count(far)} {of} {'is' if far == 1 else 'are'} far outside the simulations: {listed}."


def about_simulations(subject: Subject) -> str:
    """Say what is compared with what."""
    found = subject.check
    size = f"{formatting.count(found.n_positions)} positions"
    what = f"all {size}" if found.is_whole else f"{size} of the data, in evenly spaced pieces,"
    known = (
        ""
        if all(value is None for value in subject.evidence.values())
        else (" Simulations know nothing of the evidence about states that was given for this page.")
    )
    return (
        f"{what[0].upper()}{what[1:]} are compared with {SIMULATIONS} data sets of the same size, simulated from the "
        f"fitted parameters; the uncertainty of these is left out.{known}"
    )


def predictive(subject: Subject) -> dict[str, Any]:
    """Return the predictive check as JSON values, with a sentence that sums it up."""
    found = subject.check
    ranked = sorted(found.statistics, key=lambda one: -abs(one.deviation))
    drawn = [
        each
        for part, each in zip(subject.profile, found.distributions, strict=True)
        if not (isinstance(part, Numbers) and part.is_chance)
    ]
    return {
        "statistics": [_statistic(one) for one in ranked],
        "drawn": MOST_STATISTICS,
        "distributions": [_distribution(one) for one in drawn[:MOST_DISTRIBUTIONS]],
        "verdict": _verdict(found),
    }


def _verdict(found: PredictiveCheck) -> str:
    n, far = len(found.statistics), found.far
    if not far:
        return f"None of {formatting.several(n, 'statistic')} is far outside what the model simulates."
    listed = "; ".join(_full_name(one) for one in far[:4]) + (" and others" if len(far) > 4 else "")
    return (
        f"{formatting.count(len(far))} of {formatting.several(n, 'statistic')} "
        f"{'is' if len(far) == 1 else 'are'} far outside what the model simulates: {listed}."
    )


def _full_name(one: Statistic) -> str:
    return f"{one.name} of {one.column}" if one.column else one.name


def _statistic(one: Statistic) -> dict[str, Any]:
    low, high = one.interval
    return {
        "name": _full_name(one),
        "observed": float(f"{one.observed:.6g}"),
        "simulated": [float(f"{value:.4g}") for value in np.sort(one.simulated)],
        "low": float(f"{low:.6g}"),
        "high": float(f"{high:.6g}"),
        "deviation": round(one.deviation, 2) if math.isfinite(one.deviation) else None,
        "far": one.is_far,
        "text": f"data {formatting.number(one.observed, 3)}, "
        f"simulated {formatting.number(low, 3)} to {formatting.number(high, 3)}",
    }


def _distribution(one: Distribution) -> dict[str, Any]:
    return {
        "column": one.column,
        "labels": [shown(label) for label in one.labels],
        "edges": [float(f"{edge:.6g}") for edge in one.edges],
        "observed": _known(one.observed),
        "low": _known(one.low),
        "high": _known(one.high),
    }


def _known(values: Array) -> list[float | None]:
    """Return numbers with four significant digits, None for those that are not known."""
    return [float(f"{value:.4g}") if math.isfinite(value) else None for value in values.tolist()]
