"""How surely a move happens at all: the probability that a chain goes from j to k at least once, pair by pair.

Under a Markov chain, q(C_jk = 0) is the probability that no two neighbouring positions are in j and k.
What is kept is L = −log q(C = 0), which adds over sequences; q(C > 0) = −expm1(−L). If neighbouring pairs are taken to
be independent of each other (thesis 5.67),

    L_jk = −Σ_t log(1 − q_t(j, k)) = Σ_t q_t(j, k) + Σ_t surplus(q_t(j, k)),    surplus(q) = −log(1 − q) − q.

The first sum is the expected number of moves, which every pass has anyway. The second needs only the pairs that are
not small: leaving out those below `SMALL` makes L at most 0.51 % too small, and a pair can exceed it only where both
its states do, which are few. So the surplus costs a look at the marginals and a handful of products a position; where
all states are equally likely, bounds on what a move can weigh save the products too.

Other ways to find L are in `occurrence_methods`.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.compiled import kernel, part

Array = NDArray[np.float64]

#: Pairs with a smaller probability have no surplus.
SMALL = 0.01
LOG_SMALL = float(np.log(SMALL))
#: Up to here the surplus needs no logarithm.
SERIES = 0.1
#: A move that is certain counts as if it were not quite, so that L stays finite.
ALMOST_CERTAIN = 1.0 - 1e-12
#: More states than can have a marginal above `SMALL`.
ENOUGH = 104
#: Lanes whose states are listed at a time.
STRIP = 128


def absence(probability: Array) -> Array:
    """−log(1 − q), finite where q is one.

    Examples
    --------
    >>> absence(np.array([0.0, 0.5, 1.0])).round(2)
    array([ 0.  ,  0.69, 27.63])
    """
    return np.asarray(-np.log1p(-np.minimum(probability, ALMOST_CERTAIN)))


@part
def _surplus(probability):
    """−log(1 − q) − q; up to `SERIES` by the first terms of its series, which are right to 2e-7 of −log(1 − q)."""
    q = probability
    if q <= SERIES:
        return q * q * (1.0 / 2 + q * (1.0 / 3 + q * (1.0 / 4 + q * (1.0 / 5 + q * (1.0 / 6)))))
    return -np.log(1.0 - min(q, ALMOST_CERTAIN)) - q


@kernel
def _greatest_in(matrix, n_states):
    """The greatest entry of each column, which bounds what a move to a state can weigh."""
    greatest = np.zeros(n_states)
    for j in range(matrix.shape[0]):
        for k in range(n_states):
            greatest[k] = max(greatest[k], matrix[j, k])
    return greatest


@part
def _list_lanes(marginals, alpha, at, count, states, sources, sizes):
    """The states of each of `count` columns that are not small, and their filtered marginals."""
    for lane in range(count):
        sizes[lane] = 0
    room = states.shape[1]
    for k in range(marginals.shape[0]):
        believed, filtered = marginals[k, at : at + count], alpha[k, at : at + count]
        for lane in range(count):
            if believed[lane] > SMALL and sizes[lane] < room:  # lanes that cannot be believed may hold anything
                states[lane, sizes[lane]] = k
                sources[lane, sizes[lane]] = filtered[lane]
                sizes[lane] += 1


@part
def _add_to(k, message, limit, states, sources, size, transition, weight, out):
    """Add the surplus of moves from listed states to k; none of them weighs more than `limit` times its source."""
    for i in range(size):
        if sources[i] * limit > SMALL:
            j = states[i]
            probability = sources[i] * (transition[j, k] * message)
            if probability > SMALL:
                out[j, k] += weight * _surplus(probability)


@kernel
def add_surplus(alpha, weighted, transition, marginals, offsets, weights, out):
    """Add the surplus of all neighbouring pairs of lanes to `out`.

    Parameters
    ----------
    alpha, weighted, marginals : (K, n) as `lanes.backward` leaves them, not yet multiplied by weights
    transition : (K, K)
    offsets : (steps + 1,)
    weights : (lanes,) how often each lane counts
    out : (K, K)
    """
    lanes, room, greatest = offsets[1], min(marginals.shape[0], ENOUGH), _greatest_in(transition, marginals.shape[0])
    # lists of the step before and of this one, by turns
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
    """The same for each position and the next of a chain in log space; arguments as for `serial.log_pair_sums`."""
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
