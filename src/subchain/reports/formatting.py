"""Formatting of numbers as short text."""

from __future__ import annotations

import math


def count(n: float) -> str:
    """Return a number rounded to an integer, with thin spaces between thousands.

    Examples
    --------
    >>> count(1234567)
    '1\u202f234\u202f567'
    """
    return f"{round(n):,}".replace(",", "\u202f")


def several(n: int, one: str, many: str | None = None) -> str:
    """Return a number with a noun in the singular or plural.

    Examples
    --------
    >>> several(1, "state"), several(3, "state")
    ('1 state', '3 states')
    """
    return f"{count(n)} {one if n == 1 else many or one + 's'}"


def number(value: float) -> str:
    """Return a number with four significant digits.

    Examples
    --------
    >>> number(12345.678), number(0.00012), number(float("inf"))
    ('12346', '0.00012', '∞')
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "–"
    text = f"{value:.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
    return text.replace("-", "−")


def with_spread(mean: float, spread: float) -> str:
    """Return mean ± standard deviation, with the decimals of two significant digits of the latter.

    Examples
    --------
    >>> with_spread(-0.00008, 0.0421), with_spread(1234.5, 25.0)
    ('−0.000 ± 0.042', '1234 ± 25')
    """
    if not (math.isfinite(spread) and spread > 0.0 and abs(mean) < 1e9):
        return f"{number(mean)} ± {number(spread)}"
    digits = max(0, 1 - math.floor(math.log10(spread)))
    if digits > 6:
        return f"{number(mean)} ± {spread:.2g}"
    return f"{mean:.{digits}f} ± {spread:.{digits}f}".replace("-", "−")


def share(value: float) -> str:
    """Return a fraction as a percentage.

    Examples
    --------
    >>> share(0.1234), share(0.00004), share(1.0)
    ('12.3 %', '< 0.01 %', '100 %')
    """
    if value < 1e-4:
        return "< 0.01 %" if value > 0.0 else "0 %"
    return f"{100 * value:.3g} %" if value >= 0.001 else f"{100 * value:.2f} %"


def shortened(name: str, longest: int) -> str:
    """Return a name of at most `longest` characters; the middle is cut, since names often differ at their ends.

    Examples
    --------
    >>> shortened("histone_mark_H3K4me1", 12), shortened("H3K4me1", 12)
    ('histon…K4me1', 'H3K4me1')
    """
    if len(name) <= longest:
        return name
    end = (longest - 1) // 2
    return f"{name[: longest - 1 - end]}…{name[-end:]}"


def seconds(value: float) -> str:
    """Return a duration given in seconds as text.

    Examples
    --------
    >>> seconds(0.25), seconds(75.0), seconds(7300.0)
    ('0.25 s', '1 min 15 s', '2 h 1 min')
    """
    if value < 60.0:
        return f"{value:.2g} s" if value < 10.0 else f"{value:.0f} s"
    if value < 3600.0:
        return f"{int(value // 60)} min {int(value % 60)} s"
    return f"{int(value // 3600)} h {int(value % 3600 // 60)} min"
