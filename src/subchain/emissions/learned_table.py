"""Dirichlet tables whose concentration is learned: one number for all symbols, or one a symbol that all states share.

The numbers move towards what makes the expected counts most probable, once the states emit differently; before, tables
that are all alike would make them run away.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from subchain.dirichlet_multinomial import TiedRows
from subchain.emissions.categorical import CategoricalSums, DirichletTable
from subchain.settled import states_differ

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
    def moves(self) -> bool:
        return True

    def update(self, sums: CategoricalSums) -> Any:
        return DirichletTable(self.concentration + sums.counts)

    def renew(self, sums: CategoricalSums, rate: float = 1.0) -> Self:
        counts, renewals = np.maximum(sums.counts, 0.0).T, self.renewals + 1
        if not states_differ(counts, renewals):
            return dataclasses.replace(self, renewals=renewals)
        rows = TiedRows(counts, np.ones_like(counts), per_column=self.per_symbol)
        old = self.concentration[:, 0] if self.per_symbol else self.concentration[:1, 0]
        numbers = old
        for _ in range(STEPS):
            numbers = np.clip(rows.update(numbers), *BOUNDS)
        moved = old ** (1.0 - rate) * numbers**rate
        concentration = np.broadcast_to(moved[:, None], self.concentration.shape).copy()
        return dataclasses.replace(self, concentration=concentration, renewals=renewals)
