"""Where chains begin: learned from the data, given, or the stationary distribution of the moves.

Each is a small record with the same verbs; they are told the transition matrix, which only the stationary one needs.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from subchain.records import Record
from subchain.transitions.stationary import stationary_distribution

Array = NDArray[np.float64]


@dataclasses.dataclass
class LearnedInitial(Record):
    """A Dirichlet distribution over the first state."""

    concentration: Array

    def update(self, counts: Array) -> LearnedInitial:
        return LearnedInitial(self.concentration + counts)

    def mean(self, transition: Array) -> Array:
        return self.concentration / self.concentration.sum()

    def mode(self, transition: Array) -> Array:
        excess = np.maximum(self.concentration - 1.0, 0.0)
        total = excess.sum()
        return excess / total if total > 0.0 else np.full(len(excess), 1.0 / len(excess))

    def expected_log(self, transition: Array) -> Array:
        return np.exp(digamma(self.concentration) - digamma(self.concentration.sum()))

    def sample(self, transition: Array, rng: np.random.Generator) -> Array:
        draws = np.maximum(rng.gamma(self.concentration), 1e-300)
        return draws / draws.sum()

    def kl(self, prior: Any) -> float:
        ours, theirs = self.concentration, prior.concentration
        spread = digamma(ours) - digamma(ours.sum())
        return float(
            gammaln(ours.sum()) - gammaln(theirs.sum()) - (gammaln(ours) - gammaln(theirs)).sum()
            + ((ours - theirs) * spread).sum()
        )

    def log_density(self, initial: Array) -> float:
        excess = self.concentration - 1.0
        used = excess != 0.0
        with np.errstate(divide="ignore"):
            return float((excess[used] * np.log(initial[used])).sum())

    def n_free(self) -> int:
        return len(self.concentration) - 1


class _NothingToLearn:
    """The verbs of an initial distribution without parameters of its own."""

    def update(self, counts: Array) -> Any:
        return self

    def mean(self, transition: Array) -> Array:
        raise NotImplementedError

    def mode(self, transition: Array) -> Array:
        return self.mean(transition)

    def expected_log(self, transition: Array) -> Array:
        return self.mean(transition)

    def sample(self, transition: Array, rng: np.random.Generator) -> Array:
        return self.mean(transition)

    def kl(self, prior: Any) -> float:
        return 0.0

    def log_density(self, initial: Array) -> float:
        return 0.0

    def n_free(self) -> int:
        return 0


@dataclasses.dataclass
class GivenInitial(_NothingToLearn, Record):
    """A distribution that was fixed beforehand."""

    probabilities: Array

    def mean(self, transition: Array) -> Array:
        return self.probabilities


@dataclasses.dataclass
class StationaryInitial(_NothingToLearn, Record):
    """The stationary distribution of the transition matrix."""

    def mean(self, transition: Array) -> Array:
        return stationary_distribution(transition)


Initial = LearnedInitial | GivenInitial | StationaryInitial
