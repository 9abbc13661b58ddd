"""Summary at the top of a page, and its provenance: versions, seed and fingerprint of the data."""

from __future__ import annotations

import datetime
import importlib.metadata
import math
import os
import platform
import warnings
from typing import Any, NamedTuple

import numpy as np

import subchain
from subchain.data.standard_input import name_of
from subchain.models.hmm import HMM
from subchain.reports import formatting
from subchain.reports.subject import Subject

#: Descriptions of the statuses of a run.
ENDS = {
    "converged": "converged",
    "completed": "completed",
    "max_iter": "stopped at the largest number of iterations",
    "time_limit": "stopped at the time limit",
    "interrupted": "interrupted",
    "stopped_improving": "stopped when the held-out score no longer improved",
}
#: Packages whose versions can change results.
PACKAGES = ("numpy", "scipy", "numba")


class Fact(NamedTuple):
    """One entry of the summary, as text: label, value, explanation."""

    label: str
    value: str
    more: str = ""


def facts(subject: Subject) -> list[Fact]:
    """Return the entries of the summary."""
    model, data, summary = subject.model, subject.data, subject.summary
    n, trace = data.n_observations, model.trace_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        score = model.score(data, **subject.evidence) / n
    entropy = summary.whole.entropies.sum() / n / math.log(2)
    sure = summary.certainty[-2:].sum() / n
    found = [
        Fact("states in use", formatting.count(len(subject.shown)), f"of {model.n_states_} that the model has"),
        Fact("effective states", str(_effective(subject)), "hold 99 % of the positions"),
        Fact("observations", formatting.count(n), f"in {formatting.several(data.n_sequences, 'sequence')}"),
        Fact("log likelihood", formatting.number(score), _about_score(subject)),
        Fact("mean state entropy", formatting.bits(entropy), _certain(sure)),
    ]
    if trace.validation:
        found.insert(4, _held_out(trace.validation))
    if len(trace):
        time = formatting.seconds(trace.seconds[-1]) if trace.seconds else ""
        found.append(
            Fact("iterations", formatting.count(len(trace)), f"{ENDS.get(model.status_, model.status_)}, {time}")
        )
    return found


def _about_score(subject: Subject) -> str:
    """Say which data the score is of."""
    fitted = formatting.count(subject.model.statistics_.n_observations)
    what = {
        True: "in-sample: as many observations as the model was fitted to",
        False: f"not in-sample: the model was fitted to {fitted} observations, these are others or more",
        None: "of the data shown here; the parameters were given",
    }
    return f"per observation, {what[subject.is_training]}"


def _certain(sure: float) -> str:
    return f"0 bits is certain; {formatting.share(sure)} of positions have a state with at least 90 %"


def _held_out(scores: list[float]) -> Fact:
    best, last = int(np.argmax(scores)), formatting.number(scores[-1])
    more = "per observation of the validation data, not fitted, after the last iteration"
    if formatting.number(scores[best]) != last:
        more += f"; highest {formatting.number(scores[best])} after iteration {best + 1}"
    return Fact("held-out log likelihood", last, more)


def _effective(subject: Subject) -> int:
    """Return the smallest number of states that hold 99 % of the positions."""
    held = np.cumsum(np.sort(subject.occupancy)[::-1])
    return int(min(np.searchsorted(held, 0.99 * held[-1]) + 1, len(held)))


def title(x: Any, subject: Subject) -> str:
    """Return the name of the data: of their file, or of their only sequence; else what the page is about."""
    if isinstance(x, (str, os.PathLike)):
        return name_of(x)
    file, names = subject.data.file, subject.data.names
    if file is not None:
        return name_of(file.path)
    if names is not None and len(names) == 1:
        return str(names[0])
    return f"Hidden Markov model with {formatting.several(len(subject.shown), 'state')}"


def headline(subject: Subject) -> str:
    """Return one sentence that describes the page."""
    family = type(subject.model.family_)
    emits = getattr(family, "name", family.__name__).replace("_", " ")
    return (
        f"A hidden Markov model with {formatting.several(len(subject.shown), 'state')} and {emits} emissions, "
        f"applied to {formatting.several(subject.data.n_observations, 'observation')}."
    )


def left_out(subject: Subject) -> str:
    """Return a note about the states that are not shown; empty if all are."""
    hidden = subject.model.n_states_ - len(subject.shown)
    if not hidden:
        return ""
    unused = int((subject.trained_visits < 1.0).sum())
    lack = f"{'holds' if hidden == 1 else 'hold'} less than one position of the training data"
    why = lack if unused >= hidden else f"{'is' if hidden == 1 else 'are'} rarer than those shown, or {lack}"
    what = "1 state is left out: it" if hidden == 1 else f"{hidden} states are left out: they"
    return f"Of the model's {subject.model.n_states_} states, {what} {why}."


def origins(subject: Subject) -> list[Fact]:
    """Return versions, seed, and fingerprint of the data."""
    seed, data = subject.model.random_state, subject.data
    kind = f"{data.values.dtype}, {formatting.several(data.n_features, 'column')}"
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    return [
        Fact("subchain", subchain.__version__),
        Fact("with", f"Python {platform.python_version()}, {versions}"),
        Fact("seed", str(seed) if isinstance(seed, (int, np.integer)) else "none", _about_seed(subject.model)),
        Fact(
            "data",
            f"{formatting.several(data.n_observations, 'position')}, {kind}",
            f"fingerprint {data.fingerprint()}",
        ),
        Fact("made", datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")),
    ]


def _about_seed(model: HMM) -> str:
    if not isinstance(model.random_state, (int, np.integer)):
        return "no integer was given as random_state, so another fit may find other states"
    same = "the same data and versions" if isinstance(model.init, str) else "the same data, versions and start"
    return f"{same} give the same model"
