"""Collapsed construction (Wang 2016, chapter 5): rows are integrated out, the sticks at the top have Beta posteriors.

The posterior of stick k at the top is Beta(u_k, v_k). With the rows integrated out it depends on the expected numbers
of tables only,

    u_k = 1 + tables of dish k,    v_k = γ + tables of all dishes with later sticks,

and the rows use the geometric mean exp E[log weight] of each state as the top level. Sticks are ordered by numbers of
tables. Geometric means do not sum to one; they are normalised here, with no visible effect on results.

A table needs at least one customer, so the expected number of tables depends on the probability that a transition
occurs at least once. Expected counts do not determine it: engines compute it (`engines/cpu/occurrence.py`), and the
surplus of −log q(no occurrence) over the expected count is stored here.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma

from subchain.core.ranges import FINITE, POSITIVE, RANKS, Range
from subchain.core.records import array, number
from subchain.numerics.expected_tables import expected_tables
from subchain.numerics.special import log_rising
from subchain.transitions.base import ChainSums
from subchain.transitions.hdp.hierarchy import BOUNDS, HierarchicalChain, broken, by_size

Array = NDArray[np.float64]

#: Methods that compute the probability that a transition occurs at least once (`propagation/occurrence/methods.py`).
OCCURRENCE_METHODS = ("pairs", "exact", "mean_field", "sampling")


@dataclasses.dataclass
class CollapsedChain(HierarchicalChain):
    """Prior of collapsed inference, with the current posterior of the sticks at the top.

    Attributes
    ----------
    u, v : (K,) parameters of the Beta posteriors of the sticks
    order : (K,) rank of each state's stick, from 0
    first_surplus, pair_surplus : (K,), (K, K)
        −log q(C = 0) − E[C], where C counts how often a state is first, or a transition occurs
    method : index in `OCCURRENCE_METHODS` of the method that computes q(C = 0)
    """

    u: Array = array("K", POSITIVE)
    v: Array = array("K", POSITIVE)
    order: Array = array("K", RANKS)
    first_surplus: Array = array("K", FINITE)
    pair_surplus: Array = array("KK", FINITE)
    method: int = number(Range(below=len(OCCURRENCE_METHODS)), 0)

    renamed_fields: ClassVar[dict[str, str]] = {"way": "method"}

    @property
    def occurrence_method(self) -> str:
        return OCCURRENCE_METHODS[self.method]

    def weights(self) -> Array:
        whole = digamma(self.u + self.v)
        return broken(digamma(self.u) - whole, digamma(self.v) - whole, self.order)

    def observe(self, first: Array, pairs: Array, rate: float = 1.0) -> Self:
        """Return the prior with new surpluses −log q(C = 0) − E[C], (K,) and (K, K), blended in at `rate`."""
        return dataclasses.replace(
            self,
            first_surplus=(1.0 - rate) * self.first_surplus + rate * first,
            pair_surplus=(1.0 - rate) * self.pair_surplus + rate * pairs,
        )

    def _rows(self, sums: ChainSums) -> tuple[Array, Array, Array]:
        """Return concentrations, expected counts and −log q(C = 0), each (1 + K, K); row 0 is the initial one."""
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
        """Return −KL of the sticks' posteriors from their prior Beta(1, γ)."""
        gamma, whole = self.hierarchy.top_concentration, digamma(self.u + self.v)
        divergence = (
            betaln(1.0, gamma)
            - betaln(self.u, self.v)
            + (self.u - 1.0) * (digamma(self.u) - whole)
            + (self.v - gamma) * (digamma(self.v) - whole)
        )
        return -float(divergence.sum())


def _log_evidence(base: Array, counts: Array, never: Array) -> float:
    """Return Σ q · log [Γ(base + counts / q) / Γ(base)], where q = 1 − exp(−never) is the probability of occurrence."""
    occurs = np.minimum(-np.expm1(-never), counts)
    possible = occurs > 0.0
    return float((occurs[possible] * log_rising(base[possible], counts[possible] / occurs[possible])).sum())
