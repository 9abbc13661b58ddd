"""Grids of settings by name, their refinement, and warnings about best values at the edge of a grid.

If the best value is at the edge of its grid, values outside may be better. The message gives the edge and the
difference to the score of the next value, which shows whether the edge matters.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from subchain.core.components import clone
from subchain.data import Sequences
from subchain.emissions import resolve_emission
from subchain.emissions.choice import emission_for
from subchain.emissions.families import AUTO
from subchain.errors import InputError, unknown_name
from subchain.inference import Algorithm, resolve_inference
from subchain.models.hmm import HMM
from subchain.transitions import resolve_transition

Settings = dict[str, Any]


class Trial(NamedTuple):
    """One point of the grid.

    Attributes
    ----------
    settings : values by the names of the settings
    mean, spread : mean and standard deviation of the scores over folds or repeats; larger is better
    values : the scores
    effective : mean number of states that hold 99 % of the positions
    collapsed : whether a run ended with fewer than `min_states` of them; such a point is never chosen
    """

    settings: Settings
    mean: float
    spread: float
    values: list[float]
    effective: float
    collapsed: bool


def resolved(model: HMM, data: Sequences | None = None) -> HMM:
    """Return an unfitted copy with component names replaced by components, so that their settings can be changed.

    A family that was left open is chosen by the data; without data it is that of the fitted model.
    """
    fresh: HMM = clone(model)
    if data is not None:
        family = emission_for(fresh.emission, data).emission
    else:
        family = model.family_ if fresh.emission == AUTO else resolve_emission(fresh.emission)
    return fresh.set_params(
        emission=family,
        transition=resolve_transition(fresh.transition),
        inference=fresh.inference if isinstance(fresh.inference, Algorithm) else resolve_inference(fresh.inference),
    )


def checked_grid(grid: Any, model: HMM) -> dict[str, list[Any]]:
    """Return the grid with lists of values; raise an `InputError` for unknown settings and empty lists."""
    if not isinstance(grid, Mapping) or not grid:
        raise InputError(
            "grid must map names of settings to the values to try, {'emission__concentration': [0.01, 0.1, 1.0]}, "
            f"not {grid!r}."
        )
    known = [name for name in model.get_params() if name != "random_state"]
    for name in grid:
        if name not in known:
            raise unknown_name("setting of the model", name, known)
    return {name: _values(name, values) for name, values in grid.items()}


def _values(name: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"the grid needs a list of values for {name}, not {values!r}; write [{values!r}].")
    found = [value.item() if isinstance(value, np.generic) else value for value in values]
    if not found:
        raise InputError(f"the grid has no value for {name}; give at least one, or leave the setting out.")
    return found


def combinations(grid: Mapping[str, list[Any]]) -> list[Settings]:
    """Return all points of a grid; the last setting varies fastest."""
    return [dict(zip(grid, point, strict=True)) for point in itertools.product(*grid.values())]


def key(settings: Settings) -> tuple[Any, ...]:
    """Return a hashable key of a point: numbers by value, everything else (arrays, components) by identity."""
    return tuple(value if _is_number(value) else id(value) for value in settings.values())


def as_text(settings: Settings) -> str:
    """Return settings as text, name=value."""
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())


def between(tried: list[Settings], best: Settings) -> list[Settings]:
    """Return the points halfway in log space between the best one and its neighbours, for settings that are numbers."""
    finer = {}
    for name, value in best.items():
        numbers = _numbers(tried, name)
        finer[name] = [value]
        if _is_number(value) and can_be_refined(numbers):
            at = numbers.index(value)
            finer[name] += [math.sqrt(value * other) for other in numbers[max(at - 1, 0) : at + 2] if other != value]
    known = {key(settings) for settings in tried}
    return [settings for settings in combinations(finer) if key(settings) not in known]


def can_be_refined(values: list[Any]) -> bool:
    """Return whether values can be interpolated: several positive numbers, not all of them integers."""
    numbers = [value for value in values if _is_number(value)]
    return len(numbers) > 1 and min(numbers) > 0.0 and not all(isinstance(number, int) for number in numbers)


def edges(trials: list[Trial], best: Trial) -> list[str]:
    """Return a sentence for every setting whose best value is the smallest or the largest that was tried."""
    means = {key(trial.settings): trial.mean for trial in trials}
    sentences = []
    for name, value in best.settings.items():
        numbers = _numbers([trial.settings for trial in trials], name)
        if not _is_number(value) or len(numbers) < 2 or value not in (numbers[0], numbers[-1]):
            continue
        which, beyond, inside = (
            ("smallest", "smaller", numbers[1]) if value == numbers[0] else ("largest", "larger", numbers[-2])
        )
        less = best.mean - means.get(key(best.settings | {name: inside}), math.nan)
        spread = f", with a standard deviation of {best.spread:.3g}" if len(best.values) > 1 else ""
        sentences.append(
            f"the best {name}, {value:g}, is the {which} that was tried; a {beyond} one may be better "
            f"(the next, {inside:g}, scores {less:.3g} less{spread})."
        )
    return sentences


def _numbers(tried: list[Settings], name: str) -> list[Any]:
    """Return the distinct numbers tried for a setting, increasing."""
    return sorted({settings[name] for settings in tried if _is_number(settings[name])})


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
