"""Credible intervals of all parameters, from draws of whole models whose states have the same labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError
from subchain.structures.chain.model import HMMPoint
from subchain.structures.chain.sampling.walkers import state_arrays
from subchain.tasks.matching import match

Array = NDArray[np.float64]
#: How the names of emission parameters begin in draws.
PREFIX = "emission."
States = NDArray[np.integer]


@dataclasses.dataclass(frozen=True)
class ParameterIntervals:
    """Credible intervals, each a lower and an upper bound on a first axis of length 2.

    Attributes
    ----------
    initial : (2, K)
    transition : (2, K, K)
    emission : by the names of the parameters (`means`, `probabilities`, …), (2, K, …); "part.name" for a `Product`
    level : probability of each interval
    method : "posterior" or "gibbs"
    n_draws : number of draws
    """

    initial: Array
    transition: Array
    emission: dict[str, Array]
    level: float
    method: str
    n_draws: int


def named_draws(points: list[HMMPoint]) -> dict[str, Array]:
    """Return drawn models by the names of their parameters, as samplers keep them; draws are on the first axis."""
    found: dict[str, list[Array]] = {"initial": [], "transition": []}
    for point in points:
        found["initial"].append(point.initial)
        found["transition"].append(point.transition)
        for name, values in state_arrays(point.emission):
            found.setdefault(f"emission.{name}", []).append(values)
    return {name: np.array(values) for name, values in found.items()}


def parameter_intervals(draws: Mapping[str, Array], level: float, method: str) -> ParameterIntervals:
    """Return the intervals between the quantiles (1 − level) / 2 and (1 + level) / 2 of draws by name.

    Examples
    --------
    >>> from subchain import HMM
    >>> model = HMM(2, "categorical", random_state=0).fit(np.array([0, 0, 0, 1, 1, 1] * 50))
    >>> draws = named_draws(model.sample_parameters(50, random_state=0))
    >>> parameter_intervals(draws, 0.9, "posterior").transition.shape
    (2, 2, 2)
    """
    if isinstance(level, bool) or not isinstance(level, (int, float, np.number)) or not 0.0 < level < 1.0:
        raise InputError(f"level must lie between 0 and 1, not be {level!r}; 0.95 is usual.")
    bounds = 0.5 - 0.5 * float(level), 0.5 + 0.5 * float(level)
    between = {name: np.asarray(np.quantile(values, bounds, axis=0)) for name, values in draws.items()}
    emitted = {name.removeprefix(PREFIX): values for name, values in between.items() if name.startswith(PREFIX)}
    n_draws = len(draws["initial"])
    return ParameterIntervals(between["initial"], between["transition"], emitted, float(level), method, n_draws)


def relabelled(draw: HMMPoint, states: States, reference: States) -> HMMPoint:
    """Return a drawn model with its states numbered like those of a reference path.

    Parameters
    ----------
    draw : the drawn model
    states, reference : (N,) the path that was drawn with it, and the path that labels are taken from
    """
    n_states = draw.n_states
    pairs = reference.astype(np.int64) * n_states + states
    shared = np.bincount(pairs, minlength=n_states**2).reshape(n_states, n_states)
    if (shared.argmax(axis=1) == np.arange(n_states)).all():
        return draw
    order, _ = match(-shared.T.astype(np.float64))
    return draw.take(order)
