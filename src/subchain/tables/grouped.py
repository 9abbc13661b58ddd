"""Dirichlet distributions over groups of entries of one list: the rules of a grammar, grouped by left-hand side.

Groups may be of any size, and their entries in any order. A concentration of zero marks a rule that is not allowed.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.hyperparameters import FixedHyperparameters
from subchain.core.ranges import COUNTS, NOT_NEGATIVE, Range
from subchain.core.records import Record, Sums, array
from subchain.emissions.incremental import Incremental
from subchain.numerics import simplex
from subchain.numerics.special import digamma_and_gammaln, log_rising
from subchain.tables.rows import LEAST

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclasses.dataclass
class GroupedSums(Sums):
    """Expected numbers of entries, (entries,)."""

    counts: Array = array("A", COUNTS)


@dataclasses.dataclass
class GroupedWeights(Record):
    """Probabilities, or surrogate weights, of entries, (entries,)."""

    weights: Array = array("A", NOT_NEGATIVE)


@dataclasses.dataclass
class GroupedDirichlet(FixedHyperparameters, Record):
    """Independent Dirichlet distributions, one a group.

    Attributes
    ----------
    concentration : (entries,)
    groups : (entries,) the group of each entry
    """

    concentration: Array = array("A", NOT_NEGATIVE)
    groups: Index = array("A", Range("int64", least=0))

    def totals(self, values: Array) -> Array:
        """Return the sums of values over groups, in the order of the entries."""
        found = np.bincount(self.groups, weights=values, minlength=int(self.groups.max(initial=-1)) + 1)
        return np.asarray(found, dtype=np.float64)

    def _shares(self, values: Array) -> Array:
        """Return values divided by the sums of their groups; equal shares of what is possible where that is zero."""
        total = self.totals(values)
        if (total <= 0.0).any():
            values = np.where(total[self.groups] > 0.0, values, self.concentration > 0.0)
            total = self.totals(values)
        return np.asarray(values / np.where(total > 0.0, total, 1.0)[self.groups])

    def update(self, sums: GroupedSums) -> Self:
        possible = self.concentration > 0.0
        found = np.where(possible, self.concentration + np.maximum(sums.counts, 0.0), 0.0)
        return type(self)(found, self.groups)

    def mean(self) -> GroupedWeights:
        return GroupedWeights(self._shares(self.concentration))

    predictive = mean

    def mode(self) -> GroupedWeights:
        """Return the mode; a group where no concentration exceeds 1 is uniform."""
        return GroupedWeights(self._shares(np.maximum(self.concentration - 1.0, 0.0)))

    @cached_property
    def _moments(self) -> simplex.LogMoments:
        """E[log p] and log Γ(c) of entries, log Γ(Σ c) of groups."""
        possible, total = self.concentration > 0.0, self.totals(self.concentration)
        digamma, gammaln = digamma_and_gammaln(np.where(possible, self.concentration, 1.0))
        total_digamma, total_gammaln = digamma_and_gammaln(np.where(total > 0.0, total, 1.0))
        expected = np.where(possible, digamma - total_digamma[self.groups], 0.0)
        return simplex.LogMoments(expected, np.where(possible, gammaln, 0.0), total_gammaln)

    def expected_log(self) -> GroupedWeights:
        weights = np.maximum(np.exp(self._moments.expected), LEAST)
        return GroupedWeights(np.where(self.concentration > 0.0, weights, 0.0))

    def sample(self, rng: np.random.Generator) -> GroupedWeights:
        logs = simplex.log_gammas(self.concentration, rng)
        largest = np.full(len(self.totals(logs)), -np.inf)
        np.maximum.at(largest, self.groups, logs)
        return GroupedWeights(self._shares(np.exp(logs - np.where(largest > -np.inf, largest, 0.0)[self.groups])))

    def kl(self, prior: Self) -> float:
        return simplex.divergence(self.concentration, self._moments, prior.concentration, prior._moments)

    def log_density(self, values: GroupedWeights) -> float:
        return simplex.log_density(self.concentration, values.weights)

    def log_evidence(self, sums: GroupedSums) -> float | None:
        seen = (sums.counts > 0.0) & (self.concentration > 0.0)
        total, counted = self.totals(self.concentration), self.totals(np.where(seen, sums.counts, 0.0))
        used = counted > 0.0
        entries = log_rising(self.concentration[seen], sums.counts[seen]).sum()
        return float(entries - log_rising(total[used], counted[used]).sum())

    def incremental(self, sums: GroupedSums) -> Incremental:
        return Incremental(self, sums)  # type: ignore[arg-type]
