"""Selection of columns by name or number."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError, unknown_name

Columns = str | int | Iterable[str | int]
#: Place of a name that several columns have.
SEVERAL = -1


def resolve_columns(columns: Columns | None, names: Sequence[str] | None, n_columns: int) -> NDArray[np.int64]:
    """Return the numbers of columns given by name or number, (n,); None means all columns."""
    if columns is None:
        return np.arange(n_columns)
    if not isinstance(columns, (str, int, np.integer, Iterable)):
        raise InputError(f"columns must be names or numbers of columns, not {columns!r}.")
    if isinstance(columns, np.ndarray) and columns.ndim != 1:
        raise InputError(f"columns must be a flat list of names or numbers, not an array of shape {columns.shape}.")
    wanted = [columns] if isinstance(columns, (str, int, np.integer)) else list(columns)
    if not wanted:
        raise InputError("no column is chosen; name at least one, or leave columns out to take all.")
    indices = _indices(wanted, names, n_columns)
    twice = first_repeated(indices)
    if twice is not None:
        raise InputError(f"column {wanted[twice]!r} is chosen twice; name each column once.")
    return np.array(indices, dtype=np.int64)


def first_repeated(items: Sequence[Any]) -> int | None:
    """Return the index of the first item that occurs earlier too; None if all differ."""
    seen = set()
    for index, item in enumerate(items):
        if item in seen:
            return index
        seen.add(item)
    return None


def as_slice(indices: NDArray[np.int64]) -> slice | NDArray[np.int64]:
    """Return equally spaced, increasing indices as a slice, which selects a view instead of a copy."""
    steps = np.diff(indices)
    if len(steps) == 0:
        return slice(indices[0], indices[0] + 1)
    if steps[0] > 0 and (steps == steps[0]).all():
        return slice(indices[0], indices[-1] + 1, steps[0])
    return indices


def _indices(wanted: list[str | int], names: Sequence[str] | None, n_columns: int) -> list[int]:
    places: dict[str, int] = {}
    for index, name in enumerate(names or ()):
        places[name] = SEVERAL if name in places else index
    return [
        _named(column, places, n_columns) if isinstance(column, str) else _numbered(column, n_columns)
        for column in wanted
    ]


def _named(column: str, places: dict[str, int], n_columns: int) -> int:
    if not places:
        raise InputError(
            f"column {column!r} was given by name, but the {n_columns} columns have no names; give its number."
        )
    if column not in places:
        raise unknown_name("column", column, places)
    if places[column] == SEVERAL:
        raise InputError(f"several columns are called {column!r}; choose by number, or rename them.")
    return places[column]


def _numbered(column: int, n_columns: int) -> int:
    try:
        index = operator.index(column)
    except TypeError:
        raise InputError(f"columns are chosen by name or number, not by {column!r}.") from None
    if not -n_columns <= index < n_columns:
        raise InputError(f"column {index} does not exist; there are {n_columns} columns, 0 to {n_columns - 1}.")
    return index % n_columns
