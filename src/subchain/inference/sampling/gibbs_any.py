"""Gibbs sampling with any family of emissions and any prior over the transitions.

States and sequences are drawn one after the other in Python, from the predictive distributions that every conjugate
family has: for small data, and for families without compiled kernels. Where the parameters are drawn instead of summed
out, the engine samples whole paths, which is fast for every family.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from subchain.core.parts import Memory
from subchain.data.evidence import Evidence
from subchain.emissions.base import Likelihood, Parameters, Table, Values
from subchain.engines.part import Part
from subchain.engines.statistics import HMMStatistics
from subchain.engines.surrogate import Surrogate
from subchain.inference.sampling.joint import begins_stationary, emission_sums, empty_rows, log_joint_of_emissions
from subchain.inference.sampling.walkers import Moved, Walker
from subchain.numerics.random import stream, uniform
from subchain.propagation.collapsed.draw_paths import propose
from subchain.propagation.collapsed.rows import (
    count_moves,
    predictive,
    put_in_path,
    put_state,
    replace_state,
    take_out_path,
)
from subchain.structures.chain.model import HMMPoint, HMMPosterior
from subchain.transitions.base import Chain, ChainLaw
from subchain.transitions.dirichlet import DirichletChain
from subchain.transitions.operators import Dense

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@njit(cache=True)
def _uniforms(key, sweep, out):  # type: ignore[no-untyped-def]
    """The uniform numbers of a sweep, from its first position on; return where their stream begins."""
    begin = stream(key, sweep)
    for position in range(out.shape[0]):
        out[position] = uniform(begin, position)
    return begin


def _pick(log_weights: Array, point: float) -> int:
    """The entry whose share of [0, 1) holds the point."""
    weights = np.exp(log_weights - log_weights.max())
    so_far = np.cumsum(weights)
    found = int(np.searchsorted(so_far, point * so_far[-1], side="right"))
    return min(found, int(np.flatnonzero(weights)[-1]))


class AnyStates(Walker):
    """One state at a time, the parameters summed out."""

    def sweep(self, sweep: int, temperature: float) -> Moved:
        if self.setting.has_holes:
            self._fill(self.draw_emission(self.statistics(), sweep), sweep)
        rows, states, offsets = empty_rows(self.prior.chain), self.states, self.data.offsets
        count_moves(rows, states, offsets, 1.0)
        sums, points = self.sums(), np.empty(len(states))
        _uniforms(self.key, sweep, points)
        changed = 0
        for first, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            for position in range(first, stop):
                legal, known = self._legal(position)
                if len(legal) == 1:
                    continue
                old = int(states[position])
                before = int(states[position - 1]) if position > first else rows.counts.shape[1]
                after = int(states[position + 1]) if position + 1 < stop else -1
                rest = sums - self._own(position, old)
                likelihood: Likelihood = self.prior.emission.update(rest).predictive()
                logs = likelihood.log_likelihood(self.values[position : position + 1])[legal, 0] + known
                weights = np.empty(len(legal))
                replace_state(rows, before, old, after, legal, weights)
                with np.errstate(divide="ignore"):
                    logs += np.log(weights)
                new = int(legal[_pick(logs / temperature, points[position])])
                put_state(rows, before, new, after)
                if new != old:
                    states[position], sums = new, rest + self._own(position, new)
                    changed += 1
        return Moved(changed / max(len(states), 1))

    def _legal(self, position: int) -> tuple[Index, Any]:
        """Legal states of a position, and what is known of them."""
        legal = self.setting.legal
        if legal is None:
            return np.arange(self.setting.reference.n_states), 0.0
        here = slice(int(legal.offsets[position]), int(legal.offsets[position + 1]))
        return legal.states[here].astype(np.int64), 0.0 if legal.log_weights is None else legal.log_weights[here]

    def _own(self, position: int, state: int) -> Any:
        """What one observation adds to the sums if its state is this."""
        reference = self.setting.reference
        sums, marginals = reference.zeros(), np.zeros((reference.n_states, 1))
        marginals[state] = 1.0
        reference.accumulate(self.values[position : position + 1], marginals, sums)
        return sums


class AnySequences(Walker):
    """One sequence at a time, the parameters summed out."""

    def sweep(self, sweep: int, temperature: float) -> Moved:
        if self.setting.has_holes:
            self._fill(self.draw_emission(self.statistics(), sweep), sweep)
        rows, states, data = empty_rows(self.prior.chain), self.states, self.data
        count_moves(rows, states, data.offsets, 1.0)
        sums, n_states = self.sums(), self.setting.reference.n_states
        points, moves = np.empty(len(states) + data.n_sequences), np.empty((n_states + 1, n_states))
        begin = np.uint64(_uniforms(self.key, sweep, points))
        changed = accepted = 0
        filled = np.flatnonzero(data.lengths).tolist()
        for sequence in filled:
            first, stop = int(data.offsets[sequence]), int(data.offsets[sequence + 1])
            values, old = np.asarray(self.values[first:stop]), states[first:stop].astype(np.int64)
            own = emission_sums(self.setting.reference, values, old)
            rest = sums - own
            others = self.prior.emission.update(rest)
            log_old = take_out_path(rows, old) + log_joint_of_emissions(others, own, values, old)
            logs = others.predictive().log_likelihood(values).T
            known = self._known(first, stop)
            new, alpha = np.empty_like(old), np.empty(logs.shape)
            predictive(rows, moves)
            likelihood = _exponentials(logs + known)
            log_ratio = propose(moves, likelihood, 1.0 / temperature, begin, first, alpha, old, new)
            accepts = not np.isnan(log_ratio)
            if accepts and (old != new).any():
                fresh = emission_sums(self.setting.reference, values, new)
                log_new = put_in_path(rows, new) + log_joint_of_emissions(others, fresh, values, new)
                log_ratio += float((_along(known, new) - _along(known, old)).sum())
                level = np.log(max(points[len(states) + sequence], 1e-300))
                accepts = bool(level < (log_new - log_old + log_ratio) / temperature)
                if accepts:
                    changed += int((old != new).sum())
                    states[first:stop], sums = new, rest + fresh
                else:
                    take_out_path(rows, new)
                    put_in_path(rows, old)
            else:
                put_in_path(rows, old)
            accepted += accepts
        return Moved(changed / max(len(states), 1), accepted / max(len(filled), 1))

    def _known(self, first: int, stop: int) -> Array:
        """Log weights (n, K) of what is known of a sequence's states."""
        evidence, n_states = self.setting.problem.structure.evidence, self.setting.reference.n_states
        if evidence is None:
            return np.zeros((stop - first, n_states))
        index = np.arange(first, stop)
        return evidence.log_weights(index, np.asarray(self.data.values[first:stop])).T


def _along(table: Array, path: Index) -> Array:
    return np.asarray(table[np.arange(len(path)), path])


def _exponentials(logs: Array) -> Array:
    """Likelihoods (n, K), the largest of each row being one."""
    return np.ascontiguousarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


# ---- parameters that are drawn ---------------------------------------------------------------------------------------


class SampledSequences(Walker):
    """Parameters given the states, then all states given the parameters."""

    side_by_side = False

    def begin(self, point: HMMPoint) -> None:
        self.point = point
        super().begin(point)

    def restore(self, memory: Memory) -> None:
        super().restore(memory)
        self.point = self.prior.mean()
        if begins_stationary(self.prior.chain):
            initial, moves = memory[f"initial.{self.number}"], memory[f"transition.{self.number}"]
            self.point.chain = self.point.chain.with_weights(initial, moves)

    def memory(self) -> Memory:
        memory = super().memory()
        if begins_stationary(self.prior.chain):
            chain = self.point.chain
            memory |= {f"transition.{self.number}": chain.transition, f"initial.{self.number}": chain.initial}
        return memory

    def sweep(self, sweep: int, temperature: float) -> Moved:
        statistics, rng = self.statistics(), self.setting.rng(self.number, sweep, 2)
        annealed = statistics if temperature == 1.0 else statistics.scale(1.0 / temperature)
        posterior = self.prior.update(annealed)
        point = posterior.sample(rng)
        if begins_stationary(self.prior.chain):
            point.chain = self._draw_stationary(posterior, annealed, rng)
        self.point = point
        whole, surrogate = self.setting.problem.structure, point.surrogate()
        evidence = whole.evidence
        if temperature != 1.0:
            surrogate, evidence = _raised(surrogate, 1.0 / temperature), _raised_evidence(evidence, 1.0 / temperature)
        seed = np.random.SeedSequence([self.setting.seed, self.number, sweep, 4])
        fresh = self.setting.problem.structure.engine.sample_paths(surrogate, Part(self.data, evidence), 1, seed)[0]
        changed = float(np.mean(fresh != self.states)) if len(fresh) else 0.0
        self.states = fresh
        if self.setting.has_holes:
            self._fill(point.emission, sweep)
        return Moved(changed)

    def draw_chain(self, statistics: HMMStatistics, sweep: int) -> ChainLaw:
        """That which the states were drawn with."""
        return self.point.chain

    def draw_emission(self, statistics: HMMStatistics, sweep: int) -> Parameters:
        """Those which the states were drawn with."""
        return self.point.emission

    def _draw_stationary(
        self, posterior: HMMPosterior, statistics: HMMStatistics, rng: np.random.Generator
    ) -> ChainLaw:
        """Draw moves whose stationary distribution is that of the first states.

        Rows are proposed from what the moves alone say of them, one after the other, and accepted by what the first
        states say of the stationary distribution that would follow (Metropolis and Hastings).
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
