"""The part of a context-free grammar: one table of rules, grouped by left-hand side."""

from __future__ import annotations

import dataclasses
from typing import Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Point, Posterior
from subchain.core.statistics import Statistics
from subchain.structures.phrases.rules import RuleSet
from subchain.tables import GroupedDirichlet, GroupedSums, GroupedWeights

Array = NDArray[np.float64]


@dataclasses.dataclass
class PhrasePoint(Point):
    """Weights of the rules, in the order of `RuleSet`."""

    rules: GroupedWeights


@dataclasses.dataclass
class PhrasePosterior(Posterior):
    """Distribution over the rules, prior or posterior."""

    point_type = PhrasePoint
    rules: GroupedDirichlet

    @classmethod
    def of(cls, rules: RuleSet, concentration: Array) -> Self:
        """Return the distribution with a concentration for each rule."""
        return cls(GroupedDirichlet(concentration, rules.left))


@dataclasses.dataclass
class PhraseStatistics(Statistics):
    """Expected numbers of uses of the rules; `origin` are the weights behind them, where a run begins with these."""

    rules: GroupedSums

    def __post_init__(self) -> None:
        self.origin: PhrasePoint | None = None
