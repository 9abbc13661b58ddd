"""Formatting of numbers as short text for people."""

from __future__ import annotations

import math

from subchain.tasks import numbers

#: Sizes beyond which numbers are written with powers of ten.
SMALL_SPREAD, LARGE = 1e-5, 1e9
#: Raised digits for powers of ten.
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def count(n: float) -> str:
    """Return a number rounded to an integer, with commas between thousands.

    Examples
    --------
    >>> count(1234567)
    '1,234,567'
    """
    return _signed(f"{round(n):,}")


def several(n: int, one: str, many: str | None = None) -> str:
    """Return a number with a noun in the singular or plural.

    Examples
    --------
    >>> several(1, "state"), several(3, "state")
    ('1 state', '3 states')
    """
    return f"{count(n)} {one if n == 1 else many or one + 's'}"


def number(value: float, digits: int = 4) -> str:
    """Return a number with four significant digits, or more before the decimal point.

    Examples
    --------
    >>> number(12345.678), number(-0.00012), number(1.4e-05), number(-0.0), number(float("inf"))
    ('12,346', '−0.00012', '1.4 × 10⁻⁵', '0', '∞')
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "–"
    if value == 0.0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if not -5 < size < 9:
        power = f"{value:.{digits - 1}e}".split("e")
        return f"{_signed(power[0].rstrip('0').rstrip('.'))} × 10{str(int(power[1])).translate(RAISED)}"
    places = max(0, digits - 1 - size)
    text = f"{value:,.{places}f}"
    return _signed(text.rstrip("0").rstrip(".") if places else text)


def with_spread(mean: float, spread: float) -> str:
    """Return mean ± standard deviation, both rounded to two significant digits of the latter.

    Examples
    --------
    >>> with_spread(-0.00008, 0.0421), with_spread(1224.5, 192.0), with_spread(-5.0, 2.0)
    ('0.000 ± 0.042', '1,220 ± 190', '−5.0 ± 2.0')
    """
    if not (SMALL_SPREAD <= spread < math.inf and abs(mean) < LARGE):
        return f"{number(mean)} ± {number(spread, 2)}"
    return _signed(numbers.with_spread(mean, spread))


def mean_beside(mean: float, spread: float) -> str:
    """Return a mean, rounded as in `with_spread` but without the standard deviation.

    Examples
    --------
    >>> mean_beside(-0.00724, 0.45), mean_beside(4.0, 0.0)
    ('−0.01', '4')
    """
    return with_spread(mean, spread).split(" ± ")[0] if spread > 0.0 else number(mean, 3)


def bits(value: float) -> str:
    """Return an entropy in bits.

    Examples
    --------
    >>> bits(0.5231), bits(1.4e-05), bits(0.0)
    ('0.52 bits', 'below 0.001 bits', '0 bits')
    """
    return "below 0.001 bits" if 0.0 < value < 0.001 else f"{number(value, 2)} bits"


def share(value: float) -> str:
    """Return a fraction as a percentage.

    Examples
    --------
    >>> share(0.1234), share(0.00004), share(1.0), share(0.99999)
    ('12.3 %', '< 0.01 %', '100 %', '> 99.99 %')
    """
    if value < 1e-4:
        return "< 0.01 %" if value > 0.0 else "0 %"
    if 0.9999 < value < 1.0:
        return "> 99.99 %"
    digits = 4 if 0.995 <= value < 1.0 else 3
    return f"{100 * value:.{digits}g} %" if value >= 0.001 else f"{100 * value:.2f} %"


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


def _signed(text: str) -> str:
    """Return a formatted number with a minus sign, and without one if all digits are zero."""
    if not text.startswith("-"):
        return text
    return f"−{text[1:]}" if any(digit in "123456789" for digit in text) else text[1:]
