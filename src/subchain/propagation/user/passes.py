"""Forward and backward passes over checked chains: in scaled probabilities, and in log space where these underflow.

A single chain, or chains with few states, run one after the other (`user/scaled.py`); many chains with many states run
side by side, so that a step is a matrix product (`lanes/products.py`). Sequences whose scaled probabilities underflow
(`underflow.py`) run in log space (`serial.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.errors import ImpossibleSequenceError
from subchain.propagation import serial
from subchain.propagation.lanes import products
from subchain.propagation.layout import end_to_end, side_by_side
from subchain.propagation.underflow import exponentiate, growth, steps_of
from subchain.propagation.user import scaled as chain
from subchain.propagation.user.inputs import Chains

Array = NDArray[np.float64]

#: Smallest numbers of states and sequences for which sequences run side by side.
MANY_STATES, MANY_SEQUENCES = 48, 16
#: Largest number of sequences side by side.
MOST_LANES = 512


class Scaled(NamedTuple):
    """Result of a forward pass in scaled probabilities.

    Attributes
    ----------
    alpha : (T, K) filtered marginals
    likelihood : (T, K) likelihoods, scaled such that the largest of each position is one
    scale, shift : (T,) normalisers of alpha, and log scale factors of the likelihoods
    easy, hard : indices of the sequences whose pass is accurate, and of those that need log space
    """

    alpha: Array
    likelihood: Array
    scale: Array
    shift: Array
    easy: NDArray[np.int64]
    hard: NDArray[np.int64]

    def log_increments(self) -> Array:
        """Return the log probability of each observation given the earlier ones, (T,), for the easy sequences."""
        return log(self.scale) + self.shift


def log(weights: Array) -> Array:
    """Return logarithms, −inf for zero, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(weights)


def _run_side_by_side(chains: Chains) -> bool:
    return chains.n_states >= MANY_STATES and chains.n_sequences >= MANY_SEQUENCES


def scaled_filter(chains: Chains) -> Scaled:
    """Run the forward pass of all sequences in scaled probabilities."""
    shift = chains.log_likelihood.max(axis=1)
    shift[shift == -np.inf] = 0.0
    likelihood = exponentiate(chains.log_likelihood - shift[:, None])
    alpha, scale = np.empty_like(likelihood), np.empty_like(shift)
    if _run_side_by_side(chains):
        for lanes in side_by_side(chains.starts, chains.stops, MOST_LANES):
            here = np.ascontiguousarray(likelihood[lanes.positions].T)
            filtered, normalizers = np.empty_like(here), np.empty(len(lanes.positions))
            start = np.repeat(chains.initial[:, None], lanes.n_lanes, axis=1)
            products.forward(here, chains.transition, start, lanes.offsets, filtered, normalizers)
            alpha[lanes.positions], scale[lanes.positions] = filtered.T, normalizers
    else:
        chain.forward(likelihood, chains.transition, chains.initial, chains.starts, chains.stops, alpha, scale)
    start = np.repeat(chains.initial[:, None], chains.n_sequences, axis=1)
    walks = end_to_end(chains.starts, chains.stops)
    steps = steps_of(chains.transition)
    is_hard = growth(likelihood.T, start, chains.transition, steps, walks, alpha.T, scale).matters()
    return Scaled(alpha, likelihood, scale, shift, np.flatnonzero(~is_hard), np.flatnonzero(is_hard))


def scaled_smooth(chains: Chains, scaled: Scaled) -> tuple[Array, Array]:
    """Return the posterior marginals (T, K) and the expected transitions (K, K) of the easy sequences."""
    easy = chains.of(scaled.easy)
    transposed = np.ascontiguousarray(chains.transition.T)
    # The backward message of a state with filtered marginal zero could overflow; its likelihood is set to zero.
    likelihood = np.where(scaled.alpha > 0.0, scaled.likelihood, 0.0)
    marginals, pairs = np.empty_like(likelihood), np.zeros_like(transposed)
    if _run_side_by_side(easy):
        for lanes in side_by_side(easy.starts, easy.stops, MOST_LANES):
            weighted = np.ascontiguousarray(likelihood[lanes.positions].T)
            alpha, smoothed = np.ascontiguousarray(scaled.alpha[lanes.positions].T), np.empty_like(weighted)
            stop = np.ones((chains.n_states, lanes.n_lanes))
            products.backward(weighted, transposed, stop, lanes.offsets, alpha, scaled.scale[lanes.positions], smoothed)
            products.pair_sums(alpha, weighted, lanes.offsets, pairs)
            marginals[lanes.positions] = smoothed.T
    else:
        chain.backward(likelihood, transposed, easy.starts, easy.stops, scaled.alpha, scaled.scale, marginals, pairs)
    return marginals, pairs * chains.transition


def log_filter(chains: Chains, sequence: int) -> tuple[Array, Array]:
    """Return the log forward messages, log p(state, observations so far), (n, K), and log increments (n,)."""
    logs = chains.log_likelihood[chains.rows(sequence)]
    joint = np.empty_like(logs)
    serial.log_forward(logs, log(chains.transition), log(chains.initial), joint)
    check_possible(joint, sequence)
    return joint, np.diff(np.logaddexp.reduce(joint, axis=1), prepend=0.0)


def log_smooth(chains: Chains, sequence: int, joint: Array) -> tuple[Array, Array]:
    """Return the posterior marginals (n, K) and the expected transitions (K, K) of one sequence, in log space.

    `joint` (n, K) are the log forward messages.
    """
    logs, log_transition = chains.log_likelihood[chains.rows(sequence)], log(chains.transition)
    future, pairs = np.empty_like(logs), np.zeros_like(log_transition)
    serial.log_backward(logs, np.ascontiguousarray(log_transition.T), np.zeros(chains.n_states), future)
    total = float(np.logaddexp.reduce(joint[-1]))
    serial.log_pair_sums(joint[:-1], log_transition, logs[1:], future[1:], total, pairs)
    both = joint + future
    # Log messages of long chains are large and lose digits, so that marginals and pairs are renormalised.
    pairs *= (len(logs) - 1) / max(pairs.sum(), np.finfo(np.float64).tiny)
    return np.exp(both - np.logaddexp.reduce(both, axis=1, keepdims=True)), pairs


def check_possible(weights: Array, sequence: int) -> None:
    """Raise an `ImpossibleSequenceError` if all states of a position (row) have log weight −inf."""
    dead = np.flatnonzero((weights == -np.inf).all(axis=1))
    if len(dead):
        raise ImpossibleSequenceError(
            f"sequence {sequence} has probability zero: no path of states explains it up to position {dead[0]}. Check "
            "the log likelihood there and the zeros of transition and initial."
        )
