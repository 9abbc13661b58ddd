"""Hidden Markov chains as a structure: the sequences, what is known of their states, and the engine that runs them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, cast

import numpy as np

from subchain.core.parts import Point, Posterior
from subchain.core.statistics import Rounds
from subchain.engines.base import Engine
from subchain.engines.part import Part
from subchain.engines.statistics import HMMStatistics
from subchain.structures.base import Plan, Walkers
from subchain.structures.chain.excerpts import Excerpt
from subchain.structures.chain.minibatches import ChainMinibatches, plan_of
from subchain.structures.chain.model import HMMPoint, HMMPosterior
from subchain.structures.settings import CollapsedSettings, SamplingSettings, StochasticSettings

if TYPE_CHECKING:
    from subchain.structures.chain.collapsed.ledger import ChainLedger


@dataclasses.dataclass
class Chains(Part):
    """Sequences of observations whose hidden states are Markov chains, and the engine that runs them.

    Attributes
    ----------
    engine : runs forward-backward
    subchain_length : length of subchains where an algorithm leaves it open
    mixing_time : steps after which a chain has forgotten its start; None if not measured
    learns_ends : whether the probabilities of ending are learned; `evidence` has those that are given
    """

    engine: Engine = dataclasses.field(kw_only=True)
    subchain_length: int | None = None
    mixing_time: int | None = None
    learns_ends: bool = False

    @property
    def n_observations(self) -> int:
        return self.data.n_observations

    @property
    def rounding(self) -> float:
        """Largest relative error of statistics, where the engine rounds more coarsely than doubles."""
        return self.engine.rounding if isinstance(self.engine, Rounds) else 0.0

    def plan(self, algorithm: StochasticSettings) -> Plan:
        return plan_of(self, algorithm)

    def minibatches(self, algorithm: StochasticSettings, prior: Posterior) -> ChainMinibatches:
        return ChainMinibatches(self, algorithm, cast(HMMPosterior, prior).mean().n_states)

    def excerpt(self, length: int, size: int, rng: np.random.Generator) -> Excerpt:
        return Excerpt(self, length, size, rng)

    def ledger(self, algorithm: CollapsedSettings, prior: Posterior) -> ChainLedger:
        from subchain.structures.chain.collapsed.ledger import ChainLedger  # kernels that other algorithms do not need

        return ChainLedger(self, algorithm, cast(HMMPosterior, prior))

    def walkers(self, algorithm: SamplingSettings, prior: Posterior, seed: int) -> Walkers:
        from subchain.structures.chain.sampling.gibbs import gibbs_setting

        return gibbs_setting(self, algorithm, cast(HMMPosterior, prior), seed)

    def statistics(self, weights: Point) -> HMMStatistics:
        """Return the expected statistics of all sequences."""
        point = cast(HMMPoint, weights)
        return self.engine.statistics(point.surrogate(), self.under(point))

    def under(self, point: HMMPoint) -> Chains:
        """Return the sequences with the evidence of this point about their ends, where that changes with the point."""
        if not self.learns_ends:
            return self
        return dataclasses.replace(self, evidence=point.evidence(self.data, self.evidence))
