"""The parts of the dependency model with valence: rules of the root, of stopping and of attachment."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Point, Posterior
from subchain.core.statistics import Statistics
from subchain.propagation.trees.charts import Rules
from subchain.tables import DirichletRowTable, RowWeights, RuleSums


@dataclasses.dataclass
class TreePoint(Point):
    """Weights of the rules; `propagation.trees.charts.Rules` has the order of rows."""

    root: RowWeights
    stop: RowWeights
    attach: RowWeights

    def rules(self) -> Rules:
        """Return the weights as kernels read them."""
        return Rules(self.root.weights, self.stop.weights, self.attach.weights)


@dataclasses.dataclass
class TreePosterior(Posterior):
    """Distribution over the rules, prior or posterior."""

    point_type = TreePoint
    root: DirichletRowTable
    stop: DirichletRowTable
    attach: DirichletRowTable

    @classmethod
    def symmetric(cls, n_tags: int, concentrations: Mapping[str, float]) -> Self:
        """Return the prior over rules of so many tags, with a concentration for each part."""
        shapes = {"root": (1, n_tags), "stop": (4 * n_tags, 2), "attach": (2 * n_tags, n_tags)}
        return cls(
            **{name: DirichletRowTable.symmetric(*shape, concentrations[name]) for name, shape in shapes.items()}
        )

    def rules(self) -> Rules:
        """Return a copy of the parameters of the Dirichlet distributions, counts and prior, as kernels read them."""
        return Rules(*(part.concentration.copy() for part in (self.root, self.stop, self.attach)))

    def floors(self) -> NDArray[np.float64]:
        """Return the smallest concentration of each part, (3,)."""
        return np.array([part.concentration.min() for part in (self.root, self.stop, self.attach)])


@dataclasses.dataclass
class TreeStatistics(Statistics):
    """Expected numbers of uses of the rules."""

    root: RuleSums
    stop: RuleSums
    attach: RuleSums
