"""The warning about sentences that a grammar cannot derive."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

#: Length of what a warning shows of the first of them.
SHOWN = 60


def warn_underivable(numbers: list[int], first: str, what: str) -> None:
    """Warn the caller of a method of a grammar.

    Parameters
    ----------
    numbers : of the sentences, at least one
    first : the text of the first of them
    what : follows for them
    """
    warnings.warn(f"the grammar cannot derive {sentences_named(numbers, first)}; {what}.", stacklevel=4)


def sentences_named(numbers: Sequence[int], first: str) -> str:
    """Return text that names the first of some sentences, and how many there are."""
    shown = f"sentence {numbers[0]} ({first!r:.{SHOWN}})"
    return shown if len(numbers) == 1 else f"{len(numbers)} sentences, the first of them {shown}"
