"""The states of a model as a table that people read, and as facts for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from subchain.cli.conversation import Conversation
from subchain.tasks.profiles import Numbers, Symbols, in_words, profile, shown

if TYPE_CHECKING:
    from subchain.models.hmm import HMM
    from subchain.tasks.profiles import Profile

#: Symbols of a state that are named, and the least probability for it.
SYMBOLS, PROBABLE = 6, 0.02
#: Columns of 0 and 1 that are named, by their probability of a 1.
OFTEN = 0.1
#: Columns of numbers that are named.
COLUMNS = 8
#: States with a smaller share of the positions count as not used.
USED = 1e-3
#: How runs end.
ENDS = {
    "converged": "converged",
    "max_iter": "stopped by the limit of iterations",
    "time_limit": "stopped by the time limit",
    "stopped_improving": "stopped improving",
    "interrupted": "interrupted",
}
#: States of a table for people.
ROWS = 40


def profile_of(model: HMM) -> Profile:
    """What the states emit, column by column."""
    return profile(model.emission_, model.family_, model.vocabularies_, model.columns_)


def emits(parts: Profile, state: int) -> str:
    """What a state emits, on one line."""
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
    """Columns of 0 and 1 that are often 1, the most frequent first."""
    chances = np.array([part.means[state] for part in parts if isinstance(part, Numbers)])
    often = [column for column in np.argsort(-chances, kind="stable") if chances[column] >= OFTEN]
    text = "  ".join(f"{parts[column].name} {chances[column]:.2f}" for column in often)
    return text or f"nothing above {OFTEN:g}"


def n_used(model: HMM) -> int:
    """How many states are used."""
    return int((model.state_occupancy_ >= USED).sum())


def show_states(talk: Conversation, model: HMM) -> None:
    """A row a state: its share of the positions, how long it lasts, what it emits; states not used are left out."""
    parts, share, lasts = profile_of(model), model.state_occupancy_, model.dwell_times_
    used = [state for state in np.argsort(-share, kind="stable") if share[state] >= USED]
    rows = [
        (model.state_names_[state], f"{share[state]:.1%}", f"{lasts[state]:.1f}", emits(parts, state))
        for state in used[:ROWS]
    ]
    talk.say(f"\n{len(used)} of {model.n_states_} states are used")
    talk.table(["state", "share", "lasts", "emits"], rows, right=(1, 2))
    if len(used) > ROWS:
        talk.say(f"… and {len(used) - ROWS} more; --json has all")


def summary(model: HMM) -> dict[str, Any]:
    """Facts about a model, for machines."""
    parts, share, lasts = profile_of(model), model.state_occupancy_, model.dwell_times_
    trace = model.trace_
    return {
        "n_states": model.n_states_,
        "n_states_used": n_used(model),
        "family": type(model.family_).__name__,
        "transition": _written(model.transition),
        "inference": _written(model.inference),
        "seed": model.random_state,
        "n_parameters": model.n_parameters_,
        "n_sequences": model.n_sequences_,
        "columns": model.columns_,
        "status": model.status_,
        "iterations": len(trace),
        "seconds": trace.seconds[-1] if trace.seconds else None,
        "objective": next(iter(reversed(trace.known_objectives())), None),
        "held_out_score": trace.validation[-1] if trace.validation else None,
        "states": [
            {
                "name": name,
                "share": share[state],
                "dwell_time": lasts[state],
                "emits": {part.name: _fact(part, state) for part in parts},
            }
            for state, name in enumerate(model.state_names_)
        ],
        "initial": model.initial_,
        "transition_matrix": model.transition_,
    }


def _written(setting: Any) -> str | None:
    return None if setting is None else str(setting)


def _fact(part: Any, state: int) -> dict[str, Any]:
    if isinstance(part, Symbols):
        return {part.labels[s]: part.chances[state, s] for s in part.top(state, 4 * SYMBOLS)}
    return {"mean": part.means[state], "sd": None if part.spreads is None else part.spreads[state]}
