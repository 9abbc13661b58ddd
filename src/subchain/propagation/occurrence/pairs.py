"""Probability that a transition j → k occurs at least once, with neighbouring pairs treated as independent.

With C_jk the number of transitions from j to k, q(C_jk = 0) is the probability that no two neighbouring positions are
in j and k. L = −log q(C = 0) adds over sequences, and q(C > 0) = −expm1(−L). If pairs of neighbouring positions are
treated as independent of each other (Wang 2016, 5.67),

    L_jk = −Σ_t log(1 − q_t(j, k)) = Σ_t q_t(j, k) + Σ_t surplus(q_t(j, k)),    surplus(q) = −log(1 − q) − q.

The first sum is the expected number of transitions, which every pass computes anyway. In the second only pairs above
`SMALL` are needed: without the others L is at most 0.51 % too small. A pair can exceed `SMALL` only where the marginals
of both its states do, and these are few. The surplus thus costs a scan of the marginals and a few products per
position; where all states are about equally probable, upper bounds on the pairs avoid most products.

Other methods for L are in `methods.py`.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.compiled import kernel, part, small_kernel

Array = NDArray[np.float64]

#: The surplus of pairs with a smaller probability is neglected.
SMALL = 0.01
LOG_SMALL = float(np.log(SMALL))
#: Up to this probability the surplus is computed by its series.
SERIES = 0.1
#: Largest probability of a pair, so that L is finite.
ALMOST_CERTAIN = 1.0 - 1e-12
#: Length of lists: more than the number of states whose marginals can exceed `SMALL` at one position.
ENOUGH = 104
#: Lanes per strip.
STRIP = 128


def absence(probability: Array) -> Array:
    """Return −log(1 − q), bounded such that it is finite where q is one.

    Examples
    --------
    >>> absence(np.array([0.0, 0.5, 1.0])).round(2)
    array([ 0.  ,  0.69, 27.63])
    """
    return np.asarray(-np.log1p(-np.minimum(probability, ALMOST_CERTAIN)))


@part
def _surplus(probability):
    """Return −log(1 − q) − q; up to `SERIES` by its series, with an error of at most 2e-7 of −log(1 − q)."""
    q = probability
    if q <= SERIES:
        return q * q * (1.0 / 2 + q * (1.0 / 3 + q * (1.0 / 4 + q * (1.0 / 5 + q * (1.0 / 6)))))
    return -np.log(1.0 - min(q, ALMOST_CERTAIN)) - q


@small_kernel
def _greatest_in(matrix, n_states):
    """Return the largest entry of each column, (K,), an upper bound on the transitions to a state."""
    greatest = np.zeros(n_states)
    for j in range(matrix.shape[0]):
        for k in range(n_states):
            greatest[k] = max(greatest[k], matrix[j, k])
    return greatest


@part
def _list_lanes(marginals, alpha, at, count, states, sources, sizes):
    """List the states of each of `count` columns whose marginals exceed `SMALL`, and their filtered marginals."""
    for lane in range(count):
        sizes[lane] = 0
    room = states.shape[1]
    for k in range(marginals.shape[0]):
        smoothed, filtered = marginals[k, at : at + count], alpha[k, at : at + count]
        for lane in range(count):
            if smoothed[lane] > SMALL and sizes[lane] < room:  # lanes that underflowed may hold anything
                states[lane, sizes[lane]] = k
                sources[lane, sizes[lane]] = filtered[lane]
                sizes[lane] += 1


@part
def _add_to(k, message, limit, states, sources, size, transition, weight, out):
    """Add the surplus of transitions from listed states to k; `limit` times its source bounds each probability."""
    for i in range(size):
        if sources[i] * limit > SMALL:
            j = states[i]
            probability = sources[i] * (transition[j, k] * message)
            if probability > SMALL:
                out[j, k] += weight * _surplus(probability)


@kernel
def add_surplus(alpha, weighted, transition, marginals, offsets, weights, out):
    """Add the surplus of all pairs of neighbouring positions of lanes to `out`.

    Parameters
    ----------
    alpha, weighted, marginals : (K, n) as written by `lanes.backward`, not yet multiplied by weights
    transition : (K, K)
    offsets : (steps + 1,) first column of each step
    weights : (lanes,) weight of each lane
    out : (K, K)
    """
    lanes, room, greatest = offsets[1], min(marginals.shape[0], ENOUGH), _greatest_in(transition, marginals.shape[0])
    # lists of the previous and of the present step, alternating
    states, sources = np.empty((2, STRIP, room), dtype=np.int32), np.empty((2, STRIP, room))
    sizes = np.empty((2, STRIP), dtype=np.int64)
    for begin in range(0, lanes, STRIP):
        _list_lanes(marginals, alpha, begin, min(STRIP, lanes - begin), states[0], sources[0], sizes[0])
        for step in range(1, offsets.shape[0] - 1):
            at, old, new = offsets[step] + begin, (step - 1) % 2, step % 2
            count = min(STRIP, offsets[step + 1] - at)
            if count <= 0:
                break
            _list_lanes(marginals, alpha, at, count, states[new], sources[new], sizes[new])
            for lane in range(count):
                largest = 0.0
                for i in range(sizes[old, lane]):
                    largest = max(largest, sources[old, lane, i])
                for i in range(sizes[new, lane]):
                    k = states[new, lane, i]
                    message = weighted[k, at + lane]
                    limit = greatest[k] * message
                    if limit * largest > SMALL:
                        _add_to(
                            k, message, limit, states[old, lane], sources[old, lane], sizes[old, lane], transition,
                            weights[begin + lane], out,
                        )  # fmt: skip


@kernel
def add_log_surplus(alpha, log_transition, log_likelihood, beta, log_total, out):
    """Add the surplus of all pairs of neighbouring positions of a chain in log space to `out` (K, K).

    The other parameters are those of `serial.log_pair_sums`.
    """
    n_states = out.shape[0]
    for position in range(alpha.shape[0]):
        for j in range(n_states):
            before = alpha[position, j] - log_total
            if before == -np.inf:
                continue
            for k in range(n_states):
                logarithm = before + log_transition[j, k] + log_likelihood[position, k] + beta[position, k]
                if logarithm > LOG_SMALL:
                    out[j, k] += _surplus(np.exp(logarithm))
