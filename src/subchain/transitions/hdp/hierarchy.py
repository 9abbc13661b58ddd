"""Rows of moves that share a parent: Dirichlet rows whose prior is learned with them.

Row j of the moves, and row 0, the first states, are Dirichlet(concentration · top) (with more weight on staying, if the
chain is to be sticky). How the top level is represented, and so how it is learned, is the business of a construction
(`direct.py`, `collapsed.py`). All of them need the same numbers: how many of the counted moves were made by consulting
the top level. In the picture of restaurants these are tables, and a dish that is ordered at a new table is chosen by
the top level.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from subchain.core.hyperparameters import states_differ
from subchain.core.records import Record
from subchain.numerics import simplex
from subchain.transitions.base import ChainSums
from subchain.transitions.dirichlet import DirichletChain, DirichletRows
from subchain.transitions.initial import LearnedInitial

Array = NDArray[np.float64]

#: Weights at the top are not allowed to fall below this: what underflows would be lost for good.
LEAST_WEIGHT = 1e-40
#: Concentrations are learned within these bounds.
BOUNDS = 1e-3, 1e4
#: Rounds of the fixed-point iteration of a concentration.
ROUNDS = 5


@dataclasses.dataclass
class Hierarchy(Record):
    """The numbers of a hierarchical prior.

    Attributes
    ----------
    concentration : how closely rows follow the top level
    top_concentration : how many states are expected
    stickiness : what is added to the concentration of staying
    learns_concentration, learns_top_concentration : whether the first two are learned
    merges, splits : whether states that do the work of one become one, and those that do the work of two become two
    renewals : how often the prior has been renewed
    """

    concentration: float
    top_concentration: float
    stickiness: float = 0.0
    learns_concentration: bool = False
    learns_top_concentration: bool = False
    merges: bool = True
    splits: bool = True
    renewals: int = 0


@dataclasses.dataclass
class HierarchicalChain(DirichletChain):
    """The prior of the moment over first states and moves, given the top level as it stands."""

    hierarchy: Hierarchy

    @property
    def is_learned(self) -> bool:
        return True

    def begin(self, sums: ChainSums) -> Self:
        """The prior for a run that goes on from quite other counts."""
        return self.update_hyperparameters(sums)

    @property
    def learns_top(self) -> bool:
        """Whether the number of states is learned: nobody has said what each weighs at the top."""
        return True

    @abstractmethod
    def weights(self) -> Array:
        """What stands for the top level in every row, (K,), positive, sums to one."""

    @abstractmethod
    def tables(self, sums: ChainSums) -> Array:
        """Expected number of tables per row and dish, (1 + K, K), row 0 that of the first states."""

    @abstractmethod
    def with_tables(self, dishes: Array, rate: float) -> Self:
        """The construction with its top level moved to what these numbers of tables, (K,), say."""

    def rebuilt(self) -> Self:
        """The same with its rows made anew from the top level."""
        hierarchy = self.hierarchy
        base = hierarchy.concentration * np.maximum(self.weights(), LEAST_WEIGHT)
        rows = np.tile(base, (len(base), 1)) + hierarchy.stickiness * np.eye(len(base))
        return dataclasses.replace(self, initial=LearnedInitial(base), rows=DirichletRows(rows, np.zeros_like(rows)))

    def consulted(self, sums: ChainSums) -> Array:
        """Expected number of tables that consulted the top level, (1 + K, K): not those that chose to stay."""
        tables = self.tables(sums)
        if self.hierarchy.stickiness > 0.0:
            stay = np.diagonal(self.rows.concentration)
            np.einsum("jj->j", tables[1:])[:] *= (stay - self.hierarchy.stickiness) / stay
        return tables

    def update_hyperparameters(self, sums: ChainSums, rate: float = 1.0) -> Self:
        tables = self.consulted(sums)
        hierarchy = dataclasses.replace(self.hierarchy, renewals=self.hierarchy.renewals + 1)
        moved = dataclasses.replace(self.with_tables(tables.sum(axis=0), rate), hierarchy=hierarchy)
        if hierarchy.learns_concentration and states_differ(sums.pairs, hierarchy.renewals):
            totals = np.append(sums.initial.sum(), sums.pairs.sum(axis=1))
            hierarchy.concentration = self._concentration(totals, float(tables.sum()), rate)
        if hierarchy.learns_top_concentration and states_differ(sums.pairs, hierarchy.renewals):
            hierarchy.top_concentration = moved.best_top_concentration()
        return moved.rebuilt()

    def _concentration(self, totals: Array, tables: float, rate: float) -> float:
        """The concentration that so many tables for so many moves in each row speak for."""
        old = value = self.hierarchy.concentration
        sticky = np.append(0.0, np.full(len(totals) - 1, self.hierarchy.stickiness))
        for _ in range(ROUNDS):
            chances = (digamma(value + sticky + totals) - digamma(value + sticky)).sum()
            value = float(np.clip(tables / max(chances, 1e-300), *BOUNDS))
        return float(old ** (1.0 - rate) * value**rate)

    @abstractmethod
    def best_top_concentration(self) -> float:
        """The concentration of the top level that its present state speaks for."""


def begin(kind: type[Any], hierarchy: Hierarchy, n_states: int, **top: Any) -> Any:
    """A construction whose top level is as given."""
    nothing = np.ones((n_states, n_states))
    unmade = kind(LearnedInitial(np.ones(n_states)), DirichletRows(nothing, 0.0 * nothing), hierarchy, **top)
    return unmade.rebuilt()


def hierarchy_of(chain: Any) -> Hierarchy | None:
    """The numbers of a hierarchical prior; None if the number of states is given."""
    return getattr(chain, "hierarchy", None)


def learns_top(chain: Any) -> bool:
    """Whether a prior over the chain is one that learns how many states there are."""
    return bool(getattr(chain, "learns_top", False))


def by_size(dishes: Array) -> tuple[Array, Array]:
    """Which stick each state takes if the most frequent come first, and how often dishes behind each were ordered."""
    order = np.empty_like(dishes)
    order[np.argsort(-dishes, kind="stable")] = np.arange(len(dishes))
    return order, tables_behind(dishes, order)


def tables_behind(dishes: Array, order: Array) -> Array:
    """How often dishes behind each were ordered if the states take their sticks in this order."""
    ranks, behind = np.argsort(order), np.empty_like(dishes)
    behind[ranks] = np.append(np.cumsum(dishes[ranks][:0:-1])[::-1], 0.0)
    return behind


def in_order(log_piece: Array, log_rest: Array, order: Array) -> Array:
    """Log weights of states whose sticks break off such a piece of what is left, and leave such a rest."""
    ranks = np.argsort(order)
    found = np.empty_like(log_piece)
    found[ranks] = log_piece[ranks] + np.append(0.0, np.cumsum(log_rest[ranks])[:-1])
    return found


def broken(log_piece: Array, log_rest: Array, order: Array) -> Array:
    """Weights of such states, normalised."""
    logs = in_order(log_piece, log_rest, order)
    return simplex.normalized(np.exp(logs - logs.max()), 0)
