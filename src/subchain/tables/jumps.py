"""Distribution of jump widths in both directions, one Dirichlet distribution each.

The probability of a jump is c(d) / Σ over the positions of the sentence of their c, so counts alone do not determine
the c of largest likelihood. Of a bound that touches the log likelihood (minorisation, Hunter 2004) the maximum is
counts / exposures, where the exposure of a width is the slope of the log normalisers; EM never falls with it. Where not
all counts have exposures, and for other kinds of weights, the counts are taken as those of a plain Dirichlet
distribution, which is an approximation.
"""

from __future__ import annotations

import dataclasses
from typing import Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.hyperparameters import FixedHyperparameters
from subchain.core.ranges import COUNTS, NOT_NEGATIVE, POSITIVE
from subchain.core.records import Record, Sums, array, number
from subchain.emissions.incremental import Incremental
from subchain.numerics.special import digamma_and_gammaln
from subchain.propagation.alignment.sentence import DISTANCES

Array = NDArray[np.float64]

#: Least weight of a width.
LEAST = 1e-12


@dataclasses.dataclass
class JumpSums(Sums):
    """Expected numbers of jumps of each width, and exposures of the widths, each (2, B)."""

    counts: Array = array("2B", COUNTS)
    exposures: Array = array("2B", COUNTS)


@dataclasses.dataclass
class JumpWeights(Record):
    """Weights of the widths in both directions, (2, B)."""

    weights: Array = array("2B", NOT_NEGATIVE)


@dataclasses.dataclass
class JumpWidths(FixedHyperparameters, Record):
    """Dirichlet distributions over jump widths; (2, B) counts beside a common concentration.

    Attributes
    ----------
    counts, exposures : what was observed, zero for a prior; exposures are zero unless all counts have them
    concentration : of every width
    """

    counts: Array = array("2B", COUNTS)
    exposures: Array = array("2B", COUNTS)
    concentration: float = number(POSITIVE, 1.0)

    @classmethod
    def prior(cls, max_jump: int, has_ends: bool = False, concentration: float = 1.0) -> Self:
        """Return the prior over widths from −`max_jump` to `max_jump`, and over those of end jumps if there are any."""
        n_buckets = 4 * max_jump + 2 if has_ends else 2 * max_jump + 1
        return cls(np.zeros((2, n_buckets)), np.zeros((2, n_buckets)), concentration)

    @classmethod
    def distances(cls, concentration: float = 1.0) -> Self:
        """Return the prior over distances from the diagonal, which take the place of jumps in the diagonal model."""
        return cls(np.zeros((2, DISTANCES)), np.zeros((2, DISTANCES)), concentration)

    @property
    def shape(self) -> Array:
        """Parameters of the Dirichlet distributions."""
        found: Array = np.maximum(self.counts, 0.0) + self.concentration
        return found

    def update(self, sums: JumpSums) -> Self:
        is_exposed = all(one.exposures.any() or not one.counts.any() for one in (self, sums))
        exposures = self.exposures + sums.exposures if is_exposed else np.zeros_like(self.exposures)
        return type(self)(self.counts + sums.counts, exposures, self.concentration)

    def mean(self) -> JumpWeights:
        return JumpWeights(self.shape / self.shape.sum(axis=1, keepdims=True))

    predictive = mean

    def mode(self) -> JumpWeights:
        """Return the weights that maximise the bound; all alike where no jump was seen."""
        counts, exposures = np.maximum(self.counts, 0.0), self.exposures
        rates = counts
        if exposures.any():
            rates = np.divide(counts, exposures, out=np.zeros_like(counts), where=exposures > 0.0)
        totals = rates.sum(axis=1, keepdims=True)
        shares = np.divide(rates, totals, out=np.full_like(rates, 1.0 / rates.shape[1]), where=totals > 0.0)
        return JumpWeights(np.maximum(shares, LEAST))

    def expected_log(self) -> JumpWeights:
        logs = digamma_and_gammaln(self.shape)[0] - digamma_and_gammaln(self.shape.sum(axis=1))[0][:, None]
        return JumpWeights(np.exp(logs))

    def sample(self, rng: np.random.Generator) -> JumpWeights:
        return JumpWeights(np.array([rng.dirichlet(row) for row in self.shape]))

    def kl(self, prior: Self) -> float:
        digamma, own = digamma_and_gammaln(self.shape)
        of_total, total = digamma_and_gammaln(self.shape.sum(axis=1))
        _, given = digamma_and_gammaln(prior.shape)
        _, given_total = digamma_and_gammaln(prior.shape.sum(axis=1))
        slope = ((self.shape - prior.shape) * (digamma - of_total[:, None])).sum()
        return float(total.sum() - own.sum() - given_total.sum() + given.sum() + slope)

    def log_density(self, values: JumpWeights) -> float:
        return float(((self.shape - 1.0) * np.log(np.maximum(values.weights, LEAST))).sum())

    def log_evidence(self, sums: JumpSums) -> float | None:
        after = self.update(sums)
        rows = digamma_and_gammaln(self.shape.sum(axis=1))[1] - digamma_and_gammaln(after.shape.sum(axis=1))[1]
        return float(rows.sum() + (digamma_and_gammaln(after.shape)[1] - digamma_and_gammaln(self.shape)[1]).sum())

    def incremental(self, sums: JumpSums) -> Incremental:
        return Incremental(self, sums)  # type: ignore[arg-type]
