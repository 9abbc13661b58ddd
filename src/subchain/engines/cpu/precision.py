"""What passes in double and in single precision take as the same."""

from __future__ import annotations

from typing import NamedTuple


class Precision(NamedTuple):
    """A floating type of messages.

    Attributes
    ----------
    size : bytes of a number
    rounding : two passes whose marginals differ by less than this, times 8 plus the number of states, have become one
    tolerance : largest relative difference between the entries of two messages that count as the same
    faint : entries of two messages whose sum is smaller are compared as they are
    """

    size: int
    rounding: float
    tolerance: float
    faint: float


DOUBLE, SINGLE = Precision(8, 1e-15, 1e-13, 1e-290), Precision(4, 1e-8, 1e-5, 1e-25)
