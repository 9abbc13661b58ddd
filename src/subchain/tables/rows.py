"""Rows of a table that are distributions over the same outcomes, each with a Dirichlet prior: the rules of a grammar.

A concentration of zero marks an outcome that is impossible. The formulas are those of `numerics/simplex.py`.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.hyperparameters import FixedHyperparameters
from subchain.core.ranges import COUNTS, NOT_NEGATIVE
from subchain.core.records import Record, Sums, array
from subchain.emissions.incremental import Incremental
from subchain.numerics import simplex

Array = NDArray[np.float64]

#: Weights below this are taken to be this: exp(ψ(c)) underflows for small concentrations.
LEAST = 1e-100


@dataclasses.dataclass
class RuleSums(Sums):
    """Expected numbers of outcomes, (rows, outcomes)."""

    counts: Array = array("AB", COUNTS)


@dataclasses.dataclass
class RowWeights(Record):
    """Probabilities, or surrogate weights, of outcomes, (rows, outcomes)."""

    weights: Array = array("AB", NOT_NEGATIVE)


@dataclasses.dataclass
class DirichletRowTable(FixedHyperparameters, Record):
    """Independent Dirichlet distributions, one a row; `concentration` is (rows, outcomes)."""

    concentration: Array = array("AB", NOT_NEGATIVE)

    @classmethod
    def symmetric(cls, rows: int, outcomes: int, concentration: float) -> Self:
        """Return the prior whose outcomes are all alike."""
        return cls(np.full((rows, outcomes), float(concentration)))

    def update(self, sums: RuleSums) -> Self:
        possible = self.concentration > 0.0
        return type(self)(np.where(possible, self.concentration + np.maximum(sums.counts, 0.0), 0.0))

    @cached_property
    def _moments(self) -> simplex.LogMoments:
        return simplex.log_moments(self.concentration, axis=1)

    def mean(self) -> RowWeights:
        return RowWeights(simplex.normalized(self.concentration, axis=1))

    predictive = mean

    def mode(self) -> RowWeights:
        """Return the mode; a row where no concentration exceeds 1 is uniform."""
        return RowWeights(simplex.mode(self.concentration, axis=1))

    def expected_log(self) -> RowWeights:
        weights = np.maximum(np.exp(self._moments.expected), LEAST)
        return RowWeights(np.where(self.concentration > 0.0, weights, 0.0))

    def sample(self, rng: np.random.Generator) -> RowWeights:
        return RowWeights(simplex.draw_uneven(self.concentration, rng))

    def kl(self, prior: Self) -> float:
        return simplex.divergence(self.concentration, self._moments, prior.concentration, prior._moments)

    def log_density(self, values: RowWeights) -> float:
        return simplex.log_density(self.concentration, values.weights)

    def log_evidence(self, sums: RuleSums) -> float | None:
        return simplex.log_evidence(self.concentration, sums.counts, axis=1)

    def incremental(self, sums: RuleSums) -> Incremental:
        return Incremental(self, sums)  # type: ignore[arg-type]
