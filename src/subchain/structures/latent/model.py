"""The part of a grammar with latent annotations: one Dirichlet row for every annotated symbol."""

from __future__ import annotations

import dataclasses
from typing import Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Point, Posterior
from subchain.core.statistics import Statistics
from subchain.tables import GroupedDirichlet, GroupedSums, GroupedWeights


@dataclasses.dataclass
class AnnotatedPoint(Point):
    """Weights of the rules; `structures.latent.layout` has their order."""

    rules: GroupedWeights


@dataclasses.dataclass
class AnnotatedPosterior(Posterior):
    """Distribution over the rules, prior or posterior."""

    point_type = AnnotatedPoint
    rules: GroupedDirichlet

    @classmethod
    def symmetric(cls, widths: NDArray[np.int64], concentration: float) -> Self:
        """Return the prior over rows of these widths whose entries are all alike."""
        rows = np.repeat(np.arange(len(widths)), widths)
        return cls(GroupedDirichlet(np.full(len(rows), float(concentration)), rows))


@dataclasses.dataclass
class AnnotatedStatistics(Statistics):
    """Expected numbers of uses of the rules."""

    rules: GroupedSums
