"""Hierarchical prior: transition rows with a common parent distribution, which is learned with them.

The initial distribution (row 0) and the transition rows (rows 1 to K) are Dirichlet(concentration · top), where `top`
is the parent distribution over states; `stickiness` adds to the self-transitions. Two constructions represent the top
level differently and learn it accordingly (`direct.py`, `collapsed_top.py`). Both need the expected number of
transitions that were drawn from the parent: in the Chinese restaurant franchise these are the tables, and a table's
dish (a state) is drawn from the top level.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from subchain.core.hyperparameters import states_differ
from subchain.core.ranges import NOT_NEGATIVE, POSITIVE, ROUNDING, WHOLE_NUMBERS
from subchain.core.records import Record, number
from subchain.numerics import simplex
from subchain.transitions.base import ChainSums
from subchain.transitions.dirichlet import DirichletChain, DirichletRows
from subchain.transitions.initial import LearnedInitial

Array = NDArray[np.float64]

#: Smallest weight of a state at the top level: a weight that underflows to zero could never grow again.
LEAST_WEIGHT = 1e-40
#: Smallest and largest learned concentration.
BOUNDS = 1e-3, 1e4
#: Fixed-point steps per update of a concentration.
ROUNDS = 5


@dataclasses.dataclass
class Hierarchy(Record):
    """Scalar hyperparameters of a hierarchical prior.

    Attributes
    ----------
    concentration : concentration of the rows around the top level
    top_concentration : concentration γ of the stick-breaking prior of the top level; larger expects more states
    stickiness : added to the concentration of self-transitions
    learns_concentration, learns_top_concentration : whether the first two are learned
    merges, splits : whether runs try to merge redundant states, and to split states that combine two
    n_updates : number of hyperparameter updates so far
    """

    concentration: float = number(POSITIVE)
    top_concentration: float = number(POSITIVE)
    stickiness: float = number(NOT_NEGATIVE, 0.0)
    learns_concentration: bool = False
    learns_top_concentration: bool = False
    merges: bool = True
    splits: bool = True
    n_updates: int = number(WHOLE_NUMBERS, 0)

    renamed_fields: ClassVar[dict[str, str]] = {"renewals": "n_updates"}


@dataclasses.dataclass
class HierarchicalChain(DirichletChain):
    """Prior over the initial distribution and the transition rows, given the current top level."""

    hierarchy: Hierarchy

    @property
    def is_learned(self) -> bool:
        return True

    def begin(self, sums: ChainSums) -> Self:
        """Return the prior for a run that continues from unrelated counts, (K,) and (K, K)."""
        return self.update_hyperparameters(sums)

    @property
    def learns_top(self) -> bool:
        """Whether the top level is learned, and with it the number of states; False if it was given."""
        return True

    @abstractmethod
    def weights(self) -> Array:
        """Return the distribution over states that the rows use as the top level, (K,), positive, sums to one."""

    @abstractmethod
    def tables(self, sums: ChainSums) -> Array:
        """Return the expected number of tables per row and dish, (1 + K, K); row 0 is the initial distribution."""

    @abstractmethod
    def with_tables(self, dishes: Array, rate: float) -> Self:
        """Return the prior with its top level updated for the numbers of tables per dish, (K,), at a given rate."""

    def check_fields(self) -> None:
        mine, expected = self.concentrations(), self.rebuilt().concentrations()
        if not all(np.allclose(*pair, rtol=ROUNDING, atol=ROUNDING) for pair in zip(mine, expected, strict=True)):
            raise ValueError("concentrations of the rows are not those of the top level")

    def rebuilt(self) -> Self:
        """Return the prior with the concentrations of the rows recomputed from the top level."""
        hierarchy = self.hierarchy
        base = hierarchy.concentration * np.maximum(self.weights(), LEAST_WEIGHT)
        rows = np.where(self.rows.free, base + hierarchy.stickiness * np.eye(len(base)), 0.0)
        return dataclasses.replace(self, initial=LearnedInitial(base), rows=DirichletRows(rows, np.zeros_like(rows)))

    def consulted(self, sums: ChainSums) -> Array:
        """Return the expected number of tables whose dish came from the top level, not from stickiness, (1 + K, K)."""
        tables = self.tables(sums)
        if self.hierarchy.stickiness > 0.0:
            stay = np.diagonal(self.rows.concentration)
            possible = stay > 0.0
            share = np.divide(stay - self.hierarchy.stickiness, stay, out=np.zeros_like(stay), where=possible)
            np.einsum("jj->j", tables[1:])[:] *= share
        return tables

    def dishes(self, sums: ChainSums, tables: Array) -> Array:
        """Return the numbers of tables per dish, (K,), that the top level is updated for.

        A row whose mask allows the share s of the top level has the total concentration α s, which depends on the top
        level too. Its evidence is bounded from below as if tables of forbidden dishes k had been drawn and rejected,

            α top_k (ψ(α s + n) − ψ(α s))        for a row with n transitions,

        and an update that counts these as well never lowers the bound.
        """
        found, forbidden = tables.sum(axis=0), ~self.rows.free
        if not forbidden.any():
            return np.asarray(found)
        totals, counts = self.rows.concentration.sum(axis=1), np.maximum(sums.pairs, 0.0).sum(axis=1)
        opened = digamma(totals + counts) - digamma(totals)
        base = self.hierarchy.concentration * np.maximum(self.weights(), LEAST_WEIGHT)
        return np.asarray(found + base * (opened @ forbidden))

    def update_hyperparameters(self, sums: ChainSums, rate: float = 1.0) -> Self:
        tables = self.consulted(sums)
        hierarchy = dataclasses.replace(self.hierarchy, n_updates=self.hierarchy.n_updates + 1)
        updated = dataclasses.replace(self.with_tables(self.dishes(sums, tables), rate), hierarchy=hierarchy)
        if hierarchy.learns_concentration and states_differ(sums.pairs, hierarchy.n_updates):
            totals = np.append(sums.initial.sum(), sums.pairs.sum(axis=1))
            hierarchy.concentration = self._concentration(totals, float(tables.sum()), rate)
        if hierarchy.learns_top_concentration and states_differ(sums.pairs, hierarchy.n_updates):
            hierarchy.top_concentration = updated.best_top_concentration()
        return updated.rebuilt()

    def _concentration(self, totals: Array, tables: float, rate: float) -> float:
        """Return the concentration α that maximises the probability of `tables` tables, blended in at `rate`.

        The fixed point is α = tables / Σ_j s_j (ψ(α s_j + κ + n_j) − ψ(α s_j + κ)), where n_j are the `totals` (1 + K,)
        of the rows, s_j is the share of the top level that the mask allows, and κ is the stickiness.
        """
        old = value = self.hierarchy.concentration
        sticky = np.append(0.0, self.hierarchy.stickiness * np.diagonal(self.rows.free))
        shares = np.append(1.0, np.where(self.rows.free.all(axis=1), 1.0, self.rows.free @ self.weights()))
        for _ in range(ROUNDS):
            base = value * shares + sticky
            divisor = (shares * (digamma(base + totals) - digamma(base))).sum()
            value = float(np.clip(tables / max(divisor, 1e-300), *BOUNDS))
        return float(old ** (1.0 - rate) * value**rate)

    @abstractmethod
    def best_top_concentration(self) -> float:
        """Return the most probable `top_concentration` given the current sticks of the top level."""


def begin(kind: type[Any], hierarchy: Hierarchy, mask: NDArray[np.bool_], **fields: Any) -> Any:
    """Build a `HierarchicalChain` of class `kind` with the allowed transitions `mask` (K, K) and its other fields."""
    rows = DirichletRows(mask.astype(np.float64), np.zeros(mask.shape))
    return kind(LearnedInitial(np.ones(len(mask))), rows, hierarchy, **fields).rebuilt()


def hierarchy_of(chain: Any) -> Hierarchy | None:
    """Return the scalar hyperparameters of a hierarchical prior; None for other priors."""
    return getattr(chain, "hierarchy", None)


def learns_top(chain: Any) -> bool:
    """Return whether a prior over the chain learns the number of states."""
    return bool(getattr(chain, "learns_top", False))


def by_size(dishes: Array) -> tuple[Array, Array]:
    """Return the rank of each state's stick by falling numbers of tables, and the tables of all later sticks.

    `dishes` (K,) are the numbers of tables per dish; both results are (K,).
    """
    order = np.empty_like(dishes)
    order[np.argsort(-dishes, kind="stable")] = np.arange(len(dishes))
    return order, tables_behind(dishes, order)


def tables_behind(dishes: Array, order: Array) -> Array:
    """Return, for each state, the number of tables of states with later sticks, (K,); `order` (K,) ranks the sticks."""
    ranks, behind = np.argsort(order), np.empty_like(dishes)
    behind[ranks] = np.append(np.cumsum(dishes[ranks][:0:-1])[::-1], 0.0)
    return behind


def in_order(log_piece: Array, log_rest: Array, order: Array) -> Array:
    """Return the stick-breaking log weights of states, (K,).

    Parameters
    ----------
    log_piece, log_rest : (K,) log of the fraction that each state's stick takes, and of the fraction that it leaves
    order : (K,) rank of each state's stick
    """
    ranks = np.argsort(order)
    found = np.empty_like(log_piece)
    found[ranks] = log_piece[ranks] + np.append(0.0, np.cumsum(log_rest[ranks])[:-1])
    return found


def broken(log_piece: Array, log_rest: Array, order: Array) -> Array:
    """Return the stick-breaking weights of states, (K,), normalised; parameters as for `in_order`."""
    logs = in_order(log_piece, log_rest, order)
    return simplex.normalized(np.exp(logs - logs.max()), 0)
