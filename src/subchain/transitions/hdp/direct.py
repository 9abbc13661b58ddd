"""Direct construction: the top level is a point estimate, the rows have Dirichlet posteriors.

The point is the most probable one given the expected counts (Liang, Petrov, Jordan & Klein 2007; Johnson & Willsky
2014). The maximum is taken over the log odds of the sticks, where the density of Beta(1, γ) is bounded:

    stick k = (1 + tables of dish k) / (1 + γ + tables of dish k and of all dishes with later sticks);

the last state takes the remainder. Updates of the tables and of the top level alternate. An update may lower the bound
where transitions have expected counts below one; then only a part of the step is taken. Sticks are ordered by numbers
of tables unless that makes the same top level less probable, which happens only if many states are expected (large γ).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.ranges import POSITIVE, RANKS, Range
from subchain.core.records import array
from subchain.numerics.expected_tables import expected_tables_of
from subchain.transitions.base import ChainSums
from subchain.transitions.hdp.hierarchy import BOUNDS, HierarchicalChain, broken, by_size, tables_behind

Array = NDArray[np.float64]

#: Alternations of tables and top level per update: they converge slowly where counts are small.
ROUNDS = 5
#: Step sizes that are tried in turn until one does not lower the bound.
PARTS = (1.0, 0.25, 0.0625, 0.0)
#: Relative decrease of the bound that counts as rounding, and smallest distance of a stick from 0 and 1.
ROUNDING = 1e-12


@dataclasses.dataclass
class KnownTopChain(HierarchicalChain):
    """Hierarchical prior with a given top level, `top` (K,), that is not learned."""

    top: Array = array("K", POSITIVE)

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
        update = super().update_hyperparameters
        return self._uphill(lambda part: update(sums, part), sums)

    def _uphill(self, step: Callable[[float], Self], sums: ChainSums) -> Self:
        """Take a step, or the largest of its `PARTS` that does not lower the objective."""
        least = self._objective(sums)
        there = self
        for part in PARTS:
            there = step(part)
            if there._objective(sums) >= least - ROUNDING * abs(least):
                break
        return there

    def _objective(self, sums: ChainSums) -> float:
        """Return the terms of the bound that depend on the top level and the concentrations."""
        return float(self.log_evidence(sums) + self.log_hyperprior())

    def best_top_concentration(self) -> float:
        return self.hierarchy.top_concentration

    def log_hyperprior(self) -> float:
        return 0.0


@dataclasses.dataclass
class DirectChain(KnownTopChain):
    """Hierarchical prior with the most probable top level; `top` (K,) are its sticks, `order` (K,) their ranks."""

    top: Array = array("K", Range(least=0.0, is_open=True, most=1.0))
    order: Array = array("K", RANKS)

    @property
    def is_learned(self) -> bool:
        return True

    @property
    def learns_top(self) -> bool:
        return True

    def _logs(self) -> tuple[Array, Array]:
        """Return the logs of the fractions that the sticks take and leave, each (K,); the last stick takes all."""
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
        """Return the same top level with its sticks in another order, if that is not less probable."""
        if np.array_equal(order, self.order):
            return self
        weights = np.maximum(self.weights(), 1e-300)
        sticks = np.clip(weights / (weights + tables_behind(weights, order)), ROUNDING, 1.0 - ROUNDING)
        there = dataclasses.replace(self, top=sticks, order=order)
        return there if there.log_hyperprior() >= self.log_hyperprior() else self

    def update_hyperparameters(self, sums: ChainSums, rate: float = 1.0) -> Self:
        found = super().update_hyperparameters(sums, rate)
        for _ in range(ROUNDS - 1 if rate == 1.0 else 0):
            found = found._uphill(found._step(sums), sums)
        return found

    def _step(self, sums: ChainSums) -> Callable[[float], Self]:
        """Return the step towards the most probable top level given the tables, as a function of the step size."""
        dishes = self.dishes(sums, self.consulted(sums))
        return lambda part: self.with_tables(dishes, part).rebuilt()

    def best_top_concentration(self) -> float:
        left = -self._logs()[1].sum()
        return float(np.clip((len(self.top) - 1) / max(left, 1e-300), *BOUNDS))

    def log_hyperprior(self) -> float:
        taken, left = self._logs()
        gamma = self.hierarchy.top_concentration
        return float((taken + gamma * left).sum() + (len(self.top) - 1) * np.log(gamma))
