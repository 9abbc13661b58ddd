"""Cross-validation: held-out log likelihoods per observation.

With several sequences, whole sequences are held out. A single sequence is held out in blocks, which are missing during
the fit; the score is the joint log probability of all held-out blocks given the rest. Evidence about the states is
divided like the data; evidence about held-out data is used when they are scored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.components import clone
from subchain.data import Sequences, as_sequences
from subchain.data.annotations import Annotations
from subchain.data.dtypes import signed
from subchain.emissions import Categorical, Emission, Product
from subchain.emissions.choice import coded_numbers, emission_for
from subchain.emissions.moments import RealEmission
from subchain.errors import InputError
from subchain.models.hmm import HMM

#: Number of blocks of a single sequence that each fold holds out.
BLOCKS = 10

Results = Iterator[tuple[float, HMM]]


def fit(base: HMM, data: Sequences, known: Annotations, seed: int, validation: Any = None, **settings: Any) -> HMM:
    """Return a fitted copy of the model; raise KeyboardInterrupt if the fit was interrupted, to end the search."""
    fresh: HMM = clone(base).set_params(random_state=seed, **settings)
    fresh.fit(data, validation=validation, **known._asdict())
    if fresh.status_ == "interrupted":
        raise KeyboardInterrupt
    return fresh


def held_out(base: HMM, data: Sequences, known: Annotations, seeds: list[int]) -> Results:
    """Yield the held-out log likelihood per observation and the fitted model of each fold; one fold per seed."""
    return (_held_out_sequences if data.n_sequences > 1 else _held_out_blocks)(base, data, known, seeds)


def _held_out_sequences(base: HMM, data: Sequences, known: Annotations, seeds: list[int]) -> Results:
    """Hold out every k-th sequence, where k is the number of seeds."""
    fold_of = np.arange(data.n_sequences) % len(seeds)
    for fold, seed in enumerate(seeds[: data.n_sequences]):
        seen, unseen = fold_of != fold, fold_of == fold
        found = fit(base, data[seen], known.take(data, seen), seed)
        yield _per_observation(found, data[unseen], known.take(data, unseen)), found


def _per_observation(model: HMM, data: Sequences, known: Annotations) -> float:
    """Return the weighted log likelihood per observation."""
    scores, weights = model.score_sequences(data, **known.of_states), known.weights(data)
    counted = weights > 0.0
    return float((weights * scores)[counted].sum() / max((weights * data.lengths).sum(), 1.0))


def _held_out_blocks(base: HMM, data: Sequences, known: Annotations, seeds: list[int]) -> Results:
    """Hide every k-th block from the fit; its probability is that of all data divided by that of the shown data."""
    data = _with_room_for_missing(data, emission_for(base.emission, data).emission)
    length = max(1, data.n_observations // (BLOCKS * len(seeds)))
    fold_of = np.arange(data.n_observations) // length % len(seeds)
    for fold in range(min(len(seeds), int(fold_of.max()) + 1)):
        shown = _hide(data, fold_of == fold)
        found = fit(base, shown, known, seeds[fold])
        gain = found.score(data, **known.of_states) - found.score(shown, **known.of_states)
        yield gain / int((fold_of == fold).sum()), found


# ---- data ------------------------------------------------------------------------------------------------------------


def data_for(model: HMM, x: Any) -> Sequences:
    """Return data as the family of a model takes them, whole, so that all folds have the same codes."""
    if not isinstance(model, HMM):
        raise InputError(f"model must be an HMM, not {model!r}.")
    data = as_sequences(x)
    return coded_numbers(emission_for(model.emission, data).emission, data)


def with_all_symbols(emission: str | Emission, data: Sequences, n_states: int = 1) -> Emission:
    """Return the family with the number of symbols in all data fixed, since not every fold contains all symbols."""
    family: Emission = clone(emission_for(emission, data).emission)
    prepared = family.prepare(data)
    family.check(prepared)
    parameters: Any = family.prior(prepared, n_states, flat=False).mean()
    for name, part in parts(family).items():
        if isinstance(part, Categorical):
            found = parameters[name] if isinstance(family, Product) else parameters
            part.set_params(n_categories=found.n_categories)
    return family


def parts(family: Emission) -> dict[str, Emission]:
    """Return the families of a `Product` by name; a single family has the empty name."""
    return family.families if isinstance(family, Product) else {"": family}


def _with_room_for_missing(data: Sequences, family: Emission) -> Sequences:
    """Convert integers to floats if a family takes −1 as a number, so that nan can mark missing values."""
    if data.values.dtype.kind == "f" or not any(isinstance(part, RealEmission) for part in parts(family).values()):
        return data
    table = data.select(None).astype(np.float64)
    for part in parts(family).values():
        if not isinstance(part, RealEmission):
            columns = data.column_indices(part.columns)
            table[:, columns] = np.where(table[:, columns] == -1.0, np.nan, table[:, columns])
    return _with_values(data, table.reshape(data.values.shape))


def _hide(data: Sequences, rows: NDArray[np.bool_]) -> Sequences:
    """Return a copy of the data in which some rows, (N,), are missing."""
    kind = data.values.dtype
    values = np.array(data.values, dtype=kind if kind.kind == "f" else signed(kind))
    values[rows] = np.nan if kind.kind == "f" else -1
    return _with_values(data, values)


def _with_values(data: Sequences, values: NDArray[Any]) -> Sequences:
    return Sequences(values, data.offsets, columns=data.columns, names=data.names, vocabulary=data.vocabularies)


def at_least(name: str, given: Any, least: int) -> int:
    """Return an integer setting; raise an `InputError` that names it if it is below `least`."""
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < least:
        raise InputError(f"{name} must be a whole number of at least {least}, not {given!r}.")
    return int(given)
