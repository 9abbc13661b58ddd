"""Forward-backward, filtering, decoding and sampling for models that bring their own likelihoods.

Use these with an emission model of your own: what they take is the log likelihood of every position in every state, and the
weights of first states and of moves. Everything is exact: passes run in scaled probabilities, and sequences which these
cannot hold (see `underflow`) are worked out in logarithms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.errors import ImpossibleSequenceError, InputError
from subchain.propagation import chain, products, sampling, serial
from subchain.propagation import viterbi as max_product
from subchain.propagation.layout import side_by_side
from subchain.propagation.underflow import doubtful

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: From these numbers of states and sequences on, a step of all sequences as one matrix product is faster.
MANY_STATES, MANY_SEQUENCES = 48, 16
MOST_LANES = 512
#: Rows of weights may exceed one by rounding.
SLACK = 1e-6


class ForwardBackward(NamedTuple):
    """What :func:`forward_backward` returns.

    Attributes
    ----------
    log_likelihood : array, shape (n_sequences,)
        Logarithm of each sequence's likelihood.
    beliefs : array, shape (T, K)
        Probability of each state at each position, given the whole sequence.
    pairs : array, shape (K, K)
        Expected number of moves from row to column, all sequences together.
    """

    log_likelihood: Array
    beliefs: Array
    pairs: Array


class Filtered(NamedTuple):
    """What :func:`filter` returns.

    Attributes
    ----------
    beliefs : array, shape (T, K)
        Probability of each state at each position, given the sequence up to there.
    log_increments : array, shape (T,)
        Log probability of each position's observation given those before it; a sequence's sum is its log likelihood.
    """

    beliefs: Array
    log_increments: Array


class ViterbiPath(NamedTuple):
    """What :func:`viterbi` returns.

    Attributes
    ----------
    states : array of int64, shape (T,)
        The most probable path of each sequence, end to end.
    log_probability : array, shape (n_sequences,)
        Log joint probability of each path and its sequence.
    """

    states: Index
    log_probability: Array


# ---- what users call -----------------------------------------------------------------------------------------------------


def forward_backward(
    log_likelihood: ArrayLike, initial: ArrayLike, transition: ArrayLike, lengths: ArrayLike | None = None
) -> ForwardBackward:
    """Compute the probability of every state at every position, given the whole sequence.

    Use it for the expectation step of a model of your own.

    Parameters
    ----------
    log_likelihood : array, shape (T, K)
        Log likelihood of each position's observation in each state, sequences end to end; −inf where it is impossible.
    initial : array, shape (K,)
        Probabilities of the first state.
    transition : array, shape (K, K)
        Row *j* holds the probabilities of what follows state *j*; it may sum to less than one.
    lengths : array of int, shape (n_sequences,), optional
        Length of each sequence; one sequence if not given.

    Returns
    -------
    ForwardBackward
        ``log_likelihood``, ``beliefs`` and ``pairs``.

    Raises
    ------
    ImpossibleSequenceError
        If no path of states explains a sequence.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.propagation import forward_backward
    >>> likelihood = np.array([[0.9, 0.2], [0.9, 0.2], [0.1, 0.8]])
    >>> found = forward_backward(np.log(likelihood), [0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]])
    >>> found.beliefs.round(2)
    array([[0.94, 0.06],
           [0.85, 0.15],
           [0.22, 0.78]])
    >>> found.pairs.sum().round(6)
    np.float64(2.0)
    """
    chains = _check(log_likelihood, initial, transition, lengths)
    alpha, increments, likelihood, scale, hard = _scaled_filter(chains)
    beliefs, pairs = np.empty_like(alpha), np.zeros((chains.n_states, chains.n_states))
    # A state that was not reached has weight zero, but its message can grow without bound: keep it out.
    likelihood[alpha == 0.0] = 0.0
    easy = np.setdiff1d(np.arange(chains.n_sequences), hard)
    _backward(chains, easy, likelihood, alpha, scale, beliefs, pairs)
    pairs *= chains.transition
    for sequence in hard:
        rows = chains.rows(sequence)
        joint, increments[rows] = _log_filter(chains, sequence)
        beliefs[rows] = _log_smooth(chains, sequence, joint, pairs)
    return ForwardBackward(_sum_per_sequence(increments, chains.offsets), beliefs, pairs)


def filter(
    log_likelihood: ArrayLike, initial: ArrayLike, transition: ArrayLike, lengths: ArrayLike | None = None
) -> Filtered:
    """Compute the probability of every state at every position, given the past and the present alone.

    Use it where the future must not be known, and for the predictive score of each observation.

    Parameters
    ----------
    log_likelihood, initial, transition, lengths
        As for :func:`forward_backward`.

    Returns
    -------
    Filtered
        ``beliefs`` and ``log_increments``.

    Raises
    ------
    ImpossibleSequenceError
        If no path of states explains a sequence.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.propagation import filter
    >>> found = filter(np.log([[0.9, 0.2], [0.1, 0.8]]), [0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]])
    >>> found.beliefs.round(2)
    array([[0.82, 0.18],
           [0.22, 0.78]])
    >>> np.exp(found.log_increments).round(3)
    array([0.55 , 0.316])
    """
    chains = _check(log_likelihood, initial, transition, lengths)
    alpha, increments, _, _, hard = _scaled_filter(chains)
    for sequence in hard:
        rows = chains.rows(sequence)
        joint, increments[rows] = _log_filter(chains, sequence)
        alpha[rows] = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    return Filtered(alpha, increments)


def viterbi(
    log_likelihood: ArrayLike, initial: ArrayLike, transition: ArrayLike, lengths: ArrayLike | None = None
) -> ViterbiPath:
    """Find the most probable path of states of each sequence.

    Use it to cut a sequence into segments; for the best guess at each single position use the beliefs of
    :func:`forward_backward`. Among paths of equal probability the one with the lower states, compared from the end, is
    taken.

    Parameters
    ----------
    log_likelihood, initial, transition, lengths
        As for :func:`forward_backward`.

    Returns
    -------
    ViterbiPath
        ``states`` and ``log_probability``.

    Raises
    ------
    ImpossibleSequenceError
        If no path of states explains a sequence.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.propagation import viterbi
    >>> likelihood = np.array([[0.9, 0.2], [0.4, 0.6], [0.9, 0.2]])
    >>> viterbi(np.log(likelihood), [0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]]).states
    array([0, 0, 0])
    """
    chains = _check(log_likelihood, initial, transition, lengths)
    log_initial, log_transition = _log(chains.initial), _log(chains.transition)
    log_transposed, nothing_after = np.ascontiguousarray(log_transition.T), np.zeros(chains.n_states)
    states = np.empty(len(chains.logs), dtype=np.int64)
    log_probability = np.zeros(chains.n_sequences)
    for sequence in np.flatnonzero(np.diff(chains.offsets)):
        rows = chains.rows(sequence)
        delta = chains.logs[rows].copy()
        max_product.sweep(delta, log_transition, log_initial)
        _check_possible(delta, sequence)
        max_product.trace(delta, log_transposed, nothing_after, states[rows])
        log_probability[sequence] = delta[-1].max()
    return ViterbiPath(states, log_probability)


def sample_paths(
    log_likelihood: ArrayLike,
    initial: ArrayLike,
    transition: ArrayLike,
    n: int,
    random_state: int | np.random.SeedSequence | np.random.Generator | None = None,
    lengths: ArrayLike | None = None,
) -> Index:
    """Draw paths of states from their distribution given the whole sequence.

    Use it to carry uncertainty about the path into whatever is computed from it.

    Parameters
    ----------
    log_likelihood, initial, transition, lengths
        As for :func:`forward_backward`.
    n : int
        Number of paths.
    random_state : int, SeedSequence, Generator or None
        Seed. A number or a SeedSequence always gives the same paths, the first ones the same for any `n`.

    Returns
    -------
    array of int64, shape (n, T)

    Raises
    ------
    ImpossibleSequenceError
        If no path of states explains a sequence.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.propagation import sample_paths
    >>> likelihood = np.array([[0.9, 0.2], [0.4, 0.6], [0.9, 0.2]])
    >>> paths = sample_paths(np.log(likelihood), [0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]], n=1000, random_state=0)
    >>> paths.shape
    (1000, 3)
    """
    if n < 0:
        raise InputError(f"n, the number of paths, must not be negative; given {n}.")
    chains = _check(log_likelihood, initial, transition, lengths)
    key = sampling.key_of(_seed_sequence(random_state))
    alpha, _, _, _, hard = _scaled_filter(chains)
    transposed = np.ascontiguousarray(chains.transition.T)
    log_transposed, nothing_after = _log(transposed), np.zeros(chains.n_states)
    paths = np.empty((n, len(chains.logs)), dtype=np.int64)
    easy = np.setdiff1d(np.flatnonzero(np.diff(chains.offsets)), hard)
    joints = {sequence: _log_filter(chains, sequence)[0] for sequence in hard}
    for sequence in easy:
        rows = chains.rows(sequence)
        columns = np.arange(rows.stop - rows.start + 1)
        lane = (alpha[rows].T, transposed, columns, columns[-1:], np.array([rows.start]), np.array([-1]))
        for path in range(n):
            sampling.draw_lanes(*lane, key, path, paths[path])
    for sequence, joint in joints.items():
        start = chains.rows(sequence).start
        for path in range(n):
            sampling.draw_log(joint, log_transposed, nothing_after, start, key, path, paths[path])
    return paths


# ---- scaled probabilities ------------------------------------------------------------------------------------------------


class _Chains(NamedTuple):
    """Checked input: log likelihoods (T, K), initial (K,), transition (K, K), offsets (n_sequences + 1,)."""

    logs: Array
    initial: Array
    transition: Array
    offsets: Index

    @property
    def n_states(self) -> int:
        return len(self.initial)

    @property
    def n_sequences(self) -> int:
        return len(self.offsets) - 1

    @property
    def are_side_by_side(self) -> bool:
        return self.n_states >= MANY_STATES and self.n_sequences >= MANY_SEQUENCES

    def rows(self, sequence: int) -> slice:
        return slice(int(self.offsets[sequence]), int(self.offsets[sequence + 1]))


def _scaled_filter(chains: _Chains) -> tuple[Array, Array, Array, Array, list[int]]:
    """Filtered beliefs, log increments, scaled likelihoods, normalisers, and the sequences that need logarithms."""
    shift = chains.logs.max(axis=1, initial=-np.inf)
    shift[shift == -np.inf] = 0.0
    likelihood = np.exp(chains.logs - shift[:, None])
    alpha, scale = np.empty_like(likelihood), np.empty(len(likelihood))
    if chains.are_side_by_side:
        for lanes, table in _batches(chains, likelihood):
            start = np.repeat(chains.initial[:, None], len(lanes.sequences), axis=1)
            filtered, normalizers = np.empty_like(table), np.empty(len(lanes.positions))
            products.forward(table, chains.transition, start, lanes.offsets, filtered, normalizers)
            alpha[lanes.positions], scale[lanes.positions] = filtered.T, normalizers
    else:
        chain.forward(likelihood, chains.transition, chains.initial, chains.offsets, alpha, scale)
    hard = np.empty(chains.n_sequences, dtype=np.bool_)
    doubtful(*chains, alpha, scale, hard)
    return alpha, _log(scale) + shift, likelihood, scale, np.flatnonzero(hard).tolist()
