"""How small and how large numbers may become in passes with doubles and with singles.

Singles end at 1e-38. A pass with singles therefore watches its numbers more closely, and leaves more tiles to a pass
with doubles: a state that is lost has less than 1e-38, its normaliser is at least 1e-15, so it had less than 1e-23 of
the whole, and where every transition has 1e-15 or more, the states that remain make up for it at the next step. For the
same reason no backward message is more than 1e15 times another, or 1e30 times when divided by a normaliser.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from subchain.numerics.vectors import WIDTH, width
from subchain.propagation.compiled import part
from subchain.propagation.underflow import LEAST_MARGINAL, LEAST_SCALE, LEAST_TRANSITION

#: Smallest normaliser, smallest meeting of two messages, and smallest transition that are safe from underflow; each
#: for doubles and for singles.
SAFE_SCALE, SAFE_MEETING, SAFE_TRANSITION = (LEAST_SCALE, 1e-15), (LEAST_MARGINAL, 1e-30), (LEAST_TRANSITION, 1e-15)
#: Backward messages of states that are impossible before grow without limit; up to here they do no harm.
LARGEST = 1e290, 1e35


@part
def by_precision(limits, table):
    """Return the first limit for a table of doubles, the second for one of singles."""
    return limits[0] if width(table) == WIDTH else limits[1]
