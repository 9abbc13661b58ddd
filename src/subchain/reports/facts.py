"""The summary at the top of a page, and where it comes from: versions, the seed, and what tells the data."""

from __future__ import annotations

import datetime
import importlib.metadata
import math
import platform
import warnings
from typing import NamedTuple

import numpy as np

import subchain
from subchain.models.hmm import HMM
from subchain.reports import words
from subchain.reports.subject import Subject

#: What the ends of a run mean.
ENDS = {
    "converged": "converged",
    "max_iter": "stopped at the largest number of iterations",
    "time_limit": "stopped at the time limit",
    "interrupted": "interrupted",
    "stopped_improving": "stopped when the held-out score no longer improved",
}
#: Packages whose versions matter for results.
PACKAGES = ("numpy", "scipy", "numba")


class Fact(NamedTuple):
    """A number of the summary: what it is, what it is worth, and more about it."""

    label: str
    value: str
    more: str = ""


def facts(subject: Subject) -> list[Fact]:
    """The numbers of the summary."""
    model, data, picture = subject.model, subject.data, subject.picture
    n, trace = data.n_observations, model.trace_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        score = model.score(data, **subject.knowledge) / n
    doubt = picture.whole.doubts.sum() / n / math.log(2)
    sure = picture.certainty[-2:].sum() / n
    found = [
        Fact("states in use", words.count(len(subject.shown)), f"of {model.n_states_} that the model has"),
        Fact("effective states", str(_effective(subject)), "hold 99 % of the positions"),
        Fact("observations", words.count(n), f"in {words.several(data.n_sequences, 'sequence')}"),
        Fact("log likelihood", words.number(score), "per observation of the data shown here"),
        Fact("doubt about states", f"{doubt:.2g} bits", f"{words.share(sure)} of positions are at least 90 % sure"),
    ]
    if trace.validation:
        best = max(trace.validation)
        found.insert(4, Fact("held-out score", words.number(trace.validation[-1]), f"per observation; best {best:.5g}"))
    if len(trace):
        time = words.seconds(trace.seconds[-1]) if trace.seconds else ""
        found.append(Fact("iterations", words.count(len(trace)), f"{ENDS.get(model.status_, model.status_)}, {time}"))
    return found


def _effective(subject: Subject) -> int:
    held = np.cumsum(np.sort(subject.occupancy)[::-1])
    return int(min(np.searchsorted(held, 0.99 * held[-1]) + 1, len(held)))


def headline(subject: Subject) -> str:
    """The page in one sentence."""
    family = type(subject.model.family_)
    emits = getattr(family, "name", family.__name__).replace("_", " ")
    return (
        f"A hidden Markov model with {words.several(len(subject.shown), 'state')} and {emits} emissions, "
        f"seen along {words.several(subject.data.n_observations, 'observation')}."
    )


def left_out(subject: Subject) -> str:
    """A note about states that are not shown; empty if all are."""
    hidden = subject.model.n_states_ - len(subject.shown)
    if not hidden:
        return ""
    unused = int((subject.trained_visits < 1.0).sum())
    lack = f"{'holds' if hidden == 1 else 'hold'} less than one position of the training data"
    why = lack if unused >= hidden else f"{'is' if hidden == 1 else 'are'} rarer than those shown, or {lack}"
    what = "1 state is left out: it" if hidden == 1 else f"{hidden} states are left out: they"
    return f"Of the model's {subject.model.n_states_} states {what} {why}."


def origins(subject: Subject) -> list[Fact]:
    """Versions, seed and what the data are told by."""
    seed, data = subject.model.random_state, subject.data
    kind = f"{data.values.dtype}, {words.several(data.n_features, 'column')}"
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    return [
        Fact("subchain", subchain.__version__),
        Fact("with", f"Python {platform.python_version()}, {versions}"),
        Fact("seed", str(seed) if isinstance(seed, (int, np.integer)) else "none", _about_seed(subject.model)),
        Fact("data", f"{words.several(data.n_observations, 'position')}, {kind}", f"fingerprint {data.fingerprint()}"),
        Fact("made", datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")),
    ]


def _about_seed(model: HMM) -> str:
    if not isinstance(model.random_state, (int, np.integer)):
        return "no whole number was given as random_state, so another fit may find other states"
    same = "the same data and versions" if isinstance(model.init, str) else "the same data, versions and start"
    return f"{same} give the same model"
