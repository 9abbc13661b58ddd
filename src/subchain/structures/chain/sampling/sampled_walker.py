"""Gibbs sampling with drawn parameters: parameters given the states, then all paths given the parameters, in turn.

The engine samples the paths of all sequences at a time, which is fast for every family.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory, Point
from subchain.core.ranges import probabilities, stored
from subchain.data.evidence import Evidence
from subchain.emissions.base import Likelihood, Parameters, Table, Values
from subchain.engines.part import Part
from subchain.engines.statistics import HMMStatistics
from subchain.engines.surrogate import Surrogate
from subchain.structures.base import Moved
from subchain.structures.chain.model import HMMPoint, HMMPosterior
from subchain.structures.chain.sampling.walkers import PathWalker
from subchain.transitions.base import Chain, ChainLaw
from subchain.transitions.dirichlet import DirichletChain
from subchain.transitions.operators import Dense

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class SampledSequences(PathWalker):
    """Parameters given the states, then all states given the parameters."""

    def begin(self, point: Point) -> None:
        self.point = cast(HMMPoint, point)
        super().begin(point)

    def restore(self, memory: Memory) -> None:
        super().restore(memory)
        self.point = self.prior.mean()
        if self.setting.is_stationary:
            shape = self.point.chain.transition.shape
            initial = stored(memory, f"initial.{self.number}", probabilities(), shape[:1])
            moves = stored(memory, f"transition.{self.number}", probabilities(), shape)
            self.point.chain = self.point.chain.with_weights(initial, moves)

    def memory(self) -> Memory:
        memory = super().memory()
        if self.setting.is_stationary:
            chain = self.point.chain
            memory |= {f"transition.{self.number}": chain.transition, f"initial.{self.number}": chain.initial}
        return memory

    def sweep(self, sweep: int, temperature: float) -> Moved:
        statistics, rng = self.statistics(), self.setting.rng(self.number, sweep, 2)
        annealed = statistics if temperature == 1.0 else statistics.scale(1.0 / temperature)
        posterior = self.prior.update(annealed)
        point = posterior.sample(rng)
        if self.setting.is_stationary:
            drawn = self._draw_stationary(posterior, annealed, rng)
            point.chain = point.chain.with_weights(drawn.initial, drawn.transition)
        self.point = point
        whole, surrogate = self.setting.chains, point.surrogate()
        evidence = whole.under(point).evidence
        if temperature != 1.0:
            surrogate, evidence = _raised(surrogate, 1.0 / temperature), _raised_evidence(evidence, 1.0 / temperature)
        seed = np.random.SeedSequence([self.setting.seed, self.number, sweep, 4])
        fresh = self.setting.chains.engine.sample_paths(surrogate, Part(self.data, evidence), 1, seed)[0]
        changed = float(np.mean(fresh != self.states)) if len(fresh) else 0.0
        self.states = fresh
        if self.setting.has_incomplete_rows:
            self._fill(point.emission, sweep)
        return Moved(changed)

    def draw_chain(self, statistics: HMMStatistics, sweep: int) -> ChainLaw:
        """Return the chain that the states were drawn with."""
        return self.point.chain

    def draw_emission(self, statistics: HMMStatistics, sweep: int) -> Parameters:
        """Return the parameters that the states were drawn with."""
        return self.point.emission

    def _draw_stationary(
        self, posterior: HMMPosterior, statistics: HMMStatistics, rng: np.random.Generator
    ) -> ChainLaw:
        """Draw transitions whose stationary distribution is that of the first states.

        Rows are proposed from what the transitions alone say of them, one after the other, and accepted by what the
        first states say of the stationary distribution that would follow (Metropolis and Hastings).
        """
        current, chain = self.point.chain, cast(DirichletChain, posterior.chain)
        proposal: Array = chain.rows.sample(rng)
        levels = np.log1p(-rng.random(len(proposal)))
        for state, row in enumerate(proposal):
            changed = current.transition.copy()
            changed[state] = row
            initial = chain.initial.mean(Dense(changed))
            seen = statistics.initial > 0.0
            with np.errstate(divide="ignore"):
                gain = statistics.initial[seen] @ (np.log(initial[seen]) - np.log(current.initial[seen]))
            if levels[state] < gain:
                current = Chain(initial, changed)
        return current


class _Raised(Likelihood):
    """A likelihood raised to a power."""

    def __init__(self, likelihood: Likelihood, power: float) -> None:
        self.likelihood = likelihood
        self.power = power

    @property
    def n_states(self) -> int:
        return self.likelihood.n_states

    def log_likelihood(self, values: Values) -> Table:
        return self.power * self.likelihood.log_likelihood(values)

    def zeros(self) -> Any:
        return self.likelihood.zeros()

    def accumulate(self, values: Values, marginals: Table, sums: Any) -> None:
        self.likelihood.accumulate(values, marginals, sums)


class _RaisedEvidence(Evidence):
    """Evidence raised to a power."""

    def __init__(self, evidence: Evidence, power: float) -> None:
        super().__init__(evidence.n_states, ())
        self.evidence = evidence
        self.power = power

    def log_weights(self, index: Index, values: Values) -> Table:
        return self.power * self.evidence.log_weights(index, values)


def _raised(surrogate: Surrogate, power: float) -> Surrogate:
    """The model whose paths have the probabilities of this one's, raised to a power."""
    moves, initial = surrogate.transition.mapped(lambda table: table**power), surrogate.initial**power
    largest = moves.weights.sum(axis=1).max()
    return Surrogate(
        initial / initial.sum(), moves.mapped(lambda table: table / largest), _Raised(surrogate.emission, power)
    )


def _raised_evidence(evidence: Evidence | None, power: float) -> Evidence | None:
    return None if evidence is None else _RaisedEvidence(evidence, power)
