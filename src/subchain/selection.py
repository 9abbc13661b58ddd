"""How many states? Fits models of several sizes and compares them by a criterion, with its spread.

Information criteria and the variational bound are spread over restarts; the held-out likelihood is spread over folds. Folds
hold out whole sequences where there are several. A single chain is held out in blocks, which the fit sees as missing; what
is scored is the probability of all held-out blocks together, given the rest.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from subchain.data import Sequences, as_sequences
from subchain.errors import ConvergenceWarning, InputError, unknown_name
from subchain.inference import EM, resolve_inference
from subchain.model import HMM
from subchain.tasks.scores import n_observed
from subchain.tasks.surprise import mask_out

Array = NDArray[np.float64]

#: Blocks of a single chain that each fold holds out.
BLOCKS = 10


class Row(NamedTuple):
    """One number of states.

    Attributes
    ----------
    n_states : number of states
    mean, spread : mean and standard deviation of the criterion over restarts or folds
    best : the best of its values
    effective : mean number of states that hold 99 % of the positions
    """

    n_states: int
    mean: float
    spread: float
    best: float
    effective: float


class Selection(NamedTuple):
    """What `select_states` found.

    Attributes
    ----------
    criterion : "bic" and "aic" (smaller is better), "held_out" (log likelihood per observation) and "bound" (larger is)
    table : one `Row` for each number of states; `pandas.DataFrame(selection.table)` makes a table of it
    values : for each number of states the criterion of every restart or fold
    n_states : the number of states with the best mean
    best_ : the model with that number, fitted to all data
    effective : number of states that hold 99 % of the positions in `best_`
    """

    criterion: str
    table: list[Row]
    values: dict[int, list[float]]
    n_states: int
    best_: HMM
    effective: int


class _Fold(NamedTuple):
    """Data to fit and data that were held out, which may be given the former (`joint` holds both then)."""

    training: Sequences
    joint: Sequences | None
    held_out: Sequences


def select_states(
    x: Any,
    states: Iterable[int] = range(2, 9),
    criterion: str = "bic",
    model: HMM | None = None,
    cv: int = 5,
    n_init: int = 3,
    random_state: int | None = None,
) -> Selection:
    """Fit models with different numbers of states and find the best number.

    Parameters
    ----------
    x : array, list of arrays, (X, lengths), Sequences, path, or table
    states : numbers of states to try
    criterion : "bic", "aic", "held_out" or "bound"
        The bound needs variational inference: the objective of EM rises with every state.
    model : HMM, optional
        What is fitted, with `n_states`, `n_init` and `random_state` replaced.
    cv : int
        Number of folds, for "held_out".
    n_init : int
        Restarts of each fit; by "held_out" the best of them is scored.
    random_state : int, optional
        Seed.

    Returns
    -------
    Selection

    Examples
    --------
    >>> from subchain.datasets import categorical_chain
    >>> data = categorical_chain(2000, n_states=2, n_symbols=6, stickiness=0.9, random_state=1).observations
    >>> select_states(data, states=[1, 2, 3], model=HMM(emission="categorical"), random_state=0).n_states
    2
    """
    sizes = _checked_sizes(states)
    if criterion not in _CRITERIA:
        raise unknown_name("criterion", criterion, _CRITERIA)
    base, data = HMM() if model is None else model, as_sequences(x)
    if criterion == "bound" and isinstance(resolve_inference(base.inference), EM):
        raise InputError("criterion='bound' needs variational inference; with EM use 'bic', 'aic' or 'held_out'.")
    seeds = np.random.SeedSequence(random_state).generate_state(len(sizes) * max(n_init, cv))
    evaluate, sign = _CRITERIA[criterion]
    values, table, fitted = {}, [], {}
    for size, own in zip(sizes, seeds.reshape(len(sizes), -1).tolist(), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            results = list(evaluate(_Trial(base, size, n_init, own), data, cv))
        values[size] = [value for value, _ in results]
        best_value, fitted[size] = max(results, key=lambda result: sign * result[0])
        effective = float(np.mean([found.effective_states() for _, found in results]))
        table.append(Row(size, float(np.mean(values[size])), float(np.std(values[size])), best_value, effective))
    chosen = max(table, key=lambda row: sign * row.mean).n_states
    best = fitted[chosen] if criterion != "held_out" else _refit(base, chosen, n_init, random_state, data)
    return Selection(criterion, table, values, chosen, best, best.effective_states())


class _Trial(NamedTuple):
    """One number of states: how to make a model of it."""

    base: HMM
    n_states: int
    n_init: int
    seeds: list[int]

    def fit(self, data: Sequences, seed: int, n_init: int) -> HMM:
        fresh: HMM = clone(self.base)
        fresh.set_params(n_states=self.n_states, n_init=n_init, random_state=seed)
        return fresh.fit(data)

    def restarts(self, data: Sequences) -> Iterator[HMM]:
        return (self.fit(data, seed, 1) for seed in self.seeds[: self.n_init])


def _refit(base: HMM, n_states: int, n_init: int, random_state: int | None, data: Sequences) -> HMM:
    fresh: HMM = clone(base)
    return fresh.set_params(n_states=n_states, n_init=n_init, random_state=random_state).fit(data)


def _by_bic(trial: _Trial, data: Sequences, cv: int) -> Iterator[tuple[float, HMM]]:
    return ((found.bic(data), found) for found in trial.restarts(data))


def _by_aic(trial: _Trial, data: Sequences, cv: int) -> Iterator[tuple[float, HMM]]:
    return ((found.aic(data), found) for found in trial.restarts(data))


def _by_bound(trial: _Trial, data: Sequences, cv: int) -> Iterator[tuple[float, HMM]]:
    return ((found.runs_[0].objective, found) for found in trial.restarts(data))


def _by_held_out(trial: _Trial, data: Sequences, cv: int) -> Iterator[tuple[float, HMM]]:
    folds = _sequence_folds(data, cv) if data.n_sequences > 1 else _block_folds(data, cv)
    for fold, seed in zip(folds, trial.seeds, strict=False):
        found = trial.fit(fold.training, seed, trial.n_init)
        score = found.score(fold.held_out)
        if fold.joint is not None:
            score = found.score(fold.joint) - found.score(fold.training)
        yield score / max(n_observed(fold.held_out), 1), found


#: How each criterion is computed, and whether more is better (1) or worse (−1).
_CRITERIA: dict[str, tuple[Callable[[_Trial, Sequences, int], Iterator[tuple[float, HMM]]], int]] = {
    "bic": (_by_bic, -1),
    "aic": (_by_aic, -1),
    "held_out": (_by_held_out, 1),
    "bound": (_by_bound, 1),
}


def _sequence_folds(data: Sequences, cv: int) -> Iterator[_Fold]:
    """Every sequence is held out once; a fold takes every cv-th."""
    fold_of = np.arange(data.n_sequences) % min(_checked_folds(cv), data.n_sequences)
    return (_Fold(data[fold_of != fold], None, data[fold_of == fold]) for fold in range(fold_of.max() + 1))


def _block_folds(data: Sequences, cv: int) -> Iterator[_Fold]:
    """Every block is held out once; a fold takes every cv-th."""
    length = max(1, data.n_observations // (BLOCKS * _checked_folds(cv)))
    fold_of = np.arange(data.n_observations) // length % cv
    for fold in range(min(cv, data.n_observations)):
        yield _Fold(mask_out(data, fold_of == fold), data, mask_out(data, fold_of != fold))


def _checked_sizes(states: Iterable[int]) -> list[int]:
    sizes = [int(size) for size in states]
    if not sizes or min(sizes) < 1 or len(set(sizes)) < len(sizes):
        raise InputError(f"states must be different numbers of at least 1; given {sizes}.")
    return sizes


def _checked_folds(cv: int) -> int:
    if not isinstance(cv, (int, np.integer)) or cv < 2:
        raise InputError(f"cv must be a whole number of at least 2, not {cv!r}.")
    return int(cv)
