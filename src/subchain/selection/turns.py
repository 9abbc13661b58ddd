"""Fits and concentrations in turns: new concentrations make for new counts, and these for other concentrations.

Under variational inference both turns raise the same bound, on the evidence of the data as a function of the
concentrations: a fit for the marginals in states and parameters, learning for the concentrations.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from subchain.data import as_sequences
from subchain.errors import ConvergenceWarning, InputError
from subchain.inference import resolve_inference
from subchain.models.hmm import HMM
from subchain.selection.concentrations import BOUNDS, Concentrations, checked_bounds, learn
from subchain.selection.folds import at_least, fit
from subchain.selection.grid import Settings, spelled_out
from subchain.selection.known import Known


class Round(NamedTuple):
    """One round of `fit_concentrations`.

    Attributes
    ----------
    settings : concentrations of the fit; none in the first round, which is the model as it was given
    objective : the fit's objective, of variational inference the bound
    log_evidence : log probability of its counts under these concentrations
    effective : number of states that hold 99 % of the positions
    """

    settings: Settings
    objective: float
    log_evidence: float
    effective: int


class ConcentrationFit(NamedTuple):
    """What `fit_concentrations` found.

    Attributes
    ----------
    settings : the concentrations by the names of their settings
    best_ : the model with these, fitted
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
    """Fit a model and learn its concentrations in turns, each fit starting where the last has ended.

    What is most probable need not be best for a purpose: where something can be measured on held-out data, compare
    with `select_priors`. States that died under the first concentrations do not come back.

    Parameters
    ----------
    x : array, list of arrays, (X, lengths), Sequences, path, or table
    model : HMM
        What is fitted, with any algorithm but EM; its concentrations are where the search begins.
    rounds : int
        Fits after the first one, at most.
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
    >>> x = [[0, 0, 0, 5, 5, 5, 0, 0, 5, 5]] * 20
    >>> found = fit_concentrations(x, HMM(2, "categorical", random_state=0))
    >>> found.converged, found.best_.emission.concentration < 0.1
    (True, True)
    """
    at_least("rounds", rounds, 1)
    limits = checked_bounds(bounds)
    base, data = spelled_out(model), as_sequences(x)
    algorithm = resolve_inference(base.inference)
    if algorithm.flat:
        raise InputError(
            "EM looks for the most probable parameters, which do not exist for concentrations below 1, and such the "
            "evidence asks for as a rule; use inference='vi'."
        )
    known = Known(allowed, states, evidence, sample_weight)

    def turn(**start: HMM) -> tuple[HMM, Concentrations]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = fit(base, data, known, base.random_state, **start)
        return fitted.set_params(init=base.init), learn(fitted, per_symbol, limits)

    fitted, found = turn()
    course = [_summary({}, fitted, found)]
    for _ in range(rounds):
        settings = found.settings
        base.set_params(**settings)
        fitted, found = turn(init=fitted)
        course.append(_summary(settings, fitted, found))
        if found.change <= tolerance:
            break
    complaints = [algorithm.complaint(fitted.trace_, fitted.status_)]
    if found.change > tolerance:
        complaints.append(
            f"after {rounds} rounds the concentrations still change by {found.change:.2g} of their size; allow more "
            "rounds, or a larger tolerance."
        )
    for complaint in filter(None, complaints):
        warnings.warn(complaint, ConvergenceWarning, stacklevel=2)
    for remark in found.remarks:
        warnings.warn(remark, stacklevel=2)
    return ConcentrationFit(settings, fitted, course, found.change <= tolerance, found.remarks, found.not_learned)


def _summary(settings: Settings, fitted: HMM, found: Concentrations) -> Round:
    objective = fitted.trace_.objective[-1]
    return Round(settings, objective, found.previous_log_evidence, fitted.effective_states())
