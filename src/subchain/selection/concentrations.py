"""Empirical Bayes for Dirichlet concentrations, from the expected counts of a fitted model.

The expected transitions, initial states and symbols of a fit are rows of counts with Dirichlet priors;
`numerics.dirichlet_multinomial` maximises their evidence over the concentrations. Emission families other than the
categorical have no such concentrations, and their priors are not changed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.emissions import Frozen
from subchain.emissions.categorical import DirichletTable
from subchain.errors import InputError
from subchain.models.hmm import HMM
from subchain.numerics.dirichlet_multinomial import Maximum, TiedRows, maximise
from subchain.selection.folds import parts
from subchain.selection.grid import Settings, resolved
from subchain.transitions import Dirichlet, DirichletChain, resolve_transition
from subchain.transitions.initial import LearnedInitial

Array = NDArray[np.float64]

#: Default bounds. Beyond them distributions are practically deterministic or uniform, and numbers might overflow.
BOUNDS = (1e-4, 1e3)
#: Relative distance from a bound below which a concentration counts as at the bound.
AT_BOUND = 1e-6


class Concentrations(NamedTuple):
    """Result of `learn_concentrations`.

    Attributes
    ----------
    settings : new values by the names of the settings
    change : largest relative change of a mean concentration
    log_evidence, previous_log_evidence : log evidence of the counts, with the new values and with those of the fit
    remarks : one sentence for every concentration at a bound
    not_learned : one sentence for every part of the model whose prior is not changed, with the reason
    """

    settings: Settings
    change: float
    log_evidence: float
    previous_log_evidence: float
    remarks: list[str]
    not_learned: list[str]

    def apply(self, model: HMM) -> HMM:
        """Return an unfitted copy of a model with the new values."""
        return resolved(model).set_params(**self.settings)


def learn_concentrations(model: HMM, per_symbol: bool = False, bounds: tuple[float, float] = BOUNDS) -> Concentrations:
    """Return the Dirichlet concentrations that maximise the evidence of a fitted model's expected counts.

    The settings `concentration` and `initial_concentration` of the transitions and `concentration` of categorical
    emissions, also inside a `Product`, are learned. If a setting is a number, the best number is found; if it is an
    array, the best multiple of the array. `stickiness` and the priors of all other families are not changed; use
    `select_priors` for them.

    Parameters
    ----------
    model : HMM
        A fitted model; it is not changed.
    per_symbol : bool
        Learn one concentration per symbol of a categorical emission, (W,), shared by all states.
    bounds : (float, float)
        Smallest and largest mean concentration; a warning is given if one of them is reached.

    Returns
    -------
    Concentrations

    See Also
    --------
    fit_concentrations : alternates fits and learning of concentrations until both converge

    Examples
    --------
    >>> from subchain import HMM
    >>> x = [[0, 0, 0, 5, 5, 5, 0, 0, 5, 5]] * 20
    >>> model = HMM(2, "categorical", random_state=0).fit(x)
    >>> found = learn_concentrations(model)
    >>> found.settings["emission__concentration"] < 0.1 and found.log_evidence > found.previous_log_evidence
    True
    >>> better = found.apply(model).fit(x)
    """
    found = learn(model, per_symbol, checked_bounds(bounds))
    for remark in found.remarks:
        warnings.warn(remark, stacklevel=2)
    return found


# ---- concentrations that can be learned ------------------------------------------------------------------------------


class _Target(NamedTuple):
    """Rows of counts, and the setting of their concentrations.

    Attributes
    ----------
    name : name of the setting
    given : its value, a number, an array, or None
    counts : (R, W)
    concentration : (R, W) concentrations from this setting, zero for structural zeros
    constant : (R, W) concentrations that other settings add
    per_column : whether every column has its own value
    """

    name: str
    given: Any
    counts: Array
    concentration: Array
    constant: Array
    per_column: bool


def _targets(model: HMM, per_symbol: bool) -> tuple[list[_Target], list[str]]:
    """Return the concentrations that can be learned, and sentences about the priors that cannot."""
    found = [*_of_chain(model), *_of_emission(model, per_symbol)]
    return [item for item in found if isinstance(item, _Target)], [item for item in found if isinstance(item, str)]


def _of_chain(model: HMM) -> Iterator[_Target | str]:
    prior, setting, counts = model.prior_.chain, resolve_transition(model.transition), model.statistics_
    if not isinstance(prior, DirichletChain) or not isinstance(setting, Dirichlet):
        yield "transition: it is frozen or given, or its prior is not Dirichlet; it is not changed."
        return
    sticky = setting.stickiness * np.eye(model.n_states_) * prior.rows.free
    concentration = prior.rows.concentration - sticky
    yield _Target("transition__concentration", setting.concentration, counts.chain.pairs, concentration, sticky, False)
    name = "transition__initial_concentration"
    if isinstance(prior.initial, LearnedInitial):
        concentration = prior.initial.concentration[None]
        nothing = np.zeros_like(concentration)
        yield _Target(name, setting.initial_concentration, counts.initial[None], concentration, nothing, False)
    else:
        yield f"{name}: the initial distribution is given or stationary and has no prior."


def _of_emission(model: HMM, per_symbol: bool) -> Iterator[_Target | str]:
    for part, family in parts(model.family_).items():
        prior: Any = model.prior_.emission
        sums: Any = model.statistics_.emission
        name = "emission"
        if part:
            prior, sums, name = prior.parts[part], sums.parts[part], f"emission__{part}"
        if isinstance(prior, DirichletTable):
            concentration = prior.concentration.T
            given, nothing = family.get_params()["concentration"], np.zeros_like(concentration)
            yield _Target(f"{name}__concentration", given, sums.counts.T, concentration, nothing, per_symbol)
        elif isinstance(prior, Frozen):
            yield f"{name}: it is frozen or given; it is not changed."
        else:
            yield (
                f"{name}: the prior of {type(family).__name__} cannot be learned from counts and is not changed; "
                "choose it with select_priors."
            )


# ---- learning --------------------------------------------------------------------------------------------------------


def learn(model: HMM, per_symbol: bool, bounds: tuple[float, float]) -> Concentrations:
    """Return the result of `learn_concentrations`, without warnings."""
    model._point()
    targets, not_learned = _targets(model, per_symbol)
    if per_symbol and not any(target.per_column for target in targets):
        raise InputError(f"per_symbol=True needs a learned categorical emission, not {model.family_!r}.")
    settings: Settings = {}
    remarks: list[str] = []
    change = before = after = 0.0
    for target in targets:
        mean = float(target.concentration[target.concentration > 0.0].mean())
        pattern, start = _tied(target, mean)
        rows = TiedRows(target.counts, pattern, target.constant, target.per_column)
        if not rows.is_informative:
            not_learned.append(f"{target.name}: no row has more than one count, so the counts do not depend on it.")
            continue
        best = maximise(rows, start, bounds)
        settings[target.name] = _as_given(target, best.scales, mean)
        remarks += _remarks(target, best, bounds)
        change = max(change, abs(float(best.scales.mean() / start.mean()) - 1.0))
        before, after = before + rows.log_evidence(start), after + best.log_evidence
    if not settings:
        raise InputError(f"this model has no concentrations to learn. {' '.join(not_learned)}")
    return Concentrations(settings, change, after, before, remarks, not_learned)


def _tied(target: _Target, mean: float) -> tuple[Array, Array]:
    """Return the pattern that the scales multiply, (R, W), and the current scales."""
    if target.per_column:
        return np.ones_like(target.concentration), target.concentration.mean(axis=0)
    return target.concentration / mean, np.array([mean])


def _as_given(target: _Target, scales: Array, mean: float) -> Any:
    """Return the scales as a value of the setting: one per column, one number, or a multiple of the given array."""
    if target.per_column:
        return scales
    if np.ndim(target.given) == 0:
        return float(scales[0])
    return np.asarray(target.given, dtype=np.float64) * (scales[0] / mean)


def _remarks(target: _Target, best: Maximum, bounds: tuple[float, float]) -> Iterator[str]:
    """Yield a sentence if the search did not converge, and one for each bound that was reached."""
    if not best.converged:
        yield f"{target.name} had not converged when the search ended; it is not quite the best."
    stopped = {
        "lower": best.scales <= bounds[0] * (1.0 + AT_BOUND),
        "upper": best.scales >= bounds[1] * (1.0 - AT_BOUND),
    }
    for bound, limit in zip(stopped, bounds, strict=True):
        count = int(stopped[bound].sum())
        if count:
            of = f" for {count} of {len(best.scales)} symbols" if target.per_column else ""
            unseen = int((stopped[bound] & ~target.counts.any(axis=0)).sum()) if target.per_column else 0
            never = f" ({unseen} of them never occur)" if unseen else ""
            yield (
                f"{target.name} was stopped at its {bound} bound, {limit:g}{of}{never}: a "
                f"{'smaller' if bound == 'lower' else 'larger'} value has more evidence. Give other bounds=..., or "
                "choose it with select_priors."
            )


def checked_bounds(bounds: Any) -> tuple[float, float]:
    """Return `bounds` as floats; raise an `InputError` unless they are positive and increasing."""
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        low = high = np.nan
    if not 0.0 < low < high < np.inf:
        raise InputError(f"bounds must be two positive numbers, the smaller one first, not {bounds!r}.")
    return low, high
