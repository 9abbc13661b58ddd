"""From log likelihoods to scaled likelihoods in place, in few passes.

The exponential of NumPy is vectorised, but ten times slower where its result is smaller than the smallest normal
number, which is the common case when states are far apart. Such entries are lifted to a harmless value first and become
exact zeros afterwards.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

STRIP = 512

#: Logarithm below which a likelihood, relative to the best state's, counts as zero.
LOWEST = -700.0
ALMOST_ZERO = float(np.exp(LOWEST)) * 1.000001

FASTMATH = {"contract", "reassoc", "nsz", "arcp", "afn"}  # nan and infinity keep their meaning


@njit(nogil=True, cache=True, fastmath=FASTMATH, error_model="numpy")
def _subtract_largest(table, shift):  # type: ignore[no-untyped-def]
    lifted = False
    for start in range(0, table.shape[1], STRIP):
        stop = min(start + STRIP, table.shape[1])
        largest = shift[start:stop]
        largest[:] = table[0][start:stop]
        for k in range(1, table.shape[0]):
            row = table[k][start:stop]
            for r in range(stop - start):
                value, old = row[r], largest[r]
                largest[r] = value if value > old else old
        for r in range(stop - start):
            value = largest[r]
            largest[r] = value if value > -np.inf else 0.0
        for k in range(table.shape[0]):
            row = table[k][start:stop]
            for r in range(stop - start):
                value = row[r] - largest[r]
                low = value < LOWEST
                lifted |= low
                row[r] = LOWEST if low else value
    return lifted


@njit(nogil=True, cache=True, fastmath=FASTMATH, error_model="numpy")
def _drop_lifted(table):  # type: ignore[no-untyped-def]
    for k in range(table.shape[0]):
        row = table[k]
        for r in range(table.shape[1]):
            value = row[r]
            row[r] = value if value > ALMOST_ZERO else 0.0


def exponentiate_in_place(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn log likelihoods (K, n) into likelihoods divided by exp(shift), shift (n,) being each column's largest entry.

    A column of −inf becomes zeros and has shift 0.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.emissions.scaling import exponentiate_in_place
    >>> table = np.array([[-3.0], [-3.0 - np.log(4.0)], [-900.0]])
    >>> exponentiate_in_place(table), table.round(12).T
    (array([-3.]), array([[1.  , 0.25, 0.  ]]))
    """
    shift = np.empty(table.shape[1])
    lifted = _subtract_largest(table, shift)
    np.exp(table, out=table)
    if lifted:
        _drop_lifted(table)
    return shift
