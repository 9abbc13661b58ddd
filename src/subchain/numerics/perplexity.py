"""Perplexity: the inverse geometric mean of probabilities."""

from __future__ import annotations

import math
import sys


def perplexity(total: float, n: int) -> float:
    """Return exp(-total / n) for a total log probability of n tokens; infinity where that is beyond doubles."""
    mean = -total / n
    return math.exp(mean) if mean < math.log(sys.float_info.max) else math.inf
