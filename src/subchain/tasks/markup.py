"""HTML tables of models for notebooks; the HTML has no scripts, and text from data is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from subchain.emissions import Parameters
from subchain.tasks.overview import used_states
from subchain.tasks.profiles import in_words, profile

#: Largest number of states and of emitted columns in a table.
MOST_STATES, MOST_COLUMNS = 20, 4


def settings_table(name: str, settings: dict[str, Any]) -> str:
    """Return a table of the settings of a model that is not fitted.

    Examples
    --------
    >>> "<tr><td>n_states</td><td>2</td></tr>" in settings_table("HMM", {"n_states": 2})
    True
    """
    rows = ((setting, repr(value)) for setting, value in settings.items())
    return _table(f"{name}, not fitted", ["setting", "value"], rows)


def states_table(model: Any) -> str:
    """Return a table of the states of a fitted model: occupancy, dwell time and emissions.

    Examples
    --------
    >>> from subchain import HMM, Categorical
    >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
    >>> "<td>0 1</td>" in states_table(HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission))
    True
    """
    statistics, emission = model.statistics_, model.emission_
    used = used_states(statistics.visits)
    parts = profile(emission, model.family_, model.vocabularies_, model.columns_)[:MOST_COLUMNS]
    frequent = sorted(used.tolist(), key=lambda state: -model.state_occupancy_[state])[:MOST_STATES]
    rows = (
        [
            model.state_names_[state],
            f"{100 * model.state_occupancy_[state]:.3g} %",
            f"{model.dwell_times_[state]:.3g}",
            *(in_words(part, state) for part in parts),
        ]
        for state in sorted(frequent)
    )
    emitted = [part.name for part in parts] if len(parts) > 1 else ["emits"]
    return _table(_caption(model, emission, len(used), len(frequent)), ["state", "share", "lasts", *emitted], rows)


def _caption(model: Any, emission: Parameters, n_used: int, n_shown: int) -> str:
    n_states, trace = emission.n_states, model.trace_
    said = [f"{type(model).__name__} with {n_states} states"]
    if n_used < n_states:
        said.append(f"{n_used} in use")
    if n_shown < n_used:
        said.append(f"the {n_shown} most frequent shown")
    if len(trace):
        said.append(f"{model.status_} after {len(trace)} iterations")
    return ", ".join(said)


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(entry)}</td>' for entry in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{body}</table>"
