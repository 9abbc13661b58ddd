"""Passes over checked chains: scaled probabilities where these can be believed, logarithms where not.

A single chain, or chains with few states, run one after the other (`chain`); many chains with many states run side by
side, so that a step is a matrix product (`products`). Sequences whose probabilities leave the range of a double
(`underflow`) run in log space (`serial`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.errors import ImpossibleSequenceError
from subchain.propagation import serial
from subchain.propagation.lanes import products
from subchain.propagation.layout import end_to_end, side_by_side
from subchain.propagation.underflow import covering, exponentiate, growth
from subchain.propagation.user import scaled as chain
from subchain.propagation.user.inputs import Chains

Array = NDArray[np.float64]

#: From these numbers of states and sequences on, sequences run side by side.
MANY_STATES, MANY_SEQUENCES = 48, 16
#: Most sequences that do so at once.
MOST_LANES = 512


class Scaled(NamedTuple):
    """A filtered pass in scaled probabilities.

    Attributes
    ----------
    alpha : (T, K) filtered marginals
    likelihood : (T, K) likelihoods, the largest of a position being one
    scale, shift : (T,) normalisers, and logarithms of what the likelihoods were divided by
    easy, hard : numbers of the sequences that may be believed, and of those that may not
    """

    alpha: Array
    likelihood: Array
    scale: Array
    shift: Array
    easy: NDArray[np.int64]
    hard: NDArray[np.int64]

    def log_increments(self) -> Array:
        """Log probability of each observation given those before it, for the easy sequences."""
        return log(self.scale) + self.shift


def log(weights: Array) -> Array:
    """Logarithms, −inf for zero."""
    with np.errstate(divide="ignore"):
        return np.log(weights)


def _run_side_by_side(chains: Chains) -> bool:
    return chains.n_states >= MANY_STATES and chains.n_sequences >= MANY_SEQUENCES


def scaled_filter(chains: Chains) -> Scaled:
    """Filtered marginals of all sequences in scaled probabilities."""
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
    covers = covering(chains.transition)
    is_hard = growth(likelihood.T, start, chains.transition, covers, walks, alpha.T, scale).matters()
    return Scaled(alpha, likelihood, scale, shift, np.flatnonzero(~is_hard), np.flatnonzero(is_hard))


def scaled_smooth(chains: Chains, scaled: Scaled) -> tuple[Array, Array]:
    """Smoothed marginals (T, K) and expected moves (K, K) of the easy sequences."""
    easy = chains.of(scaled.easy)
    transposed = np.ascontiguousarray(chains.transition.T)
    # A state that was not reached has weight zero, but its backward message can grow without bound: keep it out.
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
    """Log joint probability (n, K) of state and past of one sequence, and the log increments (n,)."""
    logs = chains.log_likelihood[chains.rows(sequence)]
    joint = np.empty_like(logs)
    serial.log_forward(logs, log(chains.transition), log(chains.initial), joint)
    check_possible(joint, sequence)
    return joint, np.diff(np.logaddexp.reduce(joint, axis=1), prepend=0.0)


def log_smooth(chains: Chains, sequence: int, joint: Array) -> tuple[Array, Array]:
    """Smoothed marginals (n, K) and expected moves (K, K) of one sequence."""
    logs, log_transition = chains.log_likelihood[chains.rows(sequence)], log(chains.transition)
    future, pairs = np.empty_like(logs), np.zeros_like(log_transition)
    serial.log_backward(logs, log_transition, np.zeros(chains.n_states), future)
    total = float(np.logaddexp.reduce(joint[-1]))
    serial.log_pair_sums(joint[:-1], log_transition, logs[1:], future[1:], total, pairs)
    both = joint + future
    # Logarithms of long chains are large and lose digits; what must sum to one, or to the number of moves, is made to.
    pairs *= (len(logs) - 1) / max(pairs.sum(), np.finfo(np.float64).tiny)
    return np.exp(both - np.logaddexp.reduce(both, axis=1, keepdims=True)), pairs


def check_possible(weights: Array, sequence: int) -> None:
    """Raise if all states of a position (row) have log weight −inf."""
    dead = np.flatnonzero((weights == -np.inf).all(axis=1))
    if len(dead):
        raise ImpossibleSequenceError(
            f"sequence {sequence} has probability zero: no path of states explains it up to position {dead[0]}. Look "
            "at the log likelihood there and at the zeros of transition and initial."
        )
