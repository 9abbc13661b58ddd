"""Numbers for people: no more digits than they mean, thousands separated, no minus zero."""

from __future__ import annotations

import math

#: Decimals beyond which a number is written with an exponent.
MOST_DECIMALS = 6


def rounded(value: float, decimals: int) -> str:
    """Return a number with so many decimals, or rounded to tens, hundreds … if these are negative.

    Examples
    --------
    >>> rounded(-0.04, 1), rounded(1223.4, -1), rounded(1234567.0, 0)
    ('0.0', '1,220', '1,234,567')
    """
    nearest = round(value, decimals)
    return f"{nearest + 0.0 if nearest else 0.0:,.{max(decimals, 0)}f}"


def significant(value: float, digits: int = 4) -> str:
    """Return a number with so many significant digits; all digits before the decimal point are kept.

    Examples
    --------
    >>> significant(1234567.8), significant(0.012345), significant(-0.0), significant(1.4e-9)
    ('1,234,568', '0.01235', '0', '1.4e-09')
    """
    if not math.isfinite(value) or value == 0.0:
        return f"{value + 0.0:g}" if value else "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    if decimals > MOST_DECIMALS + 2 or abs(value) >= 1e12:
        return f"{value:.{digits}g}"
    text = rounded(value, max(decimals, 0))
    return text.rstrip("0").rstrip(".") if "." in text else text


def with_spread(mean: float, spread: float) -> str:
    """Return mean ± standard deviation, both to the place of the second significant digit of the latter.

    Examples
    --------
    >>> with_spread(1223.4, 187.2), with_spread(-0.0014, 0.49), with_spread(9.0, 3.0)
    ('1,220 ± 190', '0.00 ± 0.49', '9.0 ± 3.0')
    """
    if not (math.isfinite(spread) and spread > 0.0 and math.isfinite(mean)):
        return f"{significant(mean)} ± {significant(spread, 2)}"
    decimals = 1 - math.floor(math.log10(spread))
    if decimals > MOST_DECIMALS or max(abs(mean), spread) >= 1e12:
        return f"{mean:.{max(4, min(decimals, 12))}g} ± {spread:.2g}"
    return f"{rounded(mean, decimals)} ± {rounded(spread, decimals)}"


def dwell(positions: float) -> str:
    """Return a dwell time in positions; a state that is never left says so.

    Examples
    --------
    >>> dwell(18.82), dwell(12345.6), dwell(float("inf"))
    ('18.8', '12,346', 'never left')
    """
    return "never left" if math.isinf(positions) else rounded(positions, 1 if positions < 100.0 else 0)
