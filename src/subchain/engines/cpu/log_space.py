"""Sequences that defeat scaled probabilities, worked out in log space.

A state that is 1e-400 times less likely than another is a zero to a double; if the other turns out to be impossible
later, the scaled pass finds a chain of probability zero although it is only improbable. Such sequences are rare; they
are found by `propagation.underflow` and redone here, block by block, with forward messages kept at the blocks' borders.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.kernels import Kernels
from subchain.engines.cpu.messages import Messages
from subchain.propagation.occurrence.pairs import add_log_surplus
from subchain.transitions.operators import Dense

Array = NDArray[np.float64]
Index = NDArray[np.int64]

BLOCK = 1 << 15


@dataclasses.dataclass
class LogBlock:
    """A stretch of one sequence, run in log space.

    Attributes
    ----------
    positions, values : (n,) flat positions, and the observations there
    alpha, marginals : (K, n) filtered and smoothed marginals
    increments : (n,) log probability of each observation given those before it
    pairs : expected transitions, in the operator's form, within the block and the one that leads out of it
    surplus : (K, K) what they add to `pairs` in the occurrence of transitions (`propagation.occurrence`); None for a
        band or for factors
    is_first : whether the block begins its sequence
    """

    positions: Index
    values: NDArray[Any]
    alpha: Array
    marginals: Array
    increments: Array
    pairs: Array
    surplus: Array | None
    is_first: bool


class LogChain:
    """One sequence under one surrogate, in log space."""

    def __init__(self, messages: Messages, start: int, stop: int) -> None:
        self.messages = messages
        with np.errstate(divide="ignore"):
            self.log_initial = np.log(messages.surrogate.initial)
        self.kernels = messages.kernels
        self.edges = [*range(start, stop, BLOCK), stop]
        self.predicted: list[Array] = []
        self._totals = [0.0]
        self.log_total, self.impossible_at = self._forward(start)

    @classmethod
    def of(cls, messages: Messages, sequence: int) -> LogChain:
        """One whole sequence of the data."""
        start, stop = messages.data.offsets[sequence : sequence + 2].tolist()
        return cls(messages, start, stop)

    def _forward(self, start: int) -> tuple[float, int | None]:
        """Log likelihood, and the first position that no path can explain (None if there is a path)."""
        alpha = self.log_initial.copy()
        for first, last in zip(self.edges[:-1], self.edges[1:], strict=True):
            self.predicted.append(alpha.copy())
            _, logs = self.messages.log_likelihood(np.arange(first, last))
            out = np.empty_like(logs)
            self.kernels.log_forward(logs, alpha, out)
            dead = np.flatnonzero(~(out > -np.inf).any(axis=1))
            if len(dead):
                return -np.inf, first - start + int(dead[0])
            self._totals.append(float(np.logaddexp.reduce(out[-1])))
        return self._totals[-1], None

    def joint(self, block: int) -> tuple[Index, Array]:
        """Positions (n,) of a block, and the log joint probability (n, K) of state and past there."""
        positions = np.arange(self.edges[block], self.edges[block + 1])
        _, logs = self.messages.log_likelihood(positions)
        joint = np.empty_like(logs)
        self.kernels.log_forward(logs, self.predicted[block].copy(), joint)
        return positions, joint

    def blocks(self) -> Iterator[LogBlock]:
        """Yield the blocks from the last to the first."""
        n_states = len(self.log_initial)
        beta = np.zeros(n_states)
        next_logs = next_beta = np.empty((0, n_states))
        for block in range(len(self.edges) - 2, -1, -1):
            positions = np.arange(self.edges[block], self.edges[block + 1])
            values, logs = self.messages.log_likelihood(positions)
            alpha, after = np.empty_like(logs), np.empty_like(logs)
            self.kernels.log_forward(logs, self.predicted[block].copy(), alpha)
            self.kernels.log_backward(logs, beta, after)
            pairs = np.zeros_like(self.kernels.operator.weights)
            later_logs, later_beta = np.vstack((logs[1:], next_logs)), np.vstack((after[1:], next_beta))
            joint = (alpha[: len(later_logs)], later_logs, later_beta, self.log_total)
            self.kernels.log_pair_sums(*joint, pairs)
            surplus = _surplus(self.kernels, *joint)
            # Logarithms of long chains are large and lose digits; the number of transitions is known.
            pairs *= self.kernels.halves * len(later_logs) / max(float(pairs.sum()), np.finfo(np.float64).tiny)
            so_far = np.logaddexp.reduce(alpha, axis=1)
            filtered = alpha - so_far[:, None]
            marginals = np.exp(alpha + after - self.log_total)
            marginals /= marginals.sum(axis=1, keepdims=True)
            increments = np.diff(so_far, prepend=self._totals[block])
            yield LogBlock(
                positions, values, np.exp(filtered.T), np.ascontiguousarray(marginals.T), increments, pairs, surplus,
                block == 0,
            )  # fmt: skip
            next_logs, next_beta = logs[:1], after[:1]


def _surplus(kernels: Kernels, alpha: Array, logs: Array, beta: Array, log_total: float) -> Array | None:
    """See `LogBlock.surplus`; arguments as for `Kernels.log_pair_sums`."""
    if not isinstance(kernels.operator, Dense):
        return None
    found = np.zeros_like(kernels.operator.weights)
    add_log_surplus(alpha, kernels.log_forms.forward, logs, beta, log_total, found)
    return found


class LogPass(NamedTuple):
    """Forward-backward over one short chain in log space.

    Attributes
    ----------
    log_total : log normaliser of the forward messages, as in a scaled pass: without what comes after the chain
    impossible_at : first position that no path explains, or None
    marginals : (K, n)
    pairs : expected transitions, in the operator's form
    first_message, last_message : (K,) what the chain tells its neighbours
    """

    log_total: float
    impossible_at: int | None
    marginals: Array
    pairs: Array
    first_message: Array
    last_message: Array


def log_pass(logs: Array, kernels: Kernels, start: Array, stop: Array) -> LogPass:
    """Forward-backward in log space over log likelihoods (n, K), between weights (K,) that come from outside."""
    with np.errstate(divide="ignore"):
        predicted, future = np.log(start), np.log(stop)
    alpha, beta = np.empty_like(logs), np.empty_like(logs)
    pairs = np.zeros_like(kernels.operator.weights)
    kernels.log_forward(logs, predicted, alpha)
    kernels.log_backward(logs, future, beta)
    both = alpha + beta
    total = float(np.logaddexp.reduce(both[-1]))
    if not np.isfinite(total):
        dead = np.flatnonzero(~(alpha > -np.inf).any(axis=1))
        where = int(dead[0]) if len(dead) else len(logs) - 1
        return LogPass(-np.inf, where, np.zeros_like(logs.T), pairs, start, stop)
    kernels.log_pair_sums(alpha[:-1], logs[1:], beta[1:], total, pairs)
    marginals = np.exp(both - np.logaddexp.reduce(both, axis=1, keepdims=True)).T
    return LogPass(
        float(np.logaddexp.reduce(alpha[-1])),
        None,
        np.ascontiguousarray(marginals),
        pairs,
        np.exp(logs[0] + beta[0] - np.logaddexp.reduce(logs[0] + beta[0])),
        np.exp(alpha[-1] - np.logaddexp.reduce(alpha[-1])),
    )
