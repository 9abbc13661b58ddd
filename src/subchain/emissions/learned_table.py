"""Dirichlet tables whose concentration is learned: one number for all symbols, or one a symbol that all states share.

Each number is the share of tables in customers' chances to open one (`tables.py`), where the counts are marginals: a
word that occurs once and may belong to forty states has opened one table, not forty. The numbers are learned after a
good number of renewals; before, tables that are all alike would make them run away.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from subchain.core.hyperparameters import LATE
from subchain.emissions.categorical import CategoricalSums, DirichletTable
from subchain.numerics.expected_tables import expected_tables

Array = NDArray[np.float64]

#: Concentrations are learned within these bounds.
BOUNDS = 1e-6, 1e4
#: Steps of the fixed-point iteration in a renewal.
STEPS = 3


@dataclasses.dataclass
class LearnedTable(DirichletTable):
    """A `DirichletTable` that is learned.

    Attributes
    ----------
    per_symbol : whether each symbol has a number of its own
    renewals : how often the prior has been renewed
    """

    per_symbol: bool = False
    renewals: int = 0

    @property
    def is_learned(self) -> bool:
        return True

    def update(self, sums: CategoricalSums) -> Any:
        return DirichletTable(self.concentration + sums.counts)

    def update_hyperparameters(self, sums: CategoricalSums, rate: float = 1.0) -> Self:
        renewals = self.renewals + 1
        if renewals < LATE:
            return dataclasses.replace(self, renewals=renewals)
        counts, old = np.maximum(sums.counts, 0.0), self.concentration[:, 0]
        numbers = old
        for _ in range(STEPS):
            numbers = np.clip(self._step(counts, numbers), *BOUNDS)
        moved = old ** (1.0 - rate) * numbers**rate
        concentration = np.broadcast_to(moved[:, None], self.concentration.shape).copy()
        return dataclasses.replace(self, concentration=concentration, renewals=renewals)

    def _step(self, counts: Array, numbers: Array) -> Array:
        """The numbers that the tables speak for which they make, (W,)."""
        tables = expected_tables(numbers[:, None], counts, counts).sum(axis=1)
        whole = numbers.sum()
        chances = float((digamma(whole + counts.sum(axis=0)) - digamma(whole)).sum())
        found = tables if self.per_symbol else np.full(len(tables), tables.mean())
        return np.asarray(found / max(chances, 1e-300))
