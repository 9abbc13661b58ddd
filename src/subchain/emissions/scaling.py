"""Vectorised exponentials of log likelihoods, each column divided by its largest entry, in place."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.linking import linked
from subchain.numerics.vectors import WIDTH, exponential, first, largest, load, minus, store

#: Columns per strip: small enough to stay in the first-level cache for the two visits.
STRIP = 320

#: Fused multiply-add is allowed, reordering is not: the exponential depends on the order of its operations.
kernel = linked(fastmath={"contract"}, error_model="numpy")


@kernel
def _scale_columns(table, at, mask, shifts):
    """Write the largest entry of a vector of columns from `at` on into `shifts` (1, n)."""
    best = load(table, 0, at, mask)
    for k in range(1, table.shape[0]):
        best = largest(best, load(table, k, at, mask))
    store(shifts, 0, at, mask, best)


@kernel
def exponentiate_strip(table, start, stop, shifts):
    """Exponentiate the columns from `start` to `stop` in place and write their largest entries into `shifts` (1, n)."""
    whole = stop - (stop - start) % WIDTH
    for at in range(start, whole, WIDTH):
        _scale_columns(table, at, None, shifts)
    if whole < stop:
        _scale_columns(table, whole, first(stop - whole), shifts)
    for column in range(start, stop):
        if shifts[0, column] == -np.inf:
            shifts[0, column] = 0.0
    for k in range(table.shape[0]):
        for at in range(start, whole, WIDTH):
            store(table, k, at, None, exponential(minus(load(table, k, at, None), load(shifts, 0, at, None))))
        if whole < stop:
            mask = first(stop - whole)
            store(table, k, whole, mask, exponential(minus(load(table, k, whole, mask), load(shifts, 0, whole, mask))))


@kernel
def exponentiate_columns(table, shifts):
    """Exponentiate all columns in place and write their largest entries into `shifts` (1, n)."""
    for start in range(0, table.shape[1], STRIP):
        exponentiate_strip(table, start, min(start + STRIP, table.shape[1]), shifts)


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
