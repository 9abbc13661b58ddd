"""Expected numbers of tables in a Chinese restaurant franchise: draws from the parent behind the counted transitions.

Each of the c transitions j → k joins a table of that kind, or opens a new one with weight a = concentration · (parent
probability of k). The expected number of tables is a (ψ(a + c) − ψ(a)); the posterior of the parent depends on these
numbers.

In variational inference the count c is random. Its expectation is split at zero (thesis 5.35): no transitions give no
tables, and for c > 0 the formula is evaluated at the conditional mean E[c | c > 0].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.numerics.compilation import compiled

Array = NDArray[np.float64]

#: Steps of the recurrence that raises the argument of ψ(x + c) − ψ(x) to the range of the asymptotic series.
STEPS = 7
#: Coefficients of 1/x², 1/x⁴, … in log x − 1/(2x) − ψ(x).
_SERIES = (1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12)


@compiled(fastmath={"contract"}, error_model="numpy")
def _tables(base, counts, logarithms, out):  # type: ignore[no-untyped-def]
    """Write a (ψ(a + c) − ψ(a)) to `out`, (n,), as a sum of nonnegative terms, so that nothing cancels.

    `logarithms` holds log(1 + c / (a + STEPS)), which NumPy computes faster for a whole array.
    """
    for i in range(out.shape[0]):
        a, c = base[i], counts[i]
        if c <= 0.0:
            out[i] = 0.0
            continue
        rest = 0.0
        for step in range(1, STEPS, 2):  # two steps share one division
            p, q = (a + step) * (a + c + step), (a + step + 1) * (a + c + step + 1)
            rest += (p + q) / (p * q)
        low = a + STEPS
        high = low + c
        # difference quotient of the series between low and high
        r, s = 1.0 / (low * low), 1.0 / (high * high)
        value, slope = 0.0, 0.0
        for term in range(len(_SERIES) - 1, -1, -1):
            slope = slope * s + value
            value = value * r + _SERIES[term]
        slope = slope * s + value
        rest += 0.5 / (low * high) + slope * (low + high) * r * s
        out[i] = c / (a + c) + a * (rest * c + logarithms[i])


def expected_tables_of(base: ArrayLike, counts: ArrayLike) -> Array:
    """Return the expected number of tables given the counts, a (ψ(a + c) − ψ(a)).

    Counts need not be integers. The result is accurate to rounding for all arguments: it tends to one table as the base
    goes to zero, and to `counts` tables as the base goes to infinity.

    Parameters
    ----------
    base : a, concentration times parent probability, nonnegative; broadcasts with `counts`
    counts : c, numbers of transitions, nonnegative

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
    """Return the expected number of tables under random counts (thesis 5.35).

    With q = P(c > 0) = −expm1(−occurrence) this is q · a (ψ(a + counts / q) − ψ(a)). Since P(c > 0) ≤ E[c], q is
    clipped to `counts`, so that the conditional mean counts / q is at least 1.

    Parameters
    ----------
    base : a, concentration times parent probability, nonnegative; broadcasts with `counts`
    counts : E[c], expected numbers of transitions
    occurrence : −log P(c = 0), from `propagation.occurrence`

    Examples
    --------
    >>> expected_tables(1.0, [1.0, 1.0], [np.log(2.0), 1e9]).round(3)
    array([0.75, 1.  ])
    """
    expected = np.asarray(counts, dtype=np.float64)
    probability = np.minimum(-np.expm1(-np.asarray(occurrence, dtype=np.float64)), expected)
    conditional_mean = np.divide(expected, probability, out=np.zeros_like(probability), where=probability > 0.0)
    return np.asarray(np.maximum(probability, 0.0) * expected_tables_of(base, conditional_mean))
