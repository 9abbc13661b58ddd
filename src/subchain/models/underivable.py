"""The warning about sentences that a grammar cannot derive."""

from __future__ import annotations

import warnings

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
    warnings.warn(
        f"the grammar cannot derive {len(numbers)} sentences, the first of them sentence {numbers[0]} "
        f"({first!r:.{SHOWN}}); {what}.",
        stacklevel=4,
    )
