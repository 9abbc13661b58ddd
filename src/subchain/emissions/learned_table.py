"""Dirichlet prior over symbols with a learned concentration: one number, or one per symbol shared by all states.

The concentration is updated by the fixed-point iteration for Dirichlet-multinomial counts,

    a_w ← Σ_k E[tables_kw] / Σ_k (ψ(a + n_k) − ψ(a)),    a = Σ_w a_w

(averaged over w if all symbols share one number), where E[tables_kw] is the expected number of tables of the Chinese
restaurant process with expected counts (`numerics/expected_tables.py`): a word that occurs once, with its marginal
spread over forty states, opens one table, not forty. Updates begin after `LATE` iterations: while the states are still
alike, the concentration would diverge.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from subchain.core.hyperparameters import LATE
from subchain.core.ranges import WHOLE_NUMBERS
from subchain.core.records import number
from subchain.emissions.categorical import CategoricalSums, DirichletTable
from subchain.numerics.expected_tables import expected_tables

Array = NDArray[np.float64]

#: Smallest and largest learned concentration.
BOUNDS = 1e-6, 1e4
#: Fixed-point steps per update.
STEPS = 3


@dataclasses.dataclass
class LearnedTable(DirichletTable):
    """A `DirichletTable` whose concentration is learned.

    Attributes
    ----------
    per_symbol : whether each symbol has its own concentration
    n_updates : number of updates so far
    """

    per_symbol: bool = False
    n_updates: int = number(WHOLE_NUMBERS, 0)

    renamed_fields: ClassVar[dict[str, str]] = {"renewals": "n_updates"}

    @property
    def is_learned(self) -> bool:
        return True

    def update(self, sums: CategoricalSums) -> Any:
        return DirichletTable(self.concentration + sums.counts)

    def update_hyperparameters(self, sums: CategoricalSums, rate: float = 1.0) -> Self:
        n_updates = self.n_updates + 1
        if n_updates < LATE:
            return dataclasses.replace(self, n_updates=n_updates)
        counts, old = np.maximum(sums.counts, 0.0), self.concentration[:, 0]
        numbers = old
        for _ in range(STEPS):
            numbers = np.clip(self._step(counts, numbers), *BOUNDS)
        blended = old ** (1.0 - rate) * numbers**rate
        concentration = np.broadcast_to(blended[:, None], self.concentration.shape).copy()
        return dataclasses.replace(self, concentration=concentration, n_updates=n_updates)

    def _step(self, counts: Array, numbers: Array) -> Array:
        """Do one fixed-point step from concentrations `numbers` (W,), given counts (W, K)."""
        tables = expected_tables(numbers[:, None], counts, counts).sum(axis=1)
        total = numbers.sum()
        divisor = float((digamma(total + counts.sum(axis=0)) - digamma(total)).sum())
        found = tables if self.per_symbol else np.full(len(tables), tables.mean())
        return np.asarray(found / max(divisor, 1e-300))
