"""Direct assignment: the top level is one point, the rows below have Dirichlet posteriors.

The point is the most probable one given the expected counts (Liang, Petrov, Jordan & Klein 2007; Johnson & Willsky
2014). It is found in the log odds of the sticks, where the density of Beta(1, γ) is bounded:

    stick k = (1 + tables of dish k) / (1 + γ + tables of dish k and all after it),

the states taking their sticks in the order of their tables, the last one taking what is left. Tables and top level take
turns; each turn raises the bound.
"""

from __future__ import annotations

import dataclasses
from typing import Self

import numpy as np
from numpy.typing import NDArray

from subchain.records import states_on
from subchain.transitions.hierarchy import BOUNDS, HierarchicalChain, broken, by_size
from subchain.transitions.tables import expected_tables_of

Array = NDArray[np.float64]

#: Rounds of tables and top level in a renewal: they converge slowly where counts are small.
ROUNDS = 5


@dataclasses.dataclass
class KnownTopChain(HierarchicalChain):
    """Rows under a top level that was given and stays; `top` is (K,)."""

    top: Array = states_on(0)

    @property
    def moves(self) -> bool:
        return self.hierarchy.learns_concentration

    def weights(self) -> Array:
        return np.asarray(self.top / self.top.sum())

    def tables(self, initial: Array, pairs: Array) -> Array:
        base = np.vstack([self.initial.concentration, self.rows.concentration])  # type: ignore[union-attr]
        return expected_tables_of(base, np.maximum(np.vstack([initial, pairs]), 0.0))

    def with_tables(self, dishes: Array, rate: float) -> Self:
        return self

    def best_top_concentration(self) -> float:
        return self.hierarchy.top_concentration

    def log_hyper(self) -> float:
        return 0.0


@dataclasses.dataclass
class DirectChain(KnownTopChain):
    """Rows under a top level that is the most probable one; `top` are its sticks, `order` which one is a state's."""

    order: Array = states_on(0)

    @property
    def moves(self) -> bool:
        return True

    def _logs(self) -> tuple[Array, Array]:
        """Logarithms of what the sticks take and of what they leave; the last takes all."""
        inner = self.order < len(self.order) - 1
        taken = np.where(inner, self.top, 0.5)
        return np.where(inner, np.log(taken), 0.0), np.where(inner, np.log1p(-taken), 0.0)

    def weights(self) -> Array:
        return broken(*self._logs(), self.order)

    def with_tables(self, dishes: Array, rate: float) -> Self:
        order, behind = by_size(dishes)
        found = (1.0 + dishes) / (1.0 + dishes + self.hierarchy.top_concentration + behind)
        return dataclasses.replace(self, top=(1.0 - rate) * self.top + rate * found, order=order)

    def renew(self, initial: Array, pairs: Array, rate: float = 1.0) -> Self:
        found = super().renew(initial, pairs, rate)
        for _ in range(ROUNDS - 1 if rate == 1.0 else 0):
            found = found.with_tables(found.consulted(initial, pairs).sum(axis=0), rate).rebuilt()
        return found

    def best_top_concentration(self) -> float:
        left = -self._logs()[1].sum()
        return float(np.clip((len(self.top) - 1) / max(left, 1e-300), *BOUNDS))

    def log_hyper(self) -> float:
        taken, left = self._logs()
        gamma = self.hierarchy.top_concentration
        return float((taken + gamma * left).sum() + (len(self.top) - 1) * np.log(gamma))
