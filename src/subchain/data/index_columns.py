"""Columns of a table that say where a row is, not what was observed: dates, times, numbers of rows, names of sequences.

Dates, times and numbers of rows are left out unless they are chosen, with a warning that names them. A column that
seems to name the sequences is observed, with a warning: only the user knows whether it does.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.sniffing import is_date

#: A column of numbers is judged only if it has at least so many rows.
FEWEST_ROWS = 20
#: Names of columns that number the rows if they increase, even in unequal steps.
INDEX_NAMES = frozenset({"", "unnamed: 0", "index", "row", "date", "day", "time", "timestamp", "datetime", "year", "t"})
#: Number of cells by which a column of texts is recognised as dates, and the share that must be dates.
SAMPLE, MOST = 200, 0.9
#: Relative difference of steps that are equal up to rounding.
ROUNDING = 1e-6


def without_index(table: Any, names: list[str], sequence: str | None) -> list[str]:
    """Return the names of an Arrow table's columns without those of dates and of numbers of rows.

    Columns that name the sequences do not count. If no other column is left, all names are returned.
    """
    places = places_of(table)
    ids = None if sequence is None else table.column(places[sequence])
    left_out = {}
    for name in names:
        why = _why_index(table.column(places[name]), name, ids)
        if why is not None:
            left_out[name] = why
    kept = [name for name in names if name not in left_out]
    if not kept:
        return names
    for name, why in left_out.items():
        warnings.warn(f"column {name!r} {why} and is left out; choose it with columns= to observe it.", stacklevel=6)
    return kept


def warn_of_sequence_names(table: Any, names: list[str]) -> None:
    """Warn if a column of strings or whole numbers is constant over long stretches, each value in one of them."""
    from pyarrow import types

    places = places_of(table)
    for name in names:
        column = table.column(places[name])
        is_text = types.is_string(column.type) or types.is_large_string(column.type)
        if column.null_count or not (is_text or types.is_integer(column.type)):
            continue
        codes = _codes(column)
        n_values, n_stretches = len(np.unique(codes)), 1 + np.count_nonzero(np.diff(codes))
        if 2 <= n_values == n_stretches <= len(codes) // FEWEST_ROWS and len(names) > 1:
            warnings.warn(
                f"column {name!r} has {n_values} values, each in one stretch of rows, and is observed. If it names the "
                f"sequences, choose it with sequence={name!r}.",
                stacklevel=6,
            )


def places_of(table: Any) -> dict[str, int]:
    """Return the numbers of a table's columns by their names; Arrow makes a list of all names at every look."""
    return {name: index for index, name in enumerate(table.column_names)}


def _why_index(column: Any, name: str, ids: Any) -> str | None:
    """Return what makes a column an index, in words; None if nothing does."""
    from pyarrow import types

    kind = column.type
    if types.is_temporal(kind):
        return "holds dates or times"
    if types.is_string(kind) or types.is_large_string(kind):
        cells = column.slice(0, SAMPLE).drop_null().to_pylist()
        return "holds dates or times" if cells and sum(map(is_date, cells)) >= MOST * len(cells) else None
    if not (types.is_integer(kind) or types.is_floating(kind)) or column.null_count or len(column) < FEWEST_ROWS:
        return None
    steps = _steps(np.asarray(column.to_numpy(), dtype=np.float64), ids)
    if not len(steps) or not (steps > 0).all():
        return None
    if np.ptp(steps) <= ROUNDING * np.abs(steps).max():
        return f"increases by {steps[0]:g} from row to row"
    return "increases from row to row" if name.strip().lower() in INDEX_NAMES else None


def _steps(values: NDArray[np.float64], ids: Any) -> NDArray[np.float64]:
    """Return the differences of neighbouring rows of the same sequence."""
    if ids is None:
        return np.diff(values)
    codes = _codes(ids)
    order = np.argsort(codes, kind="stable")
    return np.asarray(np.diff(values[order])[np.diff(codes[order]) == 0])


def _codes(column: Any) -> NDArray[np.int64]:
    """Return the number of each row's value, by first appearance; -1 for nulls."""
    encoded = column.combine_chunks().dictionary_encode().indices.fill_null(-1)
    return np.asarray(encoded.to_numpy(zero_copy_only=False), dtype=np.int64)
