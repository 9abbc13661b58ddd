"""Forward-backward, filtering, decoding and sampling for log likelihoods that the caller computes.

Use these functions with an emission model of your own. They take the log likelihood of every position in every state,
the initial distribution and the transition matrix. Results are exact: sequences whose scaled probabilities would
underflow are computed in log space.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.errors import InputError
from subchain.numerics.random import key_of
from subchain.propagation.backward_sampling import draw, draw_log
from subchain.propagation.layout import end_to_end
from subchain.propagation.user.inputs import check
from subchain.propagation.user.passes import check_possible, log, log_filter, log_smooth, scaled_filter, scaled_smooth
from subchain.propagation.viterbi import sweep, trace

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class ForwardBackward(NamedTuple):
    """Result of :func:`forward_backward`.

    Attributes
    ----------
    log_likelihood : array, shape (n_sequences,)
        Log likelihood of each sequence.
    marginals : array, shape (T, K)
        Posterior marginals: probability of each state at each position, given the whole sequence.
    pairs : array, shape (K, K)
        Expected number of transitions from row to column, summed over all sequences.
    """

    log_likelihood: Array
    marginals: Array
    pairs: Array


class Filtered(NamedTuple):
    """Result of :func:`filter`.

    Attributes
    ----------
    marginals : array, shape (T, K)
        Filtered marginals: probability of each state at each position, given the sequence up to that position.
    log_increments : array, shape (T,)
        Log probability of each observation given the earlier ones; the sum over a sequence is its log likelihood.
    """

    marginals: Array
    log_increments: Array


class ViterbiPath(NamedTuple):
    """Result of :func:`viterbi`.

    Attributes
    ----------
    states : array of int64, shape (T,)
        The most probable path of each sequence, concatenated.
    log_probability : array, shape (n_sequences,)
        Log joint probability of each path and its sequence.
    """

    states: Index
    log_probability: Array


def forward_backward(
    log_likelihood: ArrayLike, initial: ArrayLike, transition: ArrayLike, lengths: ArrayLike | None = None
) -> ForwardBackward:
    """Compute the posterior marginals of the states at all positions, given whole sequences.

    Use it for the expectation step of a model of your own.

    Parameters
    ----------
    log_likelihood : array, shape (T, K)
        Log likelihood of each observation in each state, sequences concatenated; −inf where it is impossible.
    initial : array, shape (K,)
        Initial distribution.
    transition : array, shape (K, K)
        Row *j* holds the probabilities of the transitions from state *j*; it may sum to less than one.
    lengths : array of int, shape (n_sequences,), optional
        Length of each sequence; by default there is one sequence.

    Returns
    -------
    ForwardBackward
        ``log_likelihood``, ``marginals`` and ``pairs``.

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
    >>> found.marginals.round(2)
    array([[0.86, 0.14],
           [0.79, 0.21],
           [0.27, 0.73]])
    >>> float(found.pairs.sum().round(6))
    2.0
    """
    chains = check(log_likelihood, initial, transition, lengths)
    scaled = scaled_filter(chains)
    marginals, pairs = scaled_smooth(chains, scaled)
    increments = scaled.log_increments()
    for sequence in scaled.hard.tolist():
        rows = chains.rows(sequence)
        joint, increments[rows] = log_filter(chains, sequence)
        marginals[rows], more_pairs = log_smooth(chains, sequence, joint)
        pairs += more_pairs
    totals = np.array([increments[chains.rows(sequence)].sum() for sequence in range(chains.n_sequences)])
    return ForwardBackward(totals, marginals, pairs)


def filter(
    log_likelihood: ArrayLike, initial: ArrayLike, transition: ArrayLike, lengths: ArrayLike | None = None
) -> Filtered:
    """Compute the filtered marginals of the states at all positions, given the sequence up to each position.

    Use it for online estimates, and for the predictive log score of each observation.

    Parameters
    ----------
    log_likelihood, initial, transition, lengths
        As for :func:`forward_backward`.

    Returns
    -------
    Filtered
        ``marginals`` and ``log_increments``.

    Raises
    ------
    ImpossibleSequenceError
        If no path of states explains a sequence.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.propagation import filter
    >>> found = filter(np.log([[0.9, 0.2], [0.1, 0.8]]), [0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]])
    >>> found.marginals.round(2)
    array([[0.82, 0.18],
           [0.22, 0.78]])
    >>> np.exp(found.log_increments).round(3)
    array([0.55 , 0.316])
    """
    chains = check(log_likelihood, initial, transition, lengths)
    scaled = scaled_filter(chains)
    marginals, increments = scaled.alpha, scaled.log_increments()
    for sequence in scaled.hard.tolist():
        rows = chains.rows(sequence)
        joint, increments[rows] = log_filter(chains, sequence)
        marginals[rows] = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    return Filtered(marginals, increments)


def viterbi(
    log_likelihood: ArrayLike, initial: ArrayLike, transition: ArrayLike, lengths: ArrayLike | None = None
) -> ViterbiPath:
    """Find the most probable path of states of each sequence.

    Use it to segment a sequence; for the most probable state of each single position use the marginals of
    :func:`forward_backward`.

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
    chains = check(log_likelihood, initial, transition, lengths)
    log_initial, log_transition = log(chains.initial), log(chains.transition)
    log_transposed, nothing_after = np.ascontiguousarray(log_transition.T), np.zeros(chains.n_states)
    states = np.empty(len(chains.log_likelihood), dtype=np.int64)
    log_probability = np.zeros(chains.n_sequences)
    for sequence in np.flatnonzero(chains.stops > chains.starts).tolist():
        rows = chains.rows(sequence)
        delta = chains.log_likelihood[rows].copy()
        lost = sweep(delta, log_transition, log_initial)
        check_possible(delta, sequence)
        trace(delta, log_transposed, nothing_after, states[rows])
        log_probability[sequence] = lost + delta[-1].max()
    return ViterbiPath(states, log_probability)


def sample_paths(
    log_likelihood: ArrayLike,
    initial: ArrayLike,
    transition: ArrayLike,
    n: int,
    random_state: int | np.random.SeedSequence | np.random.Generator | None = None,
    lengths: ArrayLike | None = None,
) -> Index:
    """Draw paths of states from their posterior distribution given whole sequences.

    Use it to propagate the uncertainty about the path into quantities that are computed from it.

    Parameters
    ----------
    log_likelihood, initial, transition, lengths
        As for :func:`forward_backward`.
    n : int
        Number of paths.
    random_state : int, SeedSequence, Generator or None
        Seed. The same number or SeedSequence gives the same paths; the first paths are the same for any `n`.

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
    >>> likelihood = np.array([[1.0, 0.0], [0.4, 0.6], [0.0, 1.0]])
    >>> with np.errstate(divide="ignore"):
    ...     paths = sample_paths(np.log(likelihood), [0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]], n=1000, random_state=0)
    >>> paths.mean(axis=0).round(1)
    array([0. , 0.6, 1. ])
    """
    if n < 0:
        raise InputError(f"n, the number of paths, must not be negative; got {n}.")
    chains = check(log_likelihood, initial, transition, lengths)
    key = key_of(_seed_sequence(random_state))
    scaled = scaled_filter(chains)
    paths = np.empty((n, len(chains.log_likelihood)), dtype=np.int64)
    easy = chains.of(scaled.easy)
    walks, following = end_to_end(easy.starts, easy.stops), np.full(easy.n_sequences, -1)
    transposed = np.ascontiguousarray(chains.transition.T)
    for path in range(n):
        draw(scaled.alpha.T, transposed, walks, following, key, path, paths[path])
    log_transposed, nothing_after = log(transposed), np.zeros(chains.n_states)
    for sequence in scaled.hard.tolist():
        joint, _ = log_filter(chains, sequence)
        for path in range(n):
            draw_log(joint, log_transposed, nothing_after, chains.starts[sequence], key, path, paths[path])
    return paths


def _seed_sequence(random_state: int | np.random.SeedSequence | np.random.Generator | None) -> np.random.SeedSequence:
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(1 << 32, size=4).tolist())
    return np.random.SeedSequence(random_state)
