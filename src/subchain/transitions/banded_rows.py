"""Dirichlet rows over the entries of a band: masks that leave every state few successors, at O(K · width).

A Dirichlet distribution over a row does not care which columns its entries stand in, so that everything but the layout
is that of `dirichlet`. Public results are spread out to matrices on request.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.ranges import FRACTIONS, NOT_NEGATIVE, STATES, probabilities
from subchain.core.records import Record, array
from subchain.transitions.base import Chain, ChainLaw, ChainPosterior, ChainSums
from subchain.transitions.dirichlet import DirichletChain, DirichletRows
from subchain.transitions.final import EndingChain
from subchain.transitions.incremental import IncrementalDirichlet
from subchain.transitions.layout import Layout
from subchain.transitions.low_rank import LowRankDirichlet
from subchain.transitions.operators import Banded
from subchain.transitions.sums import BandedSums, check_dense

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclasses.dataclass
class BandedChain(Record):
    """The law of a hidden chain whose transitions form a band, or weights that stand in for it.

    Attributes
    ----------
    initial : (K,)
    weights : (K, width)
    first : (K,) column of each row's first entry
    """

    initial: Array = array("K", probabilities())
    weights: Array = array("KB", probabilities())
    first: Index = array("K", STATES)

    @cached_property
    def operator(self) -> Banded:
        """The transition weights as an operator."""
        return Banded(Layout(self.first, self.weights.shape[1]), self.weights)

    @property
    def transition(self) -> Array:
        """The transition matrix, (K, K)."""
        return self.operator.dense()

    def with_weights(self, initial: Array, weights: Array) -> BandedChain:
        """Return a chain of the same form with other weights."""
        return BandedChain(initial, weights, self.first)

    def take(self, order: Index) -> Any:
        """Return a dense chain with its states in the given order, which need not keep them in a band."""
        check_dense(len(self.initial), "another order of states")
        return Chain(self.initial, self.transition).take(order)


@dataclasses.dataclass
class BandedRows(DirichletRows):
    """Independent Dirichlet distributions over the free entries of each row of a band, (K, width)."""

    concentration: Array = array("KB", NOT_NEGATIVE)
    fixed: Array = array("KB", FRACTIONS)


@dataclasses.dataclass
class BandedDirichletChain(DirichletChain):
    """Distribution over the initial distribution and the entries of a band, prior or posterior.

    Attributes
    ----------
    first : (K,) column of each row's first entry
    """

    rows: BandedRows
    first: Index = array("K", STATES)

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.first, self.rows.concentration.shape[1])

    def law(self, initial: Array, weights: Array) -> BandedChain:
        return BandedChain(initial, weights, self.first)

    def moves(self, weights: Array) -> Banded:
        return Banded(self.layout, weights)

    def update(self, sums: ChainSums) -> BandedDirichletChain:
        counts = self.own(sums)
        concentration = np.where(self.rows.free, self.rows.concentration + counts.pairs, 0.0)
        rows = BandedRows(concentration, self.rows.fixed)
        final = self.final.update(counts)
        return BandedDirichletChain(self.initial.update(counts.initial), rows, self.first, final=final)

    def log_density(self, chain: ChainLaw) -> float:
        """Return the log density at a chain, up to a constant; of a matrix only the entries of the band count."""
        law = self.law(chain.initial, self.weights_of(chain))
        return super().log_density(dataclasses.replace(chain, chain=law) if isinstance(chain, EndingChain) else law)

    def log_evidence(self, sums: ChainSums) -> float:
        return super().log_evidence(self.own(sums))

    def own(self, sums: ChainSums) -> BandedSums:
        """Return counts in the form of the band; those given as a matrix lose what lies outside."""
        if isinstance(sums, BandedSums):
            return sums
        return BandedSums(sums.initial, self.layout.gather(sums.pairs), self.first)

    def zeros(self) -> BandedSums:
        """Return the counts of nothing."""
        return BandedSums(np.zeros(len(self.first)), np.zeros_like(self.rows.concentration), self.first)

    def concentrations(self) -> tuple[Array, Array]:
        first, rows = super().concentrations()
        return first, self.layout.spread(rows)

    def incremental(self, sums: ChainSums) -> IncrementalBanded:
        return IncrementalBanded(self, self.own(sums))

    def dense(self, what: str) -> DirichletChain:
        """Return the same distribution with rows of all K entries; raise an `InputError` if there are too many."""
        check_dense(len(self.first), what)
        rows = DirichletRows(*(self.layout.spread(table) for table in (self.rows.concentration, self.rows.fixed)))
        return DirichletChain(self.initial, rows, final=self.final)

    def weights_of(self, chain: ChainLaw) -> Array:
        inner = chain.chain if isinstance(chain, EndingChain) else chain
        return inner.weights if isinstance(inner, BandedChain) else self.layout.gather(inner.transition)

    def take(self, order: Index) -> Any:
        return self.dense("another order of states").take(order)


class IncrementalBanded(IncrementalDirichlet):
    """As `IncrementalDirichlet`, for the entries of a band."""


def with_matrix(chain: ChainPosterior, what: str) -> ChainPosterior:
    """Return a distribution over whole matrices; raise an `InputError` that names `what` if there is none."""
    return chain.dense(what) if isinstance(chain, (BandedDirichletChain, LowRankDirichlet)) else chain
