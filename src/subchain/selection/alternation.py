"""Alternation of fits and empirical Bayes for concentrations until both converge.

In variational inference both steps increase the same lower bound on the evidence: a fit with respect to the posteriors
of states and parameters, learning with respect to the concentrations.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from subchain.data.annotations import Annotations
from subchain.errors import ConvergenceWarning, InputError
from subchain.inference import resolve_inference
from subchain.models.hmm import HMM
from subchain.selection.concentrations import BOUNDS, Concentrations, checked_bounds, learn
from subchain.selection.folds import at_least, data_for, fit
from subchain.selection.grid import Settings, resolved


class Round(NamedTuple):
    """One round of `fit_concentrations`.

    Attributes
    ----------
    settings : concentrations of the fit; empty in the first round, which fits the given model
    objective : objective of the fit, for variational inference the bound
    log_evidence : log evidence of its counts under these concentrations
    effective : number of states that hold 99 % of the positions
    """

    settings: Settings
    objective: float
    log_evidence: float
    effective: int


class ConcentrationFit(NamedTuple):
    """Result of `fit_concentrations`.

    Attributes
    ----------
    settings : concentrations by the names of the settings
    best_ : the fitted model with these concentrations
    rounds : one `Round` for each fit
    converged : whether the last round changed no concentration by more than the tolerance
    remarks, not_learned : as in `Concentrations`
    """

    settings: Settings
    best_: HMM
    rounds: list[Round]
    converged: bool
    remarks: list[str]
    not_learned: list[str]


def fit_concentrations(
    x: Any,
    model: HMM,
    rounds: int = 20,
    tolerance: float = 0.01,
    per_symbol: bool = False,
    bounds: tuple[float, float] = BOUNDS,
    *,
    allowed: Any = None,
    states: Any = None,
    evidence: Any = None,
    sample_weight: Any = None,
) -> ConcentrationFit:
    """Alternate fits of a model and empirical Bayes for its concentrations; each fit starts from the previous one.

    Maximum evidence need not be best for a given purpose: if you can measure the purpose on held-out data, compare with
    `select_priors`. States that became empty under the first concentrations stay empty.

    Parameters
    ----------
    x : array, list of arrays, (X, lengths), Sequences, path, or table
    model : HMM
        The model to copy and fit, with any algorithm except EM; the search starts from its concentrations.
    rounds : int
        Maximum number of fits after the first one.
    tolerance : float
        The search ends when no mean concentration changes by more than this fraction.
    per_symbol, bounds
        As in `learn_concentrations`.
    allowed, states, evidence, sample_weight
        As in `HMM.fit`.

    Returns
    -------
    ConcentrationFit

    Examples
    --------
    >>> from subchain import HMM
    >>> x = [[0, 0, 0, 5, 5, 5, 0, 0, 5, 5]] * 17 + [[5, 5, 0, 0, 0, 5, 5, 5, 0, 0]] * 3
    >>> found = fit_concentrations(x, HMM(2, "categorical", random_state=0))
    >>> found.converged, found.best_.emission.concentration < 0.1
    (True, True)
    """
    at_least("rounds", rounds, 1)
    limits = checked_bounds(bounds)
    data = data_for(model, x)
    base = resolved(model, data)
    algorithm = resolve_inference(base.inference)
    if algorithm.flat:
        raise InputError(
            "EM cannot be used here: it finds the mode of the posterior, which does not exist for concentrations below "
            "1, and learned concentrations are mostly below 1. Use inference='vi'."
        )
    known = Annotations(allowed, states, evidence, sample_weight)

    def fit_and_learn(**start: HMM) -> tuple[HMM, Concentrations]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = fit(base, data, known, base.random_state, **start)
        return fitted.set_params(init=base.init), learn(fitted, per_symbol, limits)

    fitted, found = fit_and_learn()
    history = [_summary({}, fitted, found)]
    for _ in range(rounds):
        settings = found.settings
        base.set_params(**settings)
        fitted, found = fit_and_learn(init=fitted)
        history.append(_summary(settings, fitted, found))
        if found.change <= tolerance:
            break
    complaints = [algorithm.complaint(fitted.trace_, fitted.status_)]
    if found.change > tolerance:
        complaints.append(
            f"after {rounds} rounds the concentrations still change by a fraction of {found.change:.2g}; raise rounds, "
            "or the tolerance."
        )
    for complaint in filter(None, complaints):
        warnings.warn(complaint, ConvergenceWarning, stacklevel=2)
    for remark in found.remarks:
        warnings.warn(remark, stacklevel=2)
    return ConcentrationFit(settings, fitted, history, found.change <= tolerance, found.remarks, found.not_learned)


def _summary(settings: Settings, fitted: HMM, found: Concentrations) -> Round:
    objective = fitted.trace_.objective[-1]
    return Round(settings, objective, found.previous_log_evidence, fitted.effective_states())
