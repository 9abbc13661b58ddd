"""Tables: how many draws from the common parent stand behind the moves that are counted.

In a Chinese restaurant franchise a customer who makes the move j → k sits down at a table of that kind, or opens a new
one in proportion to a = concentration · (share of k at the top). With c customers the expected number of tables is
a (ψ(a + c) − ψ(a)); the top level learns from these numbers.

Under marginals the number of customers is not known. The expectation of the formula is taken apart (thesis 5.35): where
there are no customers there are no tables, and where there are some, the formula is taken at their mean number.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

#: ψ(x + c) − ψ(x) comes from a recurrence of so many steps and from the asymptotic series beyond.
STEPS = 7
#: Coefficients of 1/x², 1/x⁴, … in log x − 1/(2x) − ψ(x).
_SERIES = (1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12)


@njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
def _tables(base, counts, logarithms, out):  # type: ignore[no-untyped-def]
    """a (ψ(a + c) − ψ(a)) as a sum of terms none of which is negative, so that nothing cancels.

    `logarithms` are log(1 + c / (a + STEPS)), which the library computes for many at once.
    """
    for i in range(out.shape[0]):
        a, c = base[i], counts[i]
        if c <= 0.0:
            out[i] = 0.0
            continue
        rest = 0.0
        for step in range(1, STEPS, 2):  # two at a time, for one division
            p, q = (a + step) * (a + c + step), (a + step + 1) * (a + c + step + 1)
            rest += (p + q) / (p * q)
        low = a + STEPS
        high = low + c
        # of the series at two points, the difference quotient
        r, s = 1.0 / (low * low), 1.0 / (high * high)
        value, slope = 0.0, 0.0
        for term in range(len(_SERIES) - 1, -1, -1):
            slope = slope * s + value
            value = value * r + _SERIES[term]
        slope = slope * s + value
        rest += 0.5 / (low * high) + slope * (low + high) * r * s
        out[i] = c / (a + c) + a * (rest * c + logarithms[i])


def expected_tables_of(base: ArrayLike, counts: ArrayLike) -> Array:
    """Expected number of tables for customers that have been counted, a (ψ(a + c) − ψ(a)).

    Counts need not be whole. The result is right to rounding for the smallest and the largest arguments: one table as
    the base goes to zero, all of the customers as it goes to infinity.

    Parameters
    ----------
    base : concentration times the parent's share, not negative; broadcast
    counts : numbers of customers, not negative

    Examples
    --------
    >>> expected_tables_of([1.0, 1e-40], [[2.0], [0.0]])
    array([[1.5, 1. ],
           [0. , 0. ]])
    """
    spread = np.broadcast_arrays(np.asarray(base, dtype=np.float64), np.asarray(counts, dtype=np.float64))
    a, c = (np.ascontiguousarray(array).ravel() for array in spread)
    out = np.empty(len(a))
    _tables(a, c, np.log1p(c / (a + STEPS)), out)
    return out.reshape(spread[0].shape)


def expected_tables(base: ArrayLike, counts: ArrayLike, occurrence: ArrayLike) -> Array:
    """Expected number of tables for customers that are believed in (thesis 5.35).

    With q = −expm1(−occurrence) this is q · a (ψ(a + counts / q) − ψ(a)). There cannot be a better chance of a customer
    than there are customers on the average, so q is at most `counts`, and those who are there are at least one.

    Parameters
    ----------
    base : concentration times the parent's share, not negative; broadcast
    counts : expected numbers of customers
    occurrence : −log of the probability that there is none (`propagation.occurrence`)

    Examples
    --------
    >>> expected_tables(1.0, [1.0, 1.0], [np.log(2.0), 1e9]).round(3)
    array([0.75, 1.  ])
    """
    expected = np.asarray(counts, dtype=np.float64)
    probability = np.minimum(-np.expm1(-np.asarray(occurrence, dtype=np.float64)), expected)
    if_any = np.divide(expected, probability, out=np.zeros_like(probability), where=probability > 0.0)
    return np.asarray(np.maximum(probability, 0.0) * expected_tables_of(base, if_any))
