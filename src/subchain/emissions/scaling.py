"""Vectorised exponentials of log likelihoods, each column divided by its largest entry."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64
from numba.extending import overload
from numpy.typing import NDArray

from subchain.numerics.linking import linked
from subchain.numerics.vectors import WIDTH, exponential, first, largest, load, minus, store, width

#: Columns per strip: small enough to stay in the first-level cache for the two visits.
STRIP = 320

#: Fused multiply-add is allowed, reordering is not: the exponential depends on the order of its operations.
kernel = linked(fastmath={"contract"}, error_model="numpy")


def doubles_like(table: NDArray[Any]) -> NDArray[np.float64]:
    """Return a table of doubles of the same shape: the table itself if it is one, else one that is undefined."""
    return table if table.dtype == np.float64 else np.empty(table.shape)


@overload(doubles_like)
def _doubles_like(table):
    if table.dtype == float64:
        return lambda table: table
    return lambda table: np.empty(table.shape)


@kernel
def _scale_columns(logs, at, mask, shifts, column):
    """Write the largest entries of a vector of columns from `at` on into `shifts` (1, n) from `column` on."""
    best = load(logs, 0, at, mask)
    for k in range(1, logs.shape[0]):
        best = largest(best, load(logs, k, at, mask))
    store(shifts, 0, column, mask, best)


@kernel
def _scaled(logs, k, at, mask, shifts, column, out):
    """Write exp(log − shift) of a vector of columns, as far as it can be done at once."""
    values = minus(load(logs, k, at, mask), load(shifts, 0, column, mask))
    store(out, k, column, mask, exponential(values) if width(out) == WIDTH else values)


@kernel
def exponentiate_strip(logs, at, out, start, stop, shifts):
    """Write likelihoods into the columns `start` to `stop` of `out` (K, n), and their shifts into `shifts` (1, n).

    Their logarithms are in as many columns of `logs` from `at` on, which may be the same. Differences are taken in
    doubles, exponentials in the floating type of `out`.
    """
    ahead = at - start
    whole = stop - (stop - start) % WIDTH
    for column in range(start, whole, WIDTH):
        _scale_columns(logs, ahead + column, None, shifts, column)
    if whole < stop:
        _scale_columns(logs, ahead + whole, first(stop - whole), shifts, whole)
    for column in range(start, stop):
        if shifts[0, column] == -np.inf:
            shifts[0, column] = 0.0
    for k in range(out.shape[0]):
        for column in range(start, whole, WIDTH):
            _scaled(logs, k, ahead + column, None, shifts, column, out)
        if whole < stop:
            _scaled(logs, k, ahead + whole, first(stop - whole), shifts, whole, out)
        if width(out) > WIDTH:
            _exponentiate_row(out, k, start, stop)


@kernel
def _exponentiate_row(table, k, start, stop):
    """Exponentiate some columns of a row in place."""
    whole = stop - (stop - start) % width(table)
    for column in range(start, whole, width(table)):
        store(table, k, column, None, exponential(load(table, k, column, None)))
    if whole < stop:
        mask = first(stop - whole, table)
        store(table, k, whole, mask, exponential(load(table, k, whole, mask)))


@kernel
def exponentiate_columns(table, shifts):
    """Exponentiate all columns of doubles in place and write their largest entries into `shifts` (1, n)."""
    for start in range(0, table.shape[1], STRIP):
        exponentiate_strip(table, start, table, start, min(start + STRIP, table.shape[1]), shifts)


def exponentiate_in_place(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn log likelihoods (K, n) into likelihoods divided by exp(shift), in place, and return shift (n,).

    The shift is the largest entry of each column. A column of −inf becomes zeros and has shift 0.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.emissions.scaling import exponentiate_in_place
    >>> table = np.array([[-3.0], [-3.0 - np.log(4.0)], [-900.0]])
    >>> exponentiate_in_place(table), table.round(12).T
    (array([-3.]), array([[1.  , 0.25, 0.  ]]))
    """
    shifts = np.empty((1, table.shape[1]))
    exponentiate_columns(table, shifts)
    return shifts[0]
