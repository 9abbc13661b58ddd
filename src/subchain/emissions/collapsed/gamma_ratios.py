"""Ratios of gamma functions for kernels, which need one at a time and often.

A difference of two log gamma functions loses digits where both are large, and each of them takes as long as ten
logarithms. Ratios whose arguments differ by few steps are products; all others have series of their own.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from subchain.propagation.collapsed.rows import scaled_log
from subchain.propagation.compiled import ordered_part

#: From here on five terms of the series of log Γ(x + ½) − log Γ(x) are exact to rounding.
LARGE = 16.0
#: From here on two terms of Stirling's series are.
STIRLING = 1e3


@ordered_part
def half_step(x):
    """Γ(x + ½) / Γ(x) for positive x."""
    product = 1.0
    while x < LARGE:
        product *= x / (x + 0.5)
        x += 1.0
    r = 1.0 / x
    s = r * r
    series = -r * (1.0 / 8 - s * (1.0 / 192 - s * (1.0 / 640 - s * (17.0 / 14336 - s * (31.0 / 18432)))))
    return product * math.sqrt(x) * math.exp(series)


@ordered_part
def log_half_steps(x, n):
    """log Γ(x + n / 2) − log Γ(x) for positive x and a whole number n."""
    product, log_total = 1.0, 0.0
    for step in range(n // 2):
        product, log_total = scaled_log(product * (x + step), log_total)
    if n % 2:
        product *= half_step(x + n // 2)
    return log_total + math.log(product)


@ordered_part
def log_rising(x, n):
    """log Γ(x + n) − log Γ(x) for positive x and many steps n."""
    if x <= STIRLING:
        return math.lgamma(x + n) - math.lgamma(x)
    top = x + n
    tail = (1.0 / top - 1.0 / x) / 12.0 - (top**-3.0 - x**-3.0) / 360.0
    return (top - 0.5) * np.log1p(n / x) + n * (math.log(x) - 1.0) + tail
