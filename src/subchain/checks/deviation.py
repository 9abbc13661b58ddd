"""How far a number computed from data lies from the same number computed from simulations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Quantiles that bound the middle 95 per cent of the simulations.
LEVELS = (0.025, 0.975)
#: A number is far outside if it exceeds all simulations and is this many of their standard deviations from their mean.
FAR = 4.0


def deviation(observed: float, simulated: Array) -> float:
    """Return the distance of a number from the mean of simulations (R,), in their standard deviations.

    Examples
    --------
    >>> round(deviation(3.0, np.array([0.0, 1.0, 2.0])), 2)
    2.45
    """
    spread = float(np.std(simulated))
    away = float(observed - np.mean(simulated))
    if abs(away) <= 1e-12 * max(1.0, abs(observed)):
        return 0.0
    return away / spread if spread > 0.0 else float(np.copysign(np.inf, away))


def is_far(observed: float, simulated: Array) -> bool:
    """Return whether a number is far outside the simulations (R,): beyond all, and FAR standard deviations away.

    Under a model that fits, this happens less than once in a thousand numbers.

    Examples
    --------
    >>> is_far(9.0, np.array([0.0, 1.0, 2.0])), is_far(3.0, np.array([0.0, 1.0, 2.0]))
    (True, False)
    """
    is_beyond = observed < simulated.min() or observed > simulated.max()
    return bool(is_beyond and abs(deviation(observed, simulated)) > FAR)
