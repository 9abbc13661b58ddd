"""Python script that reproduces a model and its page; comments name what a model does not store about its fit."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np

import subchain
from subchain.core.components import Component
from subchain.emissions import Emission
from subchain.models.fitted import Fitted
from subchain.reports import formatting
from subchain.reports.positions import Positions
from subchain.reports.subject import Subject

#: Name of the variable of the model that the run started from.
START = "start"
#: Maximum length of a call on one line; longer calls have one line per setting.
MAX_LINE = 100
#: Maximum number of entries of an array that is printed in full.
MAX_ENTRIES = 100


def script(subject: Subject, positions: Positions) -> str:
    """Return Python code that fits the model and writes the page."""
    model = subject.model
    known = "".join(f", {name}={name}" for name, value in subject.evidence.items() if value is not None)
    constructor = _constructor_call(model)
    page = f'subchain.report(model, x, "report.html"{known}{_position_settings(positions)})'
    lines = [
        *_imports(constructor),
        "",
        *_start_comments(model.init),
        f"model = {constructor}",
        *_fit_calls(model, known),
    ]
    return "\n".join([*lines, *_data_comments(subject), page])


def _data_comments(subject: Subject) -> list[str]:
    """Return comments if the page shows other data than the training data, recognised by the number of positions."""
    learned, shown = round(subject.model.statistics_.n_observations), subject.data.n_observations
    if not len(subject.model.trace_) or subject.model.n_batches_ > 1 or not learned or learned == shown:
        return []
    return [
        f"# It was fitted to {formatting.several(learned, 'position', 'positions')}; this page is about other data, of "
        f"{formatting.several(shown, 'position', 'positions')}, and x below is these."
    ]


def _fit_calls(model: Any, known: str) -> list[str]:
    """Return the calls and comments for the fit, the batches or the given parameters of the model."""
    steps = [f"model.fit(x{known})"] if len(model.trace_) else []
    if model.trace_.validation:
        steps.append("# A held-out score was computed during this fit: give the same validation=... again.")
    n_batches = model.n_batches_ - bool(steps)  # a fit counts as one
    if n_batches:
        batches = formatting.several(n_batches, "batch", "batches")
        steps.append(f"# It was fitted to {batches}: call model.partial_fit(batch) for each, in the same order.")
    return steps or ["# Its parameters were given, not fitted: HMM.from_parameters(initial, transition, emission)."]


def _imports(made: str) -> list[str]:
    names = sorted({name for name in re.findall(r"\b([A-Z]\w*)\(", made) if hasattr(subchain, name)})
    own = {kind.__name__: kind.__module__ for kind in Emission.__subclasses__() if kind.__name__ not in names}
    lines = ["import subchain", f"from subchain import {', '.join(names)}"]
    lines += ["from numpy import array"] if re.search(r"\barray\(", made) else []
    return lines + [f"from {own[name]} import {name}" for name in sorted(own) if f"{name}(" in made]


def _start_comments(init: Any) -> list[str]:
    if not isinstance(init, Fitted):
        return []
    return [
        f"# The run started from the parameters of another model, called {START} here. Its settings were",
        *(f"#     {line}" for line in _constructor_call(init).splitlines()),
        "# Its data and its file are not known here: fit or load it first.",
    ]


def _position_settings(positions: Positions) -> str:
    given = {"step": positions.step, "unit": positions.unit or None, "offset": positions.offset}
    default = {"step": 1.0, "unit": None, "offset": 0.0}
    return "".join(
        f", {name}={int(value) if isinstance(value, float) and value.is_integer() else value!r}"
        for name, value in given.items()
        if value != default[name]
    )


def _constructor_call(component: Component) -> str:
    """Return the constructor call of a component with all settings that differ from their defaults."""
    default = {name: parameter.default for name, parameter in inspect.signature(type(component)).parameters.items()}
    settings = {
        name: value
        for name, value in component.get_params(deep=False).items()
        if value is not default.get(name)
        and not (np.isscalar(value) and value == default.get(name))
        and not isinstance(value, np.random.Generator)  # its state cannot be printed as Python
    }
    parts = [f"{name}={_source(name, value)}" for name, value in settings.items()]
    line = f"{type(component).__name__}({', '.join(parts)})"
    if len(line) <= MAX_LINE:
        return line
    indented = ("    " + part.replace("\n", "\n    ") for part in parts)
    return "\n".join([f"{type(component).__name__}(", *(f"{part}," for part in indented), ")"])


def _source(name: str, value: Any) -> str:
    if isinstance(value, Fitted):
        return START if name == "init" else repr(value)
    if isinstance(value, Component):
        return _constructor_call(value)
    if isinstance(value, np.ndarray):
        return f"array({value.tolist()!r})" if value.size <= MAX_ENTRIES else f"<array of shape {value.shape}>"
    return repr(value)
