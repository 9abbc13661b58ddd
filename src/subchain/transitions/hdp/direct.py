"""Direct assignment: the top level is one point, the rows below have Dirichlet posteriors.

The point is the most probable one given the expected counts (Liang, Petrov, Jordan & Klein 2007; Johnson & Willsky
2014). It is found in the log odds of the sticks, where the density of Beta(1, γ) is bounded:

    stick k = (1 + tables of dish k) / (1 + γ + tables of dish k and all after it),

the last state taking what is left. Tables and top level take turns. A turn that would lower the bound, as moves that
are expected less than once can make it do, is taken in part. The states take their sticks in the order of their tables
where that makes the same top level no less probable; it does unless many states are expected.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.records import states_on
from subchain.numerics.expected_tables import expected_tables_of
from subchain.transitions.base import ChainSums
from subchain.transitions.hdp.hierarchy import BOUNDS, HierarchicalChain, broken, by_size, tables_behind

Array = NDArray[np.float64]

#: Rounds of tables and top level in a renewal: they converge slowly where counts are small.
ROUNDS = 5
#: Parts of a turn that are tried until one does not lower the bound.
PARTS = (1.0, 0.25, 0.0625, 0.0)
#: Rounding may seem to lower it by this fraction; sticks are this far from their ends.
ROUNDING = 1e-12


@dataclasses.dataclass
class KnownTopChain(HierarchicalChain):
    """Rows under a top level that was given and stays; `top` is (K,)."""

    top: Array = states_on(0)

    @property
    def is_learned(self) -> bool:
        return self.hierarchy.learns_concentration

    @property
    def learns_top(self) -> bool:
        return False

    def weights(self) -> Array:
        return np.asarray(self.top / self.top.sum())

    def tables(self, sums: ChainSums) -> Array:
        base = np.vstack([self.initial.concentration, self.rows.concentration])  # type: ignore[union-attr]
        return expected_tables_of(base, np.maximum(np.vstack([sums.initial, sums.pairs]), 0.0))

    def with_tables(self, dishes: Array, rate: float) -> Self:
        return self

    def update_hyperparameters(self, sums: ChainSums, rate: float = 1.0) -> Self:
        if rate < 1.0:
            return super().update_hyperparameters(sums, rate)
        ahead = super().update_hyperparameters
        return self._uphill(lambda part: ahead(sums, part), sums)

    def _uphill(self, turn: Callable[[float], Self], sums: ChainSums) -> Self:
        """Where a turn leads, or as much of it as does not make the counts less probable."""
        least = self._worth(sums)
        there = self
        for part in PARTS:
            there = turn(part)
            if there._worth(sums) >= least - ROUNDING * abs(least):
                break
        return there

    def _worth(self, sums: ChainSums) -> float:
        """What the bound has of the top level and of everything below it."""
        return float(self.log_evidence(sums) + self.log_hyperprior())

    def best_top_concentration(self) -> float:
        return self.hierarchy.top_concentration

    def log_hyperprior(self) -> float:
        return 0.0


@dataclasses.dataclass
class DirectChain(KnownTopChain):
    """Rows under a top level that is the most probable one; `top` are its sticks, `order` which one is a state's."""

    order: Array = states_on(0)

    @property
    def is_learned(self) -> bool:
        return True

    @property
    def learns_top(self) -> bool:
        return True

    def _logs(self) -> tuple[Array, Array]:
        """Logarithms of what the sticks take and of what they leave; the last takes all."""
        inner = self.order < len(self.order) - 1
        taken = np.where(inner, self.top, 0.5)
        return np.where(inner, np.log(taken), 0.0), np.where(inner, np.log1p(-taken), 0.0)

    def weights(self) -> Array:
        return broken(*self._logs(), self.order)

    def with_tables(self, dishes: Array, rate: float) -> Self:
        here = self._in_order(by_size(dishes)[0])
        left = self.hierarchy.top_concentration + tables_behind(dishes, here.order)
        found = (1.0 + dishes) / (1.0 + dishes + left)
        return dataclasses.replace(here, top=(1.0 - rate) * here.top + rate * found)

    def _in_order(self, order: Array) -> Self:
        """The same top level with its sticks in another order, if that is no less probable."""
        if np.array_equal(order, self.order):
            return self
        weights = np.maximum(self.weights(), 1e-300)
        sticks = np.clip(weights / (weights + tables_behind(weights, order)), ROUNDING, 1.0 - ROUNDING)
        there = dataclasses.replace(self, top=sticks, order=order)
        return there if there.log_hyperprior() >= self.log_hyperprior() else self

    def update_hyperparameters(self, sums: ChainSums, rate: float = 1.0) -> Self:
        found = super().update_hyperparameters(sums, rate)
        for _ in range(ROUNDS - 1 if rate == 1.0 else 0):
            found = found._uphill(found._turn(sums), sums)
        return found

    def _turn(self, sums: ChainSums) -> Callable[[float], Self]:
        """Towards the top level that the tables speak for, in part or all the way."""
        dishes = self.consulted(sums).sum(axis=0)
        return lambda part: self.with_tables(dishes, part).rebuilt()

    def best_top_concentration(self) -> float:
        left = -self._logs()[1].sum()
        return float(np.clip((len(self.top) - 1) / max(left, 1e-300), *BOUNDS))

    def log_hyperprior(self) -> float:
        taken, left = self._logs()
        gamma = self.hierarchy.top_concentration
        return float((taken + gamma * left).sum() + (len(self.top) - 1) * np.log(gamma))
