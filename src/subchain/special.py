"""Digamma and log gamma of many positive numbers at once.

A variational posterior over a vocabulary needs both for every word and state in every iteration; computed together,
with one division and vectorised logarithms, they cost about a tenth of two library calls. The argument is raised by
recurrence to where the asymptotic series holds to full precision.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

#: Steps of the recurrence: Γ(x + 10) and ψ(x + 10) come from their series.
STEPS = 10
#: Beyond this the series holds without recurrence (and the product below would overflow for huge arguments).
LARGE = 1e4
HALF_LOG_TWO_PI = 0.9189385332046727


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "arcp"}, error_model="numpy")
def _raise_argument(x, raised, product, slope):  # type: ignore[no-untyped-def]
    """raised = x + STEPS, product = x (x+1) … (x+STEPS−1), slope = d log(product) / dx; large x stay."""
    for i in range(x.shape[0]):
        value = x[i] if x[i] < LARGE else 1.0
        p, dp = 1.0, 0.0
        for step in range(STEPS):
            factor = value + step
            dp = dp * factor + p
            p *= factor
        small = x[i] < LARGE
        raised[i] = x[i] + STEPS if small else x[i]
        product[i] = p if small else 1.0
        slope[i] = dp / p if small else 0.0


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "arcp"}, error_model="numpy")
def _series(y, log_y, log_product, slope, digamma, gammaln):  # type: ignore[no-untyped-def]
    for i in range(y.shape[0]):
        r = 1.0 / y[i]
        s = r * r
        tail = s * (
            1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * (691.0 / 32760)))))
        )
        digamma[i] = log_y[i] - 0.5 * r - tail - slope[i]
        stirling = r * (
            1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 - s * (1.0 / 1188 - s * (691.0 / 360360)))))
        )
        gammaln[i] = (y[i] - 0.5) * log_y[i] - y[i] + HALF_LOG_TWO_PI + stirling - log_product[i]


def digamma_and_gammaln(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """ψ(x) and log Γ(x) for positive x of any shape.

    Examples
    --------
    >>> digamma_and_gammaln(np.array([1.0, 4.0]))[1].round(6)
    array([0.      , 1.791759])
    """
    flat = np.ascontiguousarray(x, dtype=np.float64).ravel()
    raised, product, slope = np.empty_like(flat), np.empty_like(flat), np.empty_like(flat)
    _raise_argument(flat, raised, product, slope)
    digamma, gammaln = np.empty_like(flat), np.empty_like(flat)
    _series(raised, np.log(raised), np.log(product), slope, digamma, gammaln)
    return digamma.reshape(x.shape), gammaln.reshape(x.shape)
