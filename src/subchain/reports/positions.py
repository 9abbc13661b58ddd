"""Positions in physical units: base pairs, seconds, days.

Position i of every sequence is at offset + i · step. A page gives the start and the length of an interval, not its end,
so that it does not matter whether ends are inclusive.
"""

from __future__ import annotations

import dataclasses
import math
from decimal import Decimal
from typing import Any

import numpy as np

from subchain.errors import InputError
from subchain.reports import formatting

#: Maximum length of the name of a unit, and bounds of step and offset.
LONGEST, SMALLEST, LARGEST = 16, 1e-9, 1e12
#: Larger units, the largest first, and how many of the unit they hold.
LARGER: dict[str, list[tuple[str, float]]] = {
    "bp": [("Gb", 1e9), ("Mb", 1e6), ("kb", 1e3)],
    "ms": [("min", 60_000), ("s", 1e3)],
    "s": [("d", 86_400), ("h", 3_600), ("min", 60)],
    "min": [("d", 1_440), ("h", 60)],
    "h": [("d", 24)],
    "m": [("km", 1e3)],
    "Hz": [("MHz", 1e6), ("kHz", 1e3)],
}


@dataclasses.dataclass(frozen=True)
class Positions:
    """Conversion of positions to physical units.

    Attributes
    ----------
    step : distance of neighbouring positions
    unit : unit of `step` and `offset`; empty if they have none
    offset : coordinate of position 0

    Examples
    --------
    >>> Positions.read(step=200, unit="bp").several(12)
    '12 positions (2.4\xa0kb)'
    >>> Positions().several(12)
    '12 positions'
    """

    step: float = 1.0
    unit: str = ""
    offset: float = 0.0

    @classmethod
    def read(cls, step: Any = 1, unit: Any = None, offset: Any = 0) -> Positions:
        """Check the arguments of a report and return them as `Positions`."""
        if not (_is_number(step) and SMALLEST <= step <= LARGEST):
            bounds = f"between {SMALLEST:g} and {LARGEST:g}"
            raise InputError(f"step must be a number {bounds}, such as 200 or 0.02, not {step!r}.")
        if not (_is_number(offset) and abs(offset) <= LARGEST):
            raise InputError(f"offset must be a number of at most {LARGEST:g}, such as 0 or 5000, not {offset!r}.")
        if unit is not None and not (isinstance(unit, str) and unit.isprintable() and 0 < len(unit.strip()) <= LONGEST):
            raise InputError(f"unit must be text of at most {LONGEST} characters, such as 'bp' or 's', not {unit!r}.")
        return cls(float(step), "" if unit is None else unit.strip(), float(offset))

    @property
    def are_plain(self) -> bool:
        """Whether positions are plain numbers from 0, without unit."""
        return self == Positions()

    @property
    def digits(self) -> int:
        """Decimals that distinguish neighbouring positions: those of step and offset, at most two of a step."""
        enough = max(0, 1 - math.floor(math.log10(self.step)))
        return min(enough, max(_decimals(self.step), _decimals(self.offset)))

    def several(self, n: float) -> str:
        """Return a number of positions as text, with their length in units if these are not plain."""
        text = formatting.number(n, 3)
        plain = f"{text} position" if text == "1" else f"{text} positions"
        return plain if self.are_plain else f"{plain} ({self.length(n)})"

    def length(self, n: float) -> str:
        """Return the length of `n` positions, not necessarily an integer, in units as text."""
        value, unit = n * self.step, self.unit
        for larger, size in LARGER.get(self.unit, []):
            if value >= size:
                value, unit = value / size, larger
                break
        text = formatting.number(value, 3)
        return f"{text}\u00a0{unit}" if unit else text

    def as_json(self) -> dict[str, Any]:
        """Return the settings for the page's script, which formats positions in the same way."""
        larger = LARGER.get(self.unit, [])
        return {**dataclasses.asdict(self), "digits": self.digits, "plain": self.are_plain, "larger": larger}


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _decimals(value: float) -> int:
    """Return the number of decimals in the shortest representation of a number.

    Examples
    --------
    >>> _decimals(200.0), _decimals(0.25), _decimals(1e-05)
    (0, 2, 5)
    """
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0
