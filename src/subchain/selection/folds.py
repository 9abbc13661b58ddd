"""Data in folds: each is held out once, and what is scored is how probable a model finds it that has not seen it.

Whole sequences are held out where there are several. A single chain is held out in blocks, which the fit sees as
missing; what is scored is the probability of all held-out blocks together, given the rest. What is known of the states
goes with the data: of held-out data it is part of what is scored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.components import clone
from subchain.data import Sequences
from subchain.data.dtypes import signed
from subchain.emissions import Categorical, Emission, Product, resolve_emission
from subchain.emissions.moments import RealEmission
from subchain.errors import InputError
from subchain.models.hmm import HMM
from subchain.selection.known import Known

#: Blocks of a single chain that each fold holds out.
BLOCKS = 10

Results = Iterator[tuple[float, HMM]]


def fit(base: HMM, data: Sequences, known: Known, seed: int, validation: Any = None, **settings: Any) -> HMM:
    """A copy of the model, fitted; an interruption ends the search that asked for it, and not just this fit."""
    fresh: HMM = clone(base).set_params(random_state=seed, **settings)
    fresh.fit(data, validation=validation, **known._asdict())
    if fresh.status_ == "interrupted":
        raise KeyboardInterrupt
    return fresh


def held_out(base: HMM, data: Sequences, known: Known, seeds: list[int]) -> Results:
    """The log likelihood per observation of each fold, and the model that has not seen it; one fold a seed."""
    return (_held_out_sequences if data.n_sequences > 1 else _held_out_blocks)(base, data, known, seeds)


def _held_out_sequences(base: HMM, data: Sequences, known: Known, seeds: list[int]) -> Results:
    """Hold out every k-th sequence, k being the number of seeds."""
    fold_of = np.arange(data.n_sequences) % len(seeds)
    for fold, seed in enumerate(seeds[: data.n_sequences]):
        seen, unseen = fold_of != fold, fold_of == fold
        found = fit(base, data[seen], known.take(data, seen), seed)
        yield _per_observation(found, data[unseen], known.take(data, unseen)), found


def _per_observation(model: HMM, data: Sequences, known: Known) -> float:
    scores, weights = model.score_sequences(data, **known.of_states), known.weights(data)
    counted = weights > 0.0
    return float((weights * scores)[counted].sum() / max((weights * data.lengths).sum(), 1.0))


def _held_out_blocks(base: HMM, data: Sequences, known: Known, seeds: list[int]) -> Results:
    """Hide every k-th block from the fit; its probability is that of all data over that of those not hidden."""
    data = _with_room_for_missing(data, resolve_emission(base.emission))
    length = max(1, data.n_observations // (BLOCKS * len(seeds)))
    fold_of = np.arange(data.n_observations) // length % len(seeds)
    for fold in range(min(len(seeds), int(fold_of.max()) + 1)):
        shown = _hide(data, fold_of == fold)
        found = fit(base, shown, known, seeds[fold])
        gain = found.score(data, **known.of_states) - found.score(shown, **known.of_states)
        yield gain / int((fold_of == fold).sum()), found


# ---- data ------------------------------------------------------------------------------------------------------------


def settled(emission: str | Emission, data: Sequences, n_states: int = 1) -> Emission:
    """The family with the number of symbols that all data have, of which a part of them may not show every one."""
    family: Emission = clone(resolve_emission(emission))
    prepared = family.prepare(data)
    family.check(prepared)
    parameters: Any = family.prior(prepared, n_states, flat=False).mean()
    for name, part in parts(family).items():
        if isinstance(part, Categorical):
            found = parameters[name] if isinstance(family, Product) else parameters
            part.set_params(n_categories=found.n_categories)
    return family


def parts(family: Emission) -> dict[str, Emission]:
    """The families that a family is made of, by name."""
    return family.families if isinstance(family, Product) else {"": family}


def _with_room_for_missing(data: Sequences, family: Emission) -> Sequences:
    """Whole numbers as floating numbers where a family takes −1 for a number, so that nan can stand for missing."""
    if data.values.dtype.kind == "f" or not any(isinstance(part, RealEmission) for part in parts(family).values()):
        return data
    table = data.select(None).astype(np.float64)
    for part in parts(family).values():
        if not isinstance(part, RealEmission):
            columns = data.column_indices(part.columns)
            table[:, columns] = np.where(table[:, columns] == -1.0, np.nan, table[:, columns])
    return _with_values(data, table.reshape(data.values.shape))


def _hide(data: Sequences, rows: NDArray[np.bool_]) -> Sequences:
    kind = data.values.dtype
    values = np.array(data.values, dtype=kind if kind.kind == "f" else signed(kind))
    values[rows] = np.nan if kind.kind == "f" else -1
    return _with_values(data, values)


def _with_values(data: Sequences, values: NDArray[Any]) -> Sequences:
    return Sequences(values, data.offsets, columns=data.columns, names=data.names, vocabulary=data.vocabularies)


def at_least(name: str, given: Any, least: int) -> int:
    """A setting that counts something."""
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < least:
        raise InputError(f"{name} must be a whole number of at least {least}, not {given!r}.")
    return int(given)
