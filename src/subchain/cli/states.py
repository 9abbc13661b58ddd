"""The states of a model as a printed table, and as JSON values."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from subchain.cli.output import Output
from subchain.engines.statistics import USED
from subchain.inference.run.restarts_table import NUMBERS, restarts_table
from subchain.tasks.numbers import dwell
from subchain.tasks.profiles import Numbers, Symbols, in_words, profile, shown

if TYPE_CHECKING:
    from subchain.models.hmm import HMM
    from subchain.tasks.profiles import Profile

#: Maximum number of symbols shown per state, and their minimum probability.
SYMBOLS, PROBABLE = 6, 0.02
#: Minimum probability of a 1 for which a column of 0 and 1 is shown.
OFTEN = 0.1
#: Maximum number of columns shown.
COLUMNS = 8
#: Descriptions of the statuses of a run.
ENDS = {
    "converged": "converged",
    "completed": "completed",
    "max_iter": "stopped by the limit of iterations",
    "time_limit": "stopped by the time limit",
    "stopped_improving": "stopped improving",
    "interrupted": "interrupted",
}
#: Maximum number of states in the printed table.
ROWS = 40


def profile_of(model: HMM) -> Profile:
    """Return the emissions of the states, column by column."""
    return profile(model.emission_, model.family_, model.vocabularies_, model.columns_)


def emits(parts: Profile, state: int) -> str:
    """Return the emissions of a state as one line of text."""
    if len(parts) == 1 and not isinstance(parts[0], Symbols):
        return in_words(parts[0], state)
    if all(isinstance(part, Numbers) and part.is_chance for part in parts):
        return _frequent(parts, state)
    texts = []
    for part in parts[:COLUMNS]:
        if isinstance(part, Symbols):
            chances = part.chances[state]
            likely = [s for s in part.top(state, SYMBOLS) if chances[s] >= PROBABLE] or [int(np.argmax(chances))]
            text = "  ".join(f"{shown(part.labels[s])} {chances[s]:.2f}" for s in likely)
            texts.append(text if len(parts) == 1 else f"{part.name}: {text}")
        else:
            texts.append(f"{part.name} {in_words(part, state)}")
    if len(parts) > COLUMNS:
        texts.append(f"… ({len(parts)} columns)")
    return ", ".join(texts)


def _frequent(parts: Profile, state: int) -> str:
    """Return the columns of 0 and 1 with a probability of at least OFTEN as text, the largest first."""
    chances = np.array([part.means[state] for part in parts if isinstance(part, Numbers)])
    often = [column for column in np.argsort(-chances, kind="stable") if chances[column] >= OFTEN]
    text = "  ".join(f"{parts[column].name} {chances[column]:.2f}" for column in often)
    return text or f"nothing above {OFTEN:g}"


def n_used(model: HMM) -> int:
    """Return the number of states in use."""
    return int((model.state_occupancy_ >= USED).sum())


def show_states(out: Output, model: HMM) -> None:
    """Print one row per state in use: occupancy, dwell time and emissions."""
    parts, share, lasts = profile_of(model), model.state_occupancy_, model.dwell_times_
    used = [state for state in np.argsort(-share, kind="stable") if share[state] >= USED]
    rows = [
        (model.state_names_[state], f"{share[state]:.1%}", dwell(lasts[state]), emits(parts, state))
        for state in used[:ROWS]
    ]
    out.line(f"\n{len(used)} of {model.n_states_} states are used")
    out.table(["state", "share", "lasts", "emits"], rows, right=(1, 2))
    if len(used) > ROWS:
        out.line(f"… and {len(used) - ROWS} more; --json has all")


def show_restarts(out: Output, model: HMM) -> None:
    """Print a table of all runs of a fit, if there were several."""
    if len(model.runs_) > 1:
        heads, rows = restarts_table(model.runs_)
        out.line()
        out.table(heads, rows, right=[number for number, head in enumerate(heads) if head in NUMBERS])


def summary(model: HMM) -> dict[str, Any]:
    """Return the results of a model as JSON values."""
    parts, share, lasts = profile_of(model), model.state_occupancy_, model.dwell_times_
    trace = model.trace_
    return {
        "n_states": model.n_states_,
        "n_states_used": n_used(model),
        "family": type(model.family_).__name__,
        "transition": _as_text(model.transition),
        "inference": _as_text(model.inference),
        "seed": model.random_state,
        "n_parameters": model.n_parameters_,
        "n_sequences": model.n_sequences_,
        "columns": model.columns_,
        "status": model.status_,
        "iterations": len(trace),
        "seconds": trace.seconds[-1] if trace.seconds else None,
        "runs": [dataclasses.asdict(run) for run in model.runs_],
        "objective": next(iter(reversed(trace.known_objectives())), None),
        "held_out_score": trace.validation[-1] if trace.validation else None,
        "states": [
            {
                "name": name,
                "share": share[state],
                "dwell_time": lasts[state],
                "emits": {part.name: _emission(part, state) for part in parts},
            }
            for state, name in enumerate(model.state_names_)
        ],
        "initial": model.initial_,
        "transition_matrix": model.transition_,
    }


def _as_text(setting: Any) -> str | None:
    return None if setting is None else str(setting)


def _emission(part: Any, state: int) -> dict[str, Any]:
    """Return the most probable symbols, or mean and standard deviation, of a state in one column."""
    if isinstance(part, Symbols):
        return {part.labels[s]: part.chances[state, s] for s in part.top(state, 4 * SYMBOLS)}
    return {"mean": part.means[state], "sd": None if part.spreads is None else part.spreads[state]}
