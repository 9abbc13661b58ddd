"""Selection of the number of states by information criteria, held-out likelihood or the variational bound.

For information criteria and the bound, the best restart of each size is compared: a bad start says nothing about the
number of states. The held-out likelihood is averaged over folds. Superfluous states hardly lower it, so the smallest
number of states within one standard error of the best is chosen.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from subchain.core.components import clone
from subchain.data import Sequences
from subchain.data.annotations import Annotations
from subchain.errors import ConvergenceWarning, InputError, unknown_name
from subchain.inference import EM, resolve_inference
from subchain.inference.run.outlook import Whole
from subchain.inference.run.progress import fits_of
from subchain.models.hmm import HMM
from subchain.selection.folds import Results, at_least, data_for, fit, held_out, with_all_symbols


class Row(NamedTuple):
    """Results for one number of states.

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
    """Result of `select_states`.

    Attributes
    ----------
    criterion : "bic" and "aic" (smaller is better), "held_out" (log likelihood per observation) and "bound" (larger is)
    table : one `Row` for each number of states, for `pandas.DataFrame(selection.table)`
    values : for each number of states, the criterion of every restart or fold
    n_states : the chosen number of states
    best_ : the model with this number, fitted to all data
    effective : number of states that hold 99 % of the positions in `best_`
    """

    criterion: str
    table: list[Row]
    values: dict[int, list[float]]
    n_states: int
    best_: HMM
    effective: int


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

    Warns if that is the largest or the smallest number of those that were tried.

    Parameters
    ----------
    x : array, list of arrays, (X, lengths), Sequences, path, or table
    states : numbers of states to try
    criterion : "bic", "aic", "held_out" or "bound"
        "bound" needs variational inference, because the objective of EM increases with every state.
    model : HMM, optional
        The model to copy and fit; `n_states`, `n_init` and `random_state` are replaced.
    cv : int
        Number of folds, for "held_out".
    n_init : int
        Number of restarts of each fit; for "held_out" the best of them is scored.
    random_state : int, optional
        Seed.

    Returns
    -------
    Selection

    Examples
    --------
    >>> from subchain.datasets import gaussian_chain
    >>> data = gaussian_chain(300, n_states=3, stickiness=0.8, random_state=1).observations
    >>> select_states(data, states=[2, 3, 4], model=HMM(emission="gaussian"), random_state=0).n_states
    3
    """
    sizes = _checked_sizes(states)
    if criterion not in _CRITERIA:
        raise unknown_name("criterion", criterion, _CRITERIA)
    n_fits = at_least("cv", cv, 2) if criterion == "held_out" else at_least("n_init", n_init, 1)
    base: HMM = clone(HMM() if model is None else model)
    data = data_for(base, x)
    base.set_params(emission=with_all_symbols(base.emission, data), n_init=n_init)
    if criterion == "bound" and isinstance(resolve_inference(base.inference), EM):
        raise InputError("criterion='bound' needs variational inference; with EM use 'bic', 'aic' or 'held_out'.")
    evaluate, sign = _CRITERIA[criterion]
    seeds = np.random.SeedSequence(random_state).generate_state((len(sizes) + 1) * n_fits).reshape(-1, n_fits).tolist()
    values: dict[int, list[float]] = {}
    table, fitted = [], {}
    whole = _whole(sizes, criterion, data, n_fits)
    for size, own in zip(sizes, seeds[1:], strict=True):
        whole.expect(f"{size} states", *_fits_of_size(criterion, data, n_fits), float(size))
        with warnings.catch_warnings(), fits_of(whole):
            warnings.simplefilter("ignore", ConvergenceWarning)
            results = list(evaluate(base.set_params(n_states=size), data, own))
        values[size] = [value for value, _ in results]
        best, fitted[size] = max(results, key=lambda result: sign * result[0])
        effective = float(np.mean([found.effective_states() for _, found in results]))
        table.append(Row(size, float(np.mean(values[size])), float(np.std(values[size])), best, effective))
    if criterion == "held_out":
        chosen = _smallest_within_error(values)
        whole.expect(f"{chosen} states, all data", "fit", 1, float(chosen))
        with fits_of(whole):
            fitted[chosen] = fit(base.set_params(n_states=chosen), data, Annotations(), seeds[0][0])
    else:
        chosen = max(table, key=lambda row: sign * row.best).n_states
    _warn_at_edge(chosen, sizes)
    return Selection(criterion, table, values, chosen, fitted[chosen], fitted[chosen].effective_states())


def _warn_at_edge(chosen: int, sizes: list[int]) -> None:
    """Warn if the chosen number of states is the largest or the smallest of those that were tried."""
    if len(sizes) > 1 and (chosen == max(sizes) or 1 < chosen == min(sizes)):
        edge, more = ("largest", "more") if chosen == max(sizes) else ("smallest", "fewer")
        warnings.warn(
            f"select_states: the best number of states, {chosen}, is the {edge} that was tried; {more} states may be "
            f"better. Try a wider range, states=range({max(min(sizes) // 2, 1)}, {2 * max(sizes) + 1}).",
            stacklevel=3,
        )


def _smallest_within_error(values: dict[int, list[float]]) -> int:
    """Return the smallest number of states whose mean is within one standard error of the best, over the folds."""
    best = max(values.values(), key=np.mean)
    gaps = {size: np.subtract(best, own) for size, own in values.items()}
    return min(size for size, gap in gaps.items() if not gap.mean() > gap.std() / np.sqrt(len(gap)))


def _fits_of_size(criterion: str, data: Sequences, n_fits: int) -> tuple[str, int]:
    """Return what the fits with one number of states are called, and their number."""
    if criterion != "held_out":
        return "restart", n_fits
    return "fold", min(n_fits, data.n_sequences) if data.n_sequences > 1 else n_fits


def _whole(sizes: list[int], criterion: str, data: Sequences, n_fits: int) -> Whole:
    """Return the plan of all fits, for progress; their work grows with the number of states."""
    _, n_of_size = _fits_of_size(criterion, data, n_fits)
    last = [max(sizes)] if criterion == "held_out" else []
    return Whole(float(n_of_size * sum(sizes) + sum(last)), n_of_size * len(sizes) + len(last))


# ---- criteria --------------------------------------------------------------------------------------------------------


def _by_bic(base: HMM, data: Sequences, seeds: list[int]) -> Results:
    return ((found.bic(data), found) for found in (fit(base, data, Annotations(), seed, n_init=1) for seed in seeds))


def _by_aic(base: HMM, data: Sequences, seeds: list[int]) -> Results:
    return ((found.aic(data), found) for found in (fit(base, data, Annotations(), seed, n_init=1) for seed in seeds))


def _by_bound(base: HMM, data: Sequences, seeds: list[int]) -> Results:
    return (
        (found.runs_[0].objective, found)
        for found in (fit(base, data, Annotations(), seed, n_init=1) for seed in seeds)
    )


def _by_held_out(base: HMM, data: Sequences, seeds: list[int]) -> Results:
    return held_out(base, data, Annotations(), seeds)


#: Function that computes each criterion, and 1 if larger is better, −1 if smaller is.
_CRITERIA: dict[str, tuple[Callable[[HMM, Sequences, list[int]], Results], int]] = {
    "bic": (_by_bic, -1),
    "aic": (_by_aic, -1),
    "held_out": (_by_held_out, 1),
    "bound": (_by_bound, 1),
}


# ---- settings --------------------------------------------------------------------------------------------------------


def _checked_sizes(states: Iterable[int]) -> list[int]:
    sizes = [int(size) for size in states]
    if not sizes or min(sizes) < 1 or len(set(sizes)) < len(sizes):
        raise InputError(f"states must be different numbers of at least 1; given {sizes}.")
    return sizes
