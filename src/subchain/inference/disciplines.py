"""How the statistics of a visited part enter those of the whole."""

from __future__ import annotations

from typing import Protocol

from subchain.inference.problem import Part
from subchain.statistics import Statistics


class Discipline(Protocol):
    """What surrogates are made from, and how fresh statistics are folded in."""

    def context(self, statistics: Statistics, part: Part) -> Statistics: ...

    def combine(self, statistics: Statistics | None, fresh: Statistics, part: Part) -> Statistics: ...


class Replace:
    """Fresh statistics take the place of the old ones: batch algorithms."""

    def context(self, statistics: Statistics, part: Part) -> Statistics:
        return statistics

    def combine(self, statistics: Statistics | None, fresh: Statistics, part: Part) -> Statistics:
        return fresh
