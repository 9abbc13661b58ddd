"""Collapsed inference of the hierarchy (Wang 2016, chapter 5): rows are summed out, sticks at the top have posteriors.

Stick k at the top is Beta(u, v); with rows summed out, only the expected numbers of tables matter to it:

    u_k = 1 + tables of dish k,    v_k = γ + tables of all dishes after it,

and what rows see of the top is the geometric mean of each state's weight. The states take their sticks in the order of
their tables. Geometric means do not sum to one; they are normalised here, which has no visible effect on what is found.

A table needs at least one customer, so the expected number of tables depends on how probable it is that a move happens
at all. That is not a function of expected counts: engines compute it (`engines/occurrence.py`), and what it exceeds
them by is kept here.
"""

from __future__ import annotations

import dataclasses
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma

from subchain.core.records import states_on
from subchain.numerics.expected_tables import expected_tables
from subchain.numerics.special import log_rising
from subchain.transitions.base import ChainSums
from subchain.transitions.hdp.hierarchy import BOUNDS, HierarchicalChain, broken, by_size

Array = NDArray[np.float64]

#: Ways to find out how probable it is that a move happens at all.
WAYS = ("pairs", "exact", "mean_field", "sampling")


@dataclasses.dataclass
class CollapsedChain(HierarchicalChain):
    """The moment's prior of collapsed inference.

    Attributes
    ----------
    u, v : (K,) the Beta posteriors of the sticks
    order : (K,) which stick is a state's, from 0
    first_surplus, pair_surplus : (K,), (K, K)
        −log probability that a move never happens, less the number of times that it is expected to
    way : how that is found out, a number in `WAYS`
    """

    u: Array = states_on(0)
    v: Array = states_on(0)
    order: Array = states_on(0)
    first_surplus: Array = states_on(0)
    pair_surplus: Array = states_on(0, 1)
    way: int = 0

    @property
    def occurrence_method(self) -> str | None:
        return WAYS[self.way]

    def weights(self) -> Array:
        whole = digamma(self.u + self.v)
        return broken(digamma(self.u) - whole, digamma(self.v) - whole, self.order)

    def observe(self, first: Array, pairs: Array, rate: float = 1.0) -> Self:
        """Take note of how much −log probabilities that moves never happen exceed the counts that are expected."""
        return dataclasses.replace(
            self,
            first_surplus=(1.0 - rate) * self.first_surplus + rate * first,
            pair_surplus=(1.0 - rate) * self.pair_surplus + rate * pairs,
        )

    def _rows(self, sums: ChainSums) -> tuple[Array, Array, Array]:
        """Concentrations, counts and −log probabilities that moves never happen, row 0 that of the first states."""
        base = np.vstack([self.initial.concentration, self.rows.concentration])  # type: ignore[union-attr]
        counts = np.maximum(np.vstack([sums.initial, sums.pairs]), 0.0)
        return base, counts, np.maximum(counts + np.vstack([self.first_surplus, self.pair_surplus]), 0.0)

    def tables(self, sums: ChainSums) -> Array:
        return expected_tables(*self._rows(sums))

    def with_tables(self, dishes: Array, rate: float) -> Self:
        order, behind = by_size(dishes)
        u = (1.0 - rate) * self.u + rate * (1.0 + dishes)
        v = (1.0 - rate) * self.v + rate * (self.hierarchy.top_concentration + behind)
        return dataclasses.replace(self, u=u, v=v, order=order)

    def best_top_concentration(self) -> float:
        return float(np.clip(len(self.u) / (digamma(self.u + self.v) - digamma(self.v)).sum(), *BOUNDS))

    def log_evidence(self, sums: ChainSums) -> float:
        base, counts, never = self._rows(sums)
        return _log_evidence(base, counts, never) - _log_evidence(
            base.sum(axis=1), counts.sum(axis=1), never.sum(axis=1)
        )

    def log_hyperprior(self) -> float:
        """Less the divergence of the sticks from Beta(1, γ)."""
        gamma, whole = self.hierarchy.top_concentration, digamma(self.u + self.v)
        divergence = (
            betaln(1.0, gamma)
            - betaln(self.u, self.v)
            + (self.u - 1.0) * (digamma(self.u) - whole)
            + (self.v - gamma) * (digamma(self.v) - whole)
        )
        return -float(divergence.sum())


def _log_evidence(base: Array, counts: Array, never: Array) -> float:
    """Σ q · log Γ(base + counts / q) / Γ(base), q the probability that something happens at all."""
    happens = np.minimum(-np.expm1(-never), counts)
    seen = happens > 0.0
    return float((happens[seen] * log_rising(base[seen], counts[seen] / happens[seen])).sum())
