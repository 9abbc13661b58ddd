"""The posterior of the whole model: that of the hidden chain and that of the emissions, side by side.

It is a function of the prior and of the statistics alone. Inference algorithms ask it for a surrogate, users for its
mean.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from subchain.core.records import Record
from subchain.core.statistics import Statistics
from subchain.emissions.base import Parameters
from subchain.engines.surrogate import Surrogate
from subchain.transitions.base import Chain, ChainPosterior


@dataclasses.dataclass
class Point(Record):
    """One HMM: a chain and emission parameters."""

    chain: Chain
    emission: Parameters

    def surrogate(self) -> Surrogate:
        """The HMM itself, for an engine."""
        return Surrogate(self.chain.initial, self.chain.transition, self.emission)


@dataclasses.dataclass
class ModelPosterior(Record):
    """Distribution over HMMs; the same class for the prior and for the posterior."""

    chain: Any  # ChainPosterior
    emission: Any  # emissions.base.Posterior

    def update(self, statistics: Statistics) -> ModelPosterior:
        """The posterior given expected statistics, this being the prior."""
        chain: ChainPosterior = self.chain.update(statistics.initial, statistics.pairs)
        return ModelPosterior(chain, self.emission.update(statistics.emission))

    @property
    def is_learned(self) -> bool:
        """Whether anything of this prior is learned itself."""
        return bool(self.chain.is_learned or self.emission.is_learned)

    def update_hyperparameters(self, statistics: Statistics, rate: float = 1.0) -> ModelPosterior:
        """This prior with what is learned of it moved towards what suits the statistics, all the way at rate 1."""
        chain = self.chain.update_hyperparameters(statistics.initial, statistics.pairs, rate)
        return ModelPosterior(chain, self.emission.update_hyperparameters(statistics.emission, rate))

    def begin(self, statistics: Statistics) -> ModelPosterior:
        """This prior for a run that goes on from quite other statistics."""
        chain = self.chain.begin(statistics.initial, statistics.pairs)
        return ModelPosterior(chain, self.emission.update_hyperparameters(statistics.emission, 1.0))

    def log_hyperprior(self) -> float:
        """What the state of a prior that is learned itself is worth: its log density, or less its divergence."""
        return float(self.chain.log_hyperprior() + self.emission.log_hyperprior())

    def mean(self) -> Point:
        return Point(self.chain.mean(), self.emission.mean())

    def mode(self) -> Point:
        return Point(self.chain.mode(), self.emission.mode())

    def sample(self, rng: np.random.Generator) -> Point:
        return Point(self.chain.sample(rng), self.emission.sample(rng))

    def expected_log(self) -> Surrogate:
        chain = self.chain.expected_log()
        return Surrogate(chain.initial, chain.transition, self.emission.expected_log())

    def predictive(self) -> Surrogate:
        chain = self.chain.predictive()
        return Surrogate(chain.initial, chain.transition, self.emission.predictive())

    def kl(self, prior: ModelPosterior) -> float:
        """Kullback-Leibler divergence from the prior, over all parameters."""
        return float(self.chain.kl(prior.chain) + self.emission.kl(prior.emission))

    def log_density(self, point: Point) -> float:
        """Log density at a point, up to a constant."""
        return float(self.chain.log_density(point.chain) + self.emission.log_density(point.emission))
