"""How to make a model and its page again: Python that runs, and in comments what a model does not know of its fit."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np

import subchain
from subchain.core.components import Component
from subchain.emissions import Emission
from subchain.models.fitted import Fitted
from subchain.reports import words
from subchain.reports.positions import Positions
from subchain.reports.subject import Subject

#: What stands for a model that the run started from.
START = "start"
#: Longest line of a call; longer ones have a line for each setting.
LINE = 100
#: Entries of an array that is written down.
MOST_ENTRIES = 100


def call(subject: Subject, positions: Positions) -> str:
    """Python that makes the model and the page."""
    model = subject.model
    known = "".join(f", {name}={name}" for name, value in subject.knowledge.items() if value is not None)
    made = _made(model)
    page = f'subchain.report(model, x, "report.html"{known}{_settings(positions)})'
    lines = [*_imports(made), "", *_about_start(model.init), f"model = {made}", *_fits(model, known)]
    return "\n".join([*lines, *_about_data(subject), page])


def _about_data(subject: Subject) -> list[str]:
    """A model knows how much it has learned from, and so whether the page is about something else."""
    learned, shown = round(subject.model.statistics_.n_observations), subject.data.n_observations
    if not len(subject.model.trace_) or subject.model.n_batches_ > 1 or not learned or learned == shown:
        return []
    return [
        f"# It was fitted to {words.several(learned, 'position', 'positions')}; this page is about other data, of "
        f"{words.several(shown, 'position', 'positions')}, and x below is these."
    ]


def _fits(model: Any, known: str) -> list[str]:
    """The calls that the parameters come from."""
    steps = [f"model.fit(x{known})"] if len(model.trace_) else []
    if model.trace_.validation:
        steps.append("# A held-out score was computed during this fit: give validation=... as you did then.")
    n_batches = model.n_batches_ - bool(steps)  # a fit counts as one
    if n_batches:
        batches = words.several(n_batches, "batch", "batches")
        steps.append(f"# It has learned from {batches}: call model.partial_fit(batch) for each, in their order.")
    return steps or ["# Its parameters were given, not learned: HMM.from_parameters(initial, transition, emission)."]


def _imports(made: str) -> list[str]:
    names = sorted({name for name in re.findall(r"\b([A-Z]\w*)\(", made) if hasattr(subchain, name)})
    own = {kind.__name__: kind.__module__ for kind in Emission.__subclasses__() if kind.__name__ not in names}
    lines = ["import subchain", f"from subchain import {', '.join(names)}"]
    lines += ["from numpy import array"] if re.search(r"\barray\(", made) else []
    return lines + [f"from {own[name]} import {name}" for name in sorted(own) if f"{name}(" in made]


def _about_start(init: Any) -> list[str]:
    if not isinstance(init, Fitted):
        return []
    return [
        f"# The run started from the parameters of another model, called {START} here. Its settings were",
        *(f"#     {line}" for line in _made(init).splitlines()),
        "# This page does not know what it was fitted to, or where its file is: fit or load it first.",
    ]


def _settings(positions: Positions) -> str:
    given = {"step": positions.step, "unit": positions.unit or None, "offset": positions.offset}
    usual = {"step": 1.0, "unit": None, "offset": 0.0}
    return "".join(
        f", {name}={int(value) if isinstance(value, float) and value.is_integer() else value!r}"
        for name, value in given.items()
        if value != usual[name]
    )


def _made(component: Component) -> str:
    """The call that makes a component, with all settings that were given, however long."""
    usual = {name: parameter.default for name, parameter in inspect.signature(type(component)).parameters.items()}
    settings = {
        name: value
        for name, value in component.get_params(deep=False).items()
        if value is not usual.get(name)
        and not (np.isscalar(value) and value == usual.get(name))
        and not isinstance(value, np.random.Generator)  # of which nobody can write down the state
    }
    parts = [f"{name}={_told(name, value)}" for name, value in settings.items()]
    line = f"{type(component).__name__}({', '.join(parts)})"
    if len(line) <= LINE:
        return line
    indented = ("    " + part.replace("\n", "\n    ") for part in parts)
    return "\n".join([f"{type(component).__name__}(", *(f"{part}," for part in indented), ")"])


def _told(name: str, value: Any) -> str:
    if isinstance(value, Fitted):
        return START if name == "init" else repr(value)
    if isinstance(value, Component):
        return _made(value)
    if isinstance(value, np.ndarray):
        return f"array({value.tolist()!r})" if value.size <= MOST_ENTRIES else f"<array of shape {value.shape}>"
    return repr(value)
