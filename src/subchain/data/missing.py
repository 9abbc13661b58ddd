"""Missing values (-1 in integer data, nan in floating data) and invalid ones (infinite)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError

#: Number of values per block when a large array is scanned.
BLOCK_VALUES = 1 << 18


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the missing entries.

    Parameters
    ----------
    values : array, shape (n,) or (n, D)
        Integers (-1 is missing) or floating numbers (nan is missing).

    Returns
    -------
    array of bool, same shape

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.data import is_missing
    >>> is_missing(np.array([3, -1, 0]))
    array([False,  True, False])
    """
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "u":
        return np.zeros(values.shape, dtype=np.bool_)
    return np.asarray(values == -1)


def missing_rows(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the positions whose entries are all missing.

    Parameters
    ----------
    values : array, shape (n,) or (n, D)

    Returns
    -------
    array of bool, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.data import missing_rows
    >>> missing_rows(np.array([[1.0, np.nan], [np.nan, np.nan]]))
    array([False,  True])
    """
    missing = is_missing(values)
    return missing if values.ndim == 1 else np.asarray(missing.all(axis=1))


def count_missing(values: NDArray[Any]) -> int:
    """Return the number of missing entries; the values are scanned block by block.

    Integers that are below -1 somewhere are measurements, among which nothing is missing.

    Examples
    --------
    >>> import numpy as np
    >>> count_missing(np.array([3, -1, 0])), count_missing(np.array([3, -1, -2]))
    (1, 0)
    """
    rows = max(1, BLOCK_VALUES // max(1, values[:1].size))
    blocks = [values[start : start + rows] for start in range(0, len(values), rows)]
    if values.dtype.kind == "i" and any(int(block.min()) < -1 for block in blocks):
        return 0
    return sum(int(is_missing(np.asarray(block)).sum()) for block in blocks)


def empty_columns(values: NDArray[Any]) -> list[int]:
    """Return the numbers of the columns without any observation; an empty list for data without positions.

    The data are scanned block by block until every column has an observation.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.data import empty_columns
    >>> empty_columns(np.array([[1.0, np.nan], [np.nan, np.nan]]))
    [1]
    """
    table = values if values.ndim == 2 else values[:, None]
    empty = np.full(table.shape[1], len(table) > 0)
    rows = max(1, BLOCK_VALUES // max(1, table.shape[1]))
    for start in range(0, len(table), rows):
        empty &= is_missing(np.asarray(table[start : start + rows])).all(axis=0)
        if not empty.any():
            break
    return [int(column) for column in np.flatnonzero(empty)]


def check_finite(values: NDArray[Any], describe: Callable[[int], str] = "position {}".format) -> None:
    """Raise an `InputError` for infinite values; nan is allowed, as it means missing.

    The values are scanned block by block, so that a memory-mapped array is never loaded whole.

    Parameters
    ----------
    values : array, shape (n,) or (n, D)
    describe : callable
        Returns the description of a row number for the message; pass :meth:`Sequences.describe` to name the sequence.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.data import check_finite
    >>> check_finite(np.array([0.5, np.nan]))
    >>> check_finite(np.array([0.5, np.inf]))
    Traceback (most recent call last):
    ...
    subchain.errors.InputError: position 1 holds inf; ...
    """
    if values.dtype.kind != "f":
        return
    rows = max(1, BLOCK_VALUES // max(1, values[:1].size))
    for start in range(0, len(values), rows):
        infinite = np.isinf(values[start : start + rows])
        if infinite.any():
            row, *column = (int(i) for i in np.argwhere(infinite)[0])
            where = describe(start + row) + "".join(f", column {j}" for j in column)
            value = values[(start + row, *column)]
            raise InputError(f"{where} holds {value}; observations must be finite, or nan where they are missing.")
