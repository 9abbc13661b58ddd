"""Hidden Markov chains as a structure: the sequences, what is known of their states, and the engine that runs them."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from subchain.data.evidence import Evidence
from subchain.data.sequences import Sequences
from subchain.engines.cpu.engine import CpuEngine
from subchain.engines.statistics import HMMStatistics
from subchain.structures.base import Plan
from subchain.structures.chain.excerpts import Excerpt
from subchain.structures.chain.minibatches import ChainMinibatches, SubchainSettings, plan_of
from subchain.structures.chain.model import HMMPoint, HMMPosterior


@dataclasses.dataclass
class Chains:
    """Sequences of observations whose hidden states are Markov chains.

    Attributes
    ----------
    data : the sequences
    engine : runs forward-backward over them
    evidence : what is known of the hidden states, or None
    weights : (n_sequences,) how often each sequence counts, or None
    subchain_length : length of subchains where an algorithm leaves it open
    """

    data: Sequences
    engine: CpuEngine
    evidence: Evidence | None = None
    weights: NDArray[np.float64] | None = None
    subchain_length: int | None = None

    @property
    def n_observations(self) -> int:
        return self.data.n_observations

    def plan(self, algorithm: SubchainSettings) -> Plan:
        return plan_of(self, algorithm)

    def minibatches(self, algorithm: SubchainSettings, prior: HMMPosterior) -> ChainMinibatches:
        return ChainMinibatches(self, algorithm, prior.mean().n_states)

    def excerpt(self, length: int, size: int, rng: np.random.Generator) -> Excerpt:
        return Excerpt(self, length, size, rng)

    def statistics(self, weights: HMMPoint) -> HMMStatistics:
        """Return the expected statistics of all sequences."""
        return self.engine.statistics(weights.surrogate(), self.data, self.evidence, self.weights)
