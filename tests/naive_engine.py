"""An engine that is obviously right: plain NumPy in log space, one sequence after the other, every position a loop.

It has all verbs of `subchain.engines.Engine` and nothing of the processor's engine, so that a whole fit through
`HMM(..., engine=NaiveEngine())` judges both the protocol and the fast engine.
"""

from __future__ import annotations

import contextlib
import dataclasses

import naive
import numpy as np

from subchain.engines.part import Observed
from subchain.engines.results import Approach, FilteredBlock, MarginalBlock, Occurrence, PassMemory, Scores
from subchain.engines.statistics import HMMStatistics
from subchain.engines.subchains import Ends, MinibatchRun
from subchain.errors import impossible_error
from subchain.propagation.occurrence.methods import absence_in, expected_transitions
from subchain.propagation.occurrence.pairs import absence
from subchain.transitions.operators import Banded

#: Relative error of posterior marginals that the fast engine allows where pieces of a chain meet.
TOLERANCE = 1e-13


@dataclasses.dataclass
class Passed:
    """A chain of n positions: log messages (n, K) and what they say."""

    values: np.ndarray
    past: np.ndarray  # log of the predicted states before each observation
    joint: np.ndarray  # log of past and present
    future: np.ndarray  # log of what comes after each position
    logs: np.ndarray  # log likelihoods, evidence about the states included
    known: np.ndarray  # log weights of that evidence
    log_moves: np.ndarray

    @property
    def cavity(self):
        """What all but a position's own observation says of its state, in logarithms."""
        return self.past + self.known + self.future

    @property
    def both(self):
        return self.joint + self.future

    @property
    def smoothed(self):
        return normalized(self.both)

    @property
    def log_total(self):
        return naive.log_sum(self.joint[-1])

    @property
    def pairs(self):
        """Probabilities (n − 1, K, K) of neighbouring pairs."""
        joint = self.joint[:-1, :, None] + self.log_moves + (self.logs + self.future)[1:, None, :]
        return np.exp(joint - np.logaddexp.reduce(joint, axis=(1, 2), keepdims=True))

    @property
    def conditionals(self):
        """Probability (n − 1, K, K) of each state given the one before; zeros where no path leads on."""
        logs = self.log_moves + (self.logs + self.future)[1:, None, :]
        totals = np.logaddexp.reduce(logs, axis=2, keepdims=True)
        return np.exp(logs - np.where(totals > -np.inf, totals, 0.0))


def normalized(logs):
    """Probabilities from logarithms, along the last axis."""
    return np.exp(logs - np.logaddexp.reduce(logs, axis=-1, keepdims=True))


def run(surrogate, part, positions, start=None, stop=None):
    """Forward and backward messages over some positions, between weights (K,) from outside; also their values."""
    observed = Observed(surrogate, part)
    values, logs = observed.log_likelihood(positions)
    known = observed.known(positions)[1].T
    past, joint, future = np.empty_like(logs), np.empty_like(logs), np.empty_like(logs)
    log_moves = naive.logs(surrogate.transition.dense())
    past[0] = naive.logs(surrogate.initial if start is None else start)
    future[-1] = 0.0 if stop is None else naive.logs(stop)
    for t in range(len(logs)):
        if t > 0:
            past[t] = np.logaddexp.reduce(joint[t - 1][:, None] + log_moves, axis=0)
        joint[t] = past[t] + logs[t]
    for t in range(len(logs) - 2, -1, -1):
        future[t] = np.logaddexp.reduce(log_moves + logs[t + 1] + future[t + 1], axis=1)
    return Passed(values, past, joint, future, logs, known, log_moves)


def in_form(operator, table):
    """The entries of a (K, K) table that an operator counts."""
    return operator.layout.gather(table) if isinstance(operator, Banded) else table


def limited(logs):
    """Weights from logarithms; those of possible states are at least e^-700 of the largest."""
    return np.exp(np.where(logs > -np.inf, np.maximum(logs, logs.max() - 700.0), -np.inf))


def mixed(x: int) -> int:
    """The output function of splitmix64, in whole numbers."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % 2**64
    return x ^ (x >> 31)


def uniforms(key, number, n):
    """The first n uniform numbers of a stream, see `numerics.random`."""
    step = 0x9E3779B97F4A7C15
    begin = mixed((mixed((int(key[0]) + number * step) % 2**64) + int(key[1])) % 2**64)
    return np.array([(mixed((begin + (i + 1) * step) % 2**64) >> 11) / 2**53 for i in range(n)])


class NaiveEngine:
    """All verbs of an engine, slowly."""

    run = staticmethod(run)

    # ---- passes over a part of the data ------------------------------------------------------------------------------

    def sequences(self, surrogate, part):
        """Yield number, positions and messages of every sequence that is not empty."""
        for number in np.flatnonzero(part.data.lengths):
            positions = np.arange(*part.data.offsets[number : number + 2])
            yield int(number), positions, self.run(surrogate, part, positions)

    def scores(self, surrogate, part):
        totals, impossible = np.zeros(part.data.n_sequences), {}
        for number, _, passed in self.sequences(surrogate, part):
            totals[number] = passed.log_total
            if totals[number] == -np.inf:
                impossible[number] = int(np.argmin((passed.joint > -np.inf).any(axis=1)))
        return Scores(totals, impossible)

    def statistics(self, surrogate, part):
        totals, weights = self.scores(surrogate, part).checked(), part.weights
        weights = np.ones(len(totals)) if weights is None else weights
        found = HMMStatistics(surrogate.transition.zeros(), surrogate.emission.zeros())
        for number, _, passed in self.sequences(surrogate, part):
            found.chain.initial += weights[number] * passed.smoothed[0]
            found.chain.pairs += weights[number] * in_form(surrogate.transition, passed.pairs.sum(axis=0))
            marginals = np.ascontiguousarray(weights[number] * passed.smoothed.T)
            surrogate.emission.accumulate(passed.values, marginals, found.emission)
        found.log_normalizer = float(totals @ weights)
        found.n_observations = float(part.data.lengths @ weights)
        return found

    def smooth(self, surrogate, part, consume):
        scores = self.scores(surrogate, part)
        for number, positions, passed in self.sequences(surrogate, part):
            if number not in scores.impossible:
                consume(MarginalBlock(positions, np.ascontiguousarray(passed.smoothed.T)))
        return scores

    def filter(self, surrogate, part, consume):
        scores = self.scores(surrogate, part)
        for number, positions, passed in self.sequences(surrogate, part):
            if number not in scores.impossible:
                increments = np.diff(np.logaddexp.reduce(passed.joint, axis=1), prepend=0.0)
                table = np.ascontiguousarray(normalized(passed.joint).T)
                consume(FilteredBlock(positions, table, np.ones(len(positions)), increments))
        return scores

    def predict(self, surrogate, part, consume):
        scores = self.scores(surrogate, part)
        for number, positions, passed in self.sequences(surrogate, part):
            if number not in scores.impossible:
                consume(MarginalBlock(positions, np.ascontiguousarray(normalized(passed.past).T)))
        return scores

    def leave_out(self, surrogate, part, consume):
        scores = self.scores(surrogate, part)
        for number, positions, passed in self.sequences(surrogate, part):
            if number not in scores.impossible:
                consume(MarginalBlock(positions, np.ascontiguousarray(normalized(passed.cavity).T)))
        return scores

    def smooth_in_order(self, surrogate, part, size):
        table = np.empty((part.data.n_observations, surrogate.n_states))
        self.smooth(surrogate, part, lambda block: block.write(table)).checked()
        for first in range(0, len(table), size):
            yield first, table[first : first + size]

    def score_left_out(self, surrogate, part):
        out = np.empty(part.data.n_observations)
        self.scores(surrogate, part).checked()
        for _, positions, passed in self.sequences(surrogate, part):
            cavity, own = passed.cavity, surrogate.emission.log_likelihood(passed.values).T
            out[positions] = np.logaddexp.reduce(cavity + own, axis=1) - np.logaddexp.reduce(cavity, axis=1)
        return out

    def viterbi(self, surrogate, part, out=None):
        self.scores(surrogate, part).checked()
        states = np.empty(part.data.n_observations, dtype=np.int32) if out is None else out
        best, moves = np.zeros(part.data.n_sequences), surrogate.transition.dense()
        for number, positions, passed in self.sequences(surrogate, part):
            states[positions], best[number] = naive.best_path(passed.logs, surrogate.initial, moves)
        return states, best

    def sample_paths(self, surrogate, part, n, seed, out=None):
        self.scores(surrogate, part).checked()
        states = np.empty((n, part.data.n_observations), dtype=np.int32) if out is None else out
        key = seed.generate_state(2, np.uint64)
        for path in range(n):
            uniform = uniforms(key, path, states.shape[1])
            for _, positions, passed in self.sequences(surrogate, part):
                onward = np.zeros(surrogate.n_states)
                for t in range(len(positions) - 1, -1, -1):
                    shares = np.cumsum(normalized(passed.joint[t] + onward))
                    state = int(np.searchsorted(shares, uniform[positions[t]] * shares[-1], side="right"))
                    states[path, positions[t]] = state
                    onward = passed.log_moves[:, state]
        return states

    def occurrence(self, surrogate, part, method="pairs", n_samples=1000, seed=0):
        self.scores(surrogate, part).checked()
        n_states = surrogate.n_states
        found = Occurrence(np.zeros(n_states), np.zeros((n_states, n_states)))
        for number, positions, passed in self.sequences(surrogate, part):
            weight = 1.0 if part.weights is None else part.weights[number]
            key, first = (seed, int(positions[0])), passed.smoothed[0]
            found.first += weight * absence(first)
            found.moves += weight * absence_in(method, first, passed.conditionals, n_samples, key)
        return found

    # ---- subchains ---------------------------------------------------------------------------------------------------

    def minibatch(self, surrogate, part, batch, start, stop, keep=None, surplus=None):
        n_states, totals, ones = surrogate.n_states, np.empty(batch.size), np.ones(batch.size)
        found = HMMStatistics(surrogate.transition.zeros(), surrogate.emission.zeros())
        ends = Ends(*np.empty((4, n_states, batch.size)))
        more = None if surplus is None else np.zeros((n_states, n_states))
        given, weights, pair_weights = (
            ones if table is None else table for table in (batch.user_weights, batch.weights, batch.pair_weights)
        )
        for i in range(batch.size):
            positions = batch.starts[i] + np.arange(batch.lengths[i])
            passed = self.run(surrogate, part, positions, start[:, i], stop[:, i])
            if naive.log_sum(passed.both[-1]) == -np.inf:
                sequence = int(batch.sequences[i])
                dead = np.append(np.flatnonzero(~(passed.joint > -np.inf).any(axis=1)), len(positions) - 1)[0]
                raise impossible_error({sequence: int(positions[dead] - part.data.offsets[sequence])})
            totals[i], smoothed = passed.log_total, passed.smoothed
            ends.first_message[:, i] = normalized(passed.future[0] + passed.logs[0])
            ends.last_message[:, i] = normalized(passed.joint[-1])
            ends.first_marginal[:, i], ends.last_marginal[:, i] = smoothed[0], smoothed[-1]
            if keep is not None:
                keep(positions, np.ascontiguousarray(smoothed.T))
            if more is not None:
                absent = absence_in(surplus, smoothed[0], passed.conditionals, key=(0, int(positions[0])))
                more += pair_weights[i] * (absent - expected_transitions(smoothed[0], passed.conditionals))
            found.chain.initial += batch.is_first[i] * given[i] * smoothed[0]
            found.chain.pairs += pair_weights[i] * in_form(surrogate.transition, passed.pairs.sum(axis=0))
            marginals = np.ascontiguousarray(weights[i] * smoothed.T)
            surrogate.emission.accumulate(passed.values, marginals, found.emission)
        found.log_normalizer, found.n_observations = float(totals.sum()), float(batch.lengths.sum())
        return MinibatchRun(found, totals, ends, more)

    def approach(self, surrogate, part, batch, outside, before, after):
        start, stop = np.empty((2, surrogate.n_states, batch.size))
        for i in range(batch.size):
            first, last = batch.starts[i], batch.starts[i] + batch.lengths[i]
            begins = first - before[i] == part.data.offsets[batch.sequences[i]]
            start[:, i], stop[:, i] = surrogate.initial if begins else outside, 1.0
            if before[i]:
                passed = run(surrogate, part, np.arange(first - before[i], first), start[:, i])
                ahead = np.logaddexp.reduce(passed.joint[-1][:, None] + passed.log_moves, axis=0)
                start[:, i] = limited(ahead - naive.log_sum(passed.joint[-1]))
            if after[i]:
                passed = run(surrogate, part, np.arange(last, last + after[i]))
                weighted = passed.log_moves + passed.logs[0] + passed.future[0]
                ahead = np.logaddexp.reduce(weighted, axis=1)
                stop[:, i] = limited(ahead - naive.log_sum(ahead))
        return Approach(start, stop, np.stack((before, after), axis=1))

    def grow(self, surrogate, part, batch, outside, growth):
        offsets, reach = part.data.offsets, np.zeros((batch.size, 2), dtype=np.int64)
        for i in range(batch.size):
            first, last = batch.starts[i], batch.starts[i] + batch.lengths[i]
            room = np.array([first - offsets[batch.sequences[i]], offsets[batch.sequences[i] + 1] - last])
            while (reach[i] < room).any() and reach[i].max() < growth.limit:
                if self._influence(surrogate, part, (first, last), reach[i], room, outside) <= growth.tolerance:
                    break
                reach[i] += np.minimum(np.minimum(growth.step, room - reach[i]), growth.limit - reach[i])
        found = self.approach(surrogate, part, batch, outside, reach[:, 0], reach[:, 1])
        return Approach(found.start / found.start.sum(axis=0), found.stop / found.stop.sum(axis=0), reach)

    def _influence(self, surrogate, part, ends, reach, room, outside):
        """How much certainty of any state at the outer end of a buffer changes the marginals of a subchain's ends."""
        first, certain = ends[0] - reach[0], np.eye(surrogate.n_states)
        positions, at = np.arange(first, ends[1] + reach[1]), [ends[0] - first, ends[1] - first - 1]
        start = surrogate.initial if reach[0] == room[0] else outside

        def marginals(start, stop=None):
            return normalized(run(surrogate, part, positions, start, stop).both[at])

        def largest(others):
            apart = [0.5 * np.abs(other - marginals(start)).sum(axis=1).max() for other in others]
            return np.nanmax([0.0, *apart])

        with np.errstate(invalid="ignore"):  # states that have no path
            of_left = largest(marginals(one) for one in certain) if reach[0] < room[0] else 0.0
            of_right = largest(marginals(start, one) for one in certain) if reach[1] < room[1] else 0.0
        return of_left + of_right

    def distances(self, surrogate, part, starts, steps):
        n_states, out = surrogate.n_states, np.empty((steps, len(starts)))
        for i, first in enumerate(starts):
            lean = 0.9 * np.eye(n_states)[i % n_states] + 0.1 / n_states
            one, two = (
                normalized(run(surrogate, part, np.arange(first, first + steps), start).joint)
                for start in (np.full(n_states, 1.0 / n_states), lean)
            )
            out[:, i] = 0.5 * np.abs(one - two).sum(axis=1)
        return out

    # ---- the run -----------------------------------------------------------------------------------------------------

    def map(self, task, items):
        return [task(item) for item in items]

    def running(self):
        return contextlib.nullcontext()

    def pass_memory(self, data, transition, sums_bytes):
        return PassMemory(3 * 8 * transition.n_states * int(data.lengths.max(initial=0)), sums_bytes, 0)


@dataclasses.dataclass
class RoundedPassed(Passed):
    """A chain whose posterior marginals are off by as much as an engine's rounding may be."""

    rng: np.random.Generator

    def rounded(self, probabilities):
        logs = np.abs(self.logs[np.isfinite(self.logs)]).max(initial=0.0)
        error = TOLERANCE + 4.0 * np.finfo(np.float64).eps * logs
        return probabilities * (1.0 + error * self.rng.uniform(-1.0, 1.0, probabilities.shape))

    @property
    def smoothed(self):
        return self.rounded(super().smoothed)

    @property
    def pairs(self):
        return self.rounded(super().pairs)


class RoundedEngine(NaiveEngine):
    """The same with other rounding errors: how far two fits by it are apart tells how much rounding decides in them."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def run(self, *arguments):
        return RoundedPassed(**vars(run(*arguments)), rng=self.rng)
