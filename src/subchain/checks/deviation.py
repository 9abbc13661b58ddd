"""How far a number computed from data lies from the same number computed from simulations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Quantiles that bound the middle 95 per cent of the simulations.
LEVELS = (0.025, 0.975)
#: A number is far outside if it is beyond all simulations by more than this share of their range.
FAR = 0.5


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
    """Return whether a number is far outside the simulations (R,): beyond all by more than FAR of their range.

    For 50 simulations from a Gaussian this is about 4.5 standard deviations. The range makes room for skewed
    statistics, such as kurtosis, of which standard deviations say little.

    Examples
    --------
    >>> is_far(9.0, np.array([0.0, 1.0, 2.0])), is_far(3.0, np.array([0.0, 1.0, 2.0]))
    (True, False)
    """
    low, high = float(simulated.min()), float(simulated.max())
    room = FAR * (high - low) + 1e-12 * max(1.0, abs(observed))
    return observed < low - room or observed > high + room
