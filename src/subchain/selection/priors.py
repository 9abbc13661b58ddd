"""Grid search over hyperparameters by held-out likelihood or another score.

Every combination of settings is fitted and scored on data that were not used in training: folds of whole sequences,
blocks or positions of a sequence, validation data, or by a function of the user, such as tagging accuracy on a
development set. All combinations use the same folds and seeds, so that differences do not come from random starts.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Unpack

import numpy as np

from subchain.core.components import clone
from subchain.data import HoldOut, Sequences
from subchain.data.annotations import AnnotationOptions, Annotations
from subchain.errors import ConvergenceWarning, InputError, unknown_name
from subchain.models.fitting import FitCall
from subchain.models.hmm import HMM
from subchain.numerics.seeds import seed_sequence
from subchain.selection.folds import Results, at_least, data_for, fit, held_out, with_all_symbols
from subchain.selection.grid import (
    Settings,
    Trial,
    as_text,
    between,
    can_be_refined,
    checked_grid,
    combinations,
    edges,
    key,
    resolved,
)

#: Default number of folds.
FOLDS = 5

Score = Callable[[HMM], float]


class PriorSelection(NamedTuple):
    """Result of `select_priors`.

    Attributes
    ----------
    criterion : "held_out" (log likelihood per observation), or the name of the scoring function
    trials : one `Trial` for each combination of settings
    settings : the combination with the best mean
    best_ : the model with these settings, fitted to all data
    effective : number of states that hold 99 % of the positions in `best_`
    edges : one sentence for every setting whose best value is at the edge of its grid
    """

    criterion: str
    trials: list[Trial]
    settings: Settings
    best_: HMM
    effective: int
    edges: list[str]

    @property
    def table(self) -> list[dict[str, Any]]:
        """The trials as flat rows, for `pandas.DataFrame(selection.table)`."""
        return [trial.settings | {k: v for k, v in trial._asdict().items() if k != "settings"} for trial in self.trials]


def select_priors(
    x: Any,
    model: HMM,
    grid: Mapping[str, Any],
    criterion: str | Score = "held_out",
    *,
    validation: Any = None,
    cv: int | None = None,
    repeats: int | None = None,
    n_init: int | None = None,
    min_states: int = 1,
    refine: int = 0,
    random_state: Any = None,
    **known: Unpack[AnnotationOptions],
) -> PriorSelection:
    """Fit a model with all combinations of some hyperparameters, or other settings, and find the best one.

    Parameters
    ----------
    x : array, list of arrays, (X, lengths), Sequences, path, or table
    model : HMM
        The model to copy and fit, with its own inference algorithm.
    grid : mapping
        Values to try by the names of settings, as in scikit-learn: `{"transition__concentration": [0.1, 1.0],
        "emission__concentration": [0.01, 0.1]}`. All combinations are tried.
    criterion : "held_out", or a function of a fitted model
        The held-out log likelihood per observation, or a function that returns a larger number for better models. The
        function is called with models fitted to all of `x`.
    validation : as x, or HoldOut, optional
        Validation data, or positions of `x` to hold out, instead of folds. As in `HMM.fit`, which scores them after
        every iteration; the last score is used.
    cv : int, optional
        Number of folds if there is neither `validation` nor a function; 5 by default. Folds are whole sequences, or
        blocks of a single sequence.
    repeats : int, optional
        Number of fits per combination from different seeds if there are no folds; 1 by default. Scores are averaged.
    n_init : int, optional
        Restarts of each fit, of which the one with the best objective is scored; by default that of the model.
    min_states : int
        A combination is not chosen if one of its runs ends with fewer effective states than this (it has collapsed).
    refine : int
        Number of refinements: further values halfway between the best value and its neighbours, for each setting that
        is a positive number.
    random_state : int, numpy Generator or None
        Seed of all fits; by default that of the model.
    **known
        `allowed`, `states`, `evidence` and `sample_weight`, as in `HMM.fit`, for all of `x`; they are divided into
        folds like `x`. Evidence about held-out sequences is used
        when these are scored.

    Returns
    -------
    PriorSelection

    Warns
    -----
    UserWarning
        If the best value of a setting is the smallest or the largest that was tried.

    See Also
    --------
    fit_concentrations : empirical Bayes for concentrations, without a grid

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from subchain import HMM, VI
    >>> x = [np.random.default_rng(i).integers(0, 3, 30) * 20 for i in range(4)]  # 3 of 41 symbols occur
    >>> model = HMM(1, "categorical", inference=VI(max_iter=2, tolerance=0.0))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # the best value is at the edge of the grid, see found.edges
    ...     found = select_priors(x, model, {"emission__concentration": [0.001, 0.1, 10.0]}, cv=2)
    >>> found.settings
    {'emission__concentration': 0.001}
    >>> found.edges[0][:71]
    'the best emission__concentration, 0.001, is the smallest that was tried'
    """
    given, data = Annotations(**known), data_for(model, x)
    base = resolved(model, data)
    if n_init is not None:
        base.set_params(n_init=at_least("n_init", n_init, 1))
    values = checked_grid(grid, base)
    if at_least("refine", refine, 0) and not any(map(can_be_refined, values.values())):
        raise InputError("refine= needs a setting with several positive values that are not all integers.")
    in_folds = _is_in_folds(criterion, validation, cv, repeats)
    n_fits = at_least("cv", FOLDS if cv is None else cv, 2) if in_folds else _n_repeats(repeats)
    root = seed_sequence(base.random_state if random_state is None else random_state)
    seeds = [int(seed) for seed in root.generate_state(n_fits)]

    def results(candidate: HMM) -> Results:
        if in_folds:
            return held_out(candidate, data, given, seeds)
        score = criterion if callable(criterion) else _last_validation
        fits = (fit(candidate, data, given, seed, validation) for seed in seeds)
        return ((score(found), found) for found in fits)

    search = _Search(base, data, given, results, at_least("min_states", min_states, 1))
    search.visit(combinations(values))
    for _ in range(refine):
        search.visit(between([trial.settings for trial in search.trials], search.best.settings))
    best, found = search.best, search.model
    if in_folds or isinstance(validation, HoldOut):
        found = fit(_candidate(base, best.settings, data), data, given, seeds[0])
    at_edges = edges(search.trials, best)
    for sentence in at_edges:
        warnings.warn(sentence, stacklevel=2)
    name = criterion if isinstance(criterion, str) else getattr(criterion, "__name__", repr(criterion))
    return PriorSelection(name, search.trials, best.settings, found, found.effective_states(), at_edges)


class _Search:
    """Grid search that keeps all trials, and the model of the best one."""

    def __init__(
        self, base: HMM, data: Sequences, known: Annotations, results: Callable[[HMM], Results], min_states: int
    ) -> None:
        self.base, self.data, self.known = base, data, known
        self.results = results
        self.min_states = min_states
        self.trials: list[Trial] = []
        self._leader: tuple[Trial, HMM] | None = None

    @property
    def best(self) -> Trial:
        """Trial with the best mean score."""
        return self._found()[0]

    @property
    def model(self) -> HMM:
        """The model of the best trial with the highest score."""
        return self._found()[1]

    def visit(self, points: list[Settings]) -> None:
        """Fit all points; all are checked first, so that an invalid one does not end a search after hours."""
        candidates = {key(point): (point, self._checked(point)) for point in points}
        for point, candidate in candidates.values():
            trial, found = self._try(point, candidate)
            self.trials.append(trial)
            if not trial.collapsed and (self._leader is None or trial.mean > self._leader[0].mean):
                self._leader = (trial, found)

    def _checked(self, point: Settings) -> HMM:
        try:
            candidate = _candidate(self.base, point, self.data)
            FitCall(candidate, self.data, self.known)
        except InputError as error:
            raise InputError(f"with {as_text(point)}: {error}") from error
        return candidate

    def _try(self, point: Settings, candidate: HMM) -> tuple[Trial, HMM]:
        values: list[float] = []
        effective: list[int] = []
        best, kept = -math.inf, candidate
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for given, found in self.results(candidate):
                value = _checked_score(given, point)
                if not values or value > best:
                    best, kept = value, found
                values.append(value)
                effective.append(found.effective_states())
        mean = float(np.mean(values))
        spread = float(np.std(values)) if math.isfinite(mean) else math.nan
        collapsed = min(effective) < self.min_states
        return Trial(point, mean, spread, values, float(np.mean(effective)), collapsed), kept

    def _found(self) -> tuple[Trial, HMM]:
        if self._leader is None:
            most = max(self.trials, key=lambda trial: trial.effective)
            raise InputError(
                f"every combination in the grid has collapsed to fewer than min_states={self.min_states} states; the "
                f"largest mean number is {most.effective:g}, with {as_text(most.settings)}. Lower min_states or try "
                "other values (a smaller emission concentration keeps more states)."
            )
        if self._leader[0].mean == -math.inf:
            raise InputError(
                "every combination in the grid scores −inf: the held-out data have probability zero under all of "
                "them. Use a prior that gives unseen symbols a positive probability (a concentration with variational "
                "inference)."
            )
        return self._leader


def _candidate(base: HMM, point: Settings, data: Sequences) -> HMM:
    """Return a copy of the model with the settings of a point, and the number of symbols of all data."""
    fresh: HMM = clone(base).set_params(**{name: clone(value) for name, value in point.items()})
    if isinstance(fresh.init, str):  # otherwise the model to start from fixes the number of symbols
        n_states = at_least("n_states", fresh.n_states, 1)
        fresh.set_params(emission=with_all_symbols(fresh.emission, data, n_states))
    return fresh


def _last_validation(model: HMM) -> float:
    return model.trace_.validation[-1]


def _checked_score(given: Any, point: Settings) -> float:
    try:
        value = float(given)
    except (TypeError, ValueError):
        value = math.nan
    if math.isnan(value) or value == math.inf:
        raise InputError(
            f"the criterion is {given!r} with {as_text(point)}; it must be a number, larger for better models."
        )
    return value


def _n_repeats(repeats: int | None) -> int:
    return 1 if repeats is None else at_least("repeats", repeats, 1)


def _is_in_folds(criterion: Any, validation: Any, cv: int | None, repeats: int | None) -> bool:
    """Return whether folds are scored; raise an `InputError` for settings that would have no effect."""
    if not callable(criterion) and criterion != "held_out":
        raise unknown_name("criterion", criterion, ["held_out"])
    in_folds = validation is None and not callable(criterion)
    if in_folds and repeats is not None:
        raise InputError(
            "repeats= needs validation data or a scoring function; without them there are folds, and cv= is their "
            "number."
        )
    if not in_folds and cv is not None:
        raise InputError("cv= needs folds; with validation data or a scoring function there are none: use repeats=.")
    return in_folds
