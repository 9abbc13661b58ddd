"""Concentrations learned from a model's own expected counts: those under which the counts are most probable.

After a fit, the expected moves, beginnings and symbols of the states are rows of counts with Dirichlet priors, and
`dirichlet_multinomial` finds the best concentrations for them. Priors of other families than the categorical have no
such concentrations and stay as they are.
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
from subchain.selection.grid import Settings, spelled_out
from subchain.transitions import Dirichlet, DirichletChain, resolve_transition
from subchain.transitions.initial import LearnedInitial

Array = NDArray[np.float64]

#: Concentrations beyond which nothing would change but the risk of overflow: all but certain, all but uniform.
BOUNDS = (1e-4, 1e3)
#: How near a bound counts as there.
AT_BOUND = 1e-6


class Concentrations(NamedTuple):
    """What `learn_concentrations` found.

    Attributes
    ----------
    settings : new values by the names of their settings
    change : the largest change of a mean concentration, as a fraction of what it was
    log_evidence, previous_log_evidence : log probability of the counts, with the new values and with those of the fit
    remarks : a sentence for every concentration that was stopped by a bound
    not_learned : a sentence for every part of the model whose prior stays as it is, and why
    """

    settings: Settings
    change: float
    log_evidence: float
    previous_log_evidence: float
    remarks: list[str]
    not_learned: list[str]

    def apply(self, model: HMM) -> HMM:
        """An unfitted copy of a model, with the new values."""
        return spelled_out(model).set_params(**self.settings)


def learn_concentrations(model: HMM, per_symbol: bool = False, bounds: tuple[float, float] = BOUNDS) -> Concentrations:
    """The Dirichlet concentrations that make a fitted model's expected counts most probable.

    Learned are `concentration` and `initial_concentration` of the transitions and `concentration` of categorical
    emissions, also of those inside a `Product`. Where the model has one number for all entries, the best number is
    found; where it has an array, the best multiple of it. `stickiness` stays as it is, and so do the priors of all
    other families, for which there is `select_priors`.

    Parameters
    ----------
    model : HMM
        Fitted; it is not changed.
    per_symbol : bool
        Give every symbol of a categorical emission a concentration of its own, the same in all states, (W,).
    bounds : (float, float)
        Smallest and largest mean concentration; one that would leave them is stopped there, with a warning.

    Returns
    -------
    Concentrations

    See Also
    --------
    fit_concentrations : new concentrations make for new counts; it goes on until both agree

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


# ---- what there is to learn ------------------------------------------------------------------------------------------


class _Target(NamedTuple):
    """Rows of counts, and the setting that their concentrations come from.

    Attributes
    ----------
    name : of the setting
    given : its value, a number, an array, or None
    counts : (R, W)
    concentration : (R, W), what the setting amounts to, zero where an entry cannot occur
    constant : (R, W), what other settings add to it
    per_column : whether every column may have a value of its own
    """

    name: str
    given: Any
    counts: Array
    concentration: Array
    constant: Array
    per_column: bool


def _targets(model: HMM, per_symbol: bool) -> tuple[list[_Target], list[str]]:
    """What can be learned, and sentences about what cannot."""
    found = [*_of_chain(model), *_of_emission(model, per_symbol)]
    return [item for item in found if isinstance(item, _Target)], [item for item in found if isinstance(item, str)]


def _of_chain(model: HMM) -> Iterator[_Target | str]:
    prior, setting, counts = model.prior_.chain, resolve_transition(model.transition), model.statistics_
    if not isinstance(prior, DirichletChain) or not isinstance(setting, Dirichlet):
        yield "transition: it is frozen, or was given, or its prior is no Dirichlet, and stays as it is."
        return
    sticky = setting.stickiness * np.eye(model.n_states_) * prior.rows.free
    concentration = prior.rows.concentration - sticky
    yield _Target("transition__concentration", setting.concentration, counts.pairs, concentration, sticky, False)
    name = "transition__initial_concentration"
    if isinstance(prior.initial, LearnedInitial):
        concentration = prior.initial.concentration[None]
        nothing = np.zeros_like(concentration)
        yield _Target(name, setting.initial_concentration, counts.initial[None], concentration, nothing, False)
    else:
        yield f"{name}: the distribution of the first state is given or stationary, and has no prior."


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
            yield f"{name}: it is frozen, or was given, and stays as it is."
        else:
            yield (
                f"{name}: the prior of {type(family).__name__} is not learned from counts, and stays as it is; "
                "choose it with select_priors."
            )


# ---- learning it -----------------------------------------------------------------------------------------------------


def learn(model: HMM, per_symbol: bool, bounds: tuple[float, float]) -> Concentrations:
    """What `learn_concentrations` finds, without warnings."""
    model._point()
    targets, not_learned = _targets(model, per_symbol)
    if per_symbol and not any(target.per_column for target in targets):
        raise InputError(f"per_symbol=True needs a categorical emission that is learned; this is {model.family_!r}.")
    settings: Settings = {}
    remarks: list[str] = []
    change = before = after = 0.0
    for target in targets:
        mean = float(target.concentration[target.concentration > 0.0].mean())
        pattern, start = _tied(target, mean)
        rows = TiedRows(target.counts, pattern, target.constant, target.per_column)
        if not rows.is_informative:
            not_learned.append(f"{target.name}: there are no rows with more than one count, which say nothing of it.")
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
    """What the numbers to learn are multiplied by, and the numbers as they are now."""
    if target.per_column:
        return np.ones_like(target.concentration), target.concentration.mean(axis=0)
    return target.concentration / mean, np.array([mean])


def _as_given(target: _Target, numbers: Array, mean: float) -> Any:
    """The numbers as the setting takes them: one a column, one for all, or as a multiple of the array it was."""
    if target.per_column:
        return numbers
    if np.ndim(target.given) == 0:
        return float(numbers[0])
    return np.asarray(target.given, dtype=np.float64) * (numbers[0] / mean)


def _remarks(target: _Target, best: Maximum, bounds: tuple[float, float]) -> Iterator[str]:
    """What the user should know of the way a concentration was found."""
    if not best.converged:
        yield f"{target.name} had not settled when the search for it ended; it is not quite the best."
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
                f"{target.name} was stopped at its {bound} bound, {limit:g}{of}{never}: the counts would be more "
                f"probable with a {'smaller' if bound == 'lower' else 'larger'} one. Give other bounds=..., or choose "
                "it with select_priors."
            )


def checked_bounds(bounds: Any) -> tuple[float, float]:
    """Two positive numbers, the smaller one first."""
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        low = high = np.nan
    if not 0.0 < low < high < np.inf:
        raise InputError(f"bounds must be two positive numbers, the smaller one first, not {bounds!r}.")
    return low, high
