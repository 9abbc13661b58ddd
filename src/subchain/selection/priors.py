"""How strong are the priors? Fits a model with every combination of some settings and keeps the best on held-out data.

What counts is how a model does on what it has not learned from: folds of whole sequences, blocks or positions inside a
chain, validation data, or whatever else the user measures, such as tagging accuracy on a development set. All
combinations are fitted to the same folds from the same seeds, so that differences are not those of their starts.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from subchain.core.components import clone
from subchain.data import HoldOut, Sequences, as_sequences
from subchain.errors import ConvergenceWarning, InputError, unknown_name
from subchain.models.fitting import FitCall
from subchain.models.hmm import HMM
from subchain.numerics.seeds import seed_sequence
from subchain.selection.folds import Results, at_least, fit, held_out, settled
from subchain.selection.grid import (
    Settings,
    Trial,
    between,
    can_be_refined,
    checked_grid,
    combinations,
    edges,
    key,
    spell,
    spelled_out,
)
from subchain.selection.known import Known

#: Folds where the user does not say how many.
FOLDS = 5

Score = Callable[[HMM], float]


class PriorSelection(NamedTuple):
    """What `select_priors` found.

    Attributes
    ----------
    criterion : "held_out" (log likelihood per observation), or the name of the function that scored
    trials : one `Trial` for each combination of settings
    settings : the combination with the best mean
    best_ : the model with these settings, fitted to all data
    effective : number of states that hold 99 % of the positions in `best_`
    edges : a sentence for every setting whose best value lies at the edge of its grid
    """

    criterion: str
    trials: list[Trial]
    settings: Settings
    best_: HMM
    effective: int
    edges: list[str]

    @property
    def table(self) -> list[dict[str, Any]]:
        """The trials as flat rows, `pandas.DataFrame(selection.table)`."""
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
    allowed: Any = None,
    states: Any = None,
    evidence: Any = None,
    sample_weight: Any = None,
) -> PriorSelection:
    """Fit a model with different hyperparameters, or any other settings, and find the best.

    Parameters
    ----------
    x : array, list of arrays, (X, lengths), Sequences, path, or table
    model : HMM
        What is fitted, by its own inference algorithm.
    grid : mapping
        Values to try by the names of settings, as in scikit-learn: `{"transition__concentration": [0.1, 1.0],
        "emission__concentration": [0.01, 0.1]}`. All combinations are tried.
    criterion : "held_out", or a function of a fitted model
        The log likelihood of held-out observations, each, or a number that is larger for better models. A function
        sees models that were fitted to all of `x`.
    validation : as x, or HoldOut, optional
        Data to be scored, or positions inside `x` that the fits do not see, in place of folds. As in `HMM.fit`, which
        scores them after every iteration; the last score counts.
    cv : int, optional
        Number of folds where there is neither `validation` nor a function; 5 by default. Folds are whole sequences, or
        blocks of a single chain.
    repeats : int, optional
        Fits of each combination from different seeds where there are no folds; 1 by default. Their scores are averaged.
    n_init : int, optional
        Restarts of each fit, of which the one with the best objective is scored; the model's own by default.
    min_states : int
        Combinations of which a run ends with fewer effective states than this have collapsed, and are not chosen.
    refine : int
        How often to go on with values half way between the best one and its neighbours, of each setting that is a
        positive number.
    random_state : int, numpy Generator or None
        Seed of all fits; the model's own by default.
    allowed, states, evidence, sample_weight
        As in `HMM.fit`, for all of `x`; folds get their parts. What is known of held-out sequences is scored with them.

    Returns
    -------
    PriorSelection

    Warns
    -----
    UserWarning
        If the best value of a setting is the smallest or the largest that was tried.

    See Also
    --------
    fit_concentrations : concentrations that make the counts of a single fit most probable, without a grid

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, VI
    >>> x = [np.random.default_rng(i).integers(0, 3, 30) * 20 for i in range(4)]  # 3 of 41 symbols occur
    >>> model = HMM(1, "categorical", inference=VI(max_iter=2, tolerance=0.0))
    >>> found = select_priors(x, model, {"emission__concentration": [0.001, 0.1, 10.0]}, cv=2)
    >>> found.settings
    {'emission__concentration': 0.001}
    >>> found.edges[0][:71]
    'the best emission__concentration, 0.001, is the smallest that was tried'
    """
    known, data = Known(allowed, states, evidence, sample_weight), as_sequences(x)
    base = spelled_out(model)
    if n_init is not None:
        base.set_params(n_init=at_least("n_init", n_init, 1))
    values = checked_grid(grid, base)
    if at_least("refine", refine, 0) and not any(map(can_be_refined, values.values())):
        raise InputError("refine= needs a setting with several positive values that are not all whole numbers.")
    in_folds = _is_in_folds(criterion, validation, cv, repeats)
    n_fits = at_least("cv", FOLDS if cv is None else cv, 2) if in_folds else _n_repeats(repeats)
    root = seed_sequence(base.random_state if random_state is None else random_state)
    seeds = [int(seed) for seed in root.generate_state(n_fits)]

    def results(candidate: HMM) -> Results:
        if in_folds:
            return held_out(candidate, data, known, seeds)
        score = criterion if callable(criterion) else _last_validation
        fits = (fit(candidate, data, known, seed, validation) for seed in seeds)
        return ((score(found), found) for found in fits)

    search = _Search(base, data, known, results, at_least("min_states", min_states, 1))
    search.visit(combinations(values))
    for _ in range(refine):
        search.visit(between([trial.settings for trial in search.trials], search.best.settings))
    best, found = search.best, search.model
    if in_folds or isinstance(validation, HoldOut):
        found = fit(_candidate(base, best.settings, data), data, known, seeds[0])
    at_edges = edges(search.trials, best)
    for sentence in at_edges:
        warnings.warn(sentence, stacklevel=2)
    name = criterion if isinstance(criterion, str) else getattr(criterion, "__name__", repr(criterion))
    return PriorSelection(name, search.trials, best.settings, found, found.effective_states(), at_edges)


class _Search:
    """Visits points of a grid and keeps what they gave, and the best of the models."""

    def __init__(
        self, base: HMM, data: Sequences, known: Known, results: Callable[[HMM], Results], min_states: int
    ) -> None:
        self.base, self.data, self.known = base, data, known
        self.results = results
        self.min_states = min_states
        self.trials: list[Trial] = []
        self._leader: tuple[Trial, HMM] | None = None

    @property
    def best(self) -> Trial:
        return self._found()[0]

    @property
    def model(self) -> HMM:
        """The best point's fit with the highest score."""
        return self._found()[1]

    def visit(self, points: list[Settings]) -> None:
        """Fit all points; they are checked first, so that a wrong one does not end a search that has run for hours."""
        candidates = {key(point): (point, self._checked(point)) for point in points}
        for point, candidate in candidates.values():
            trial, found = self._try(point, candidate)
            self.trials.append(trial)
            if not trial.collapsed and (self._leader is None or trial.mean > self._leader[0].mean):
                self._leader = (trial, found)

    def _checked(self, point: Settings) -> HMM:
        try:
            candidate = _candidate(self.base, point, self.data)
            FitCall(candidate, self.data, **self.known._asdict())
        except InputError as error:
            raise InputError(f"with {spell(point)}: {error}") from error
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
                f"every combination in the grid has collapsed to fewer than min_states={self.min_states} states; most "
                f"were left with {spell(most.settings)}, {most.effective:g} on average. Lower min_states or try other "
                "values (a smaller emission concentration keeps more states)."
            )
        if self._leader[0].mean == -math.inf:
            raise InputError(
                "every combination in the grid scores −inf: the held-out data are impossible under all of them. Use a "
                "prior that leaves room for what was not seen (a concentration with variational inference)."
            )
        return self._leader


def _candidate(base: HMM, point: Settings, data: Sequences) -> HMM:
    """The model with the settings of a point, and the sizes that all data have."""
    fresh: HMM = clone(base).set_params(**{name: clone(value) for name, value in point.items()})
    if isinstance(fresh.init, str):  # a model to start from brings sizes of its own
        n_states = at_least("n_states", fresh.n_states, 1)
        fresh.set_params(emission=settled(fresh.emission, data, n_states))
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
            f"the criterion is {given!r} with {spell(point)}; it must be a number, larger for better models."
        )
    return value


def _n_repeats(repeats: int | None) -> int:
    return 1 if repeats is None else at_least("repeats", repeats, 1)


def _is_in_folds(criterion: Any, validation: Any, cv: int | None, repeats: int | None) -> bool:
    """Whether folds are scored; refuses settings that then would not be read."""
    if not callable(criterion) and criterion != "held_out":
        raise unknown_name("criterion", criterion, ["held_out"])
    in_folds = validation is None and not callable(criterion)
    if in_folds and repeats is not None:
        raise InputError("repeats= is for validation data or a function that scores; folds are fitted once each (cv=).")
    if not in_folds and cv is not None:
        raise InputError("cv= is for folds; with validation data or a function that scores there are none (repeats=).")
    return in_folds
