# mypy: disable-error-code="no-untyped-def"
"""The most probable paths through legal states alone, in log space.

δ is that of `viterbi`, kept for the legal states of each position; lists and pieces are those of `legal`. Where a piece
ends before its sequence does, its last position has one legal state, so pieces know their paths by themselves. Rounding
is never reordered. Among equals the lowest state wins.
"""

from __future__ import annotations

import numpy as np
from numba import njit

kernel = njit(nogil=True, cache=True, error_model="numpy")


@kernel
def _reach(delta, first, stop, states, log_transition, begin, end):
    """Add to δ of the entries from `begin` to `end` the best way there from those from `first` to `stop`."""
    for e in range(begin, end):
        k, best = states[e], -np.inf
        for f in range(first, stop):
            best = max(best, delta[f] + log_transition[states[f], k])
        delta[e] += best


@kernel
def _bring_to_zero(delta, first, stop):
    """Subtract the largest of the entries from all, so that they keep their digits; return it."""
    largest = delta[first]
    for e in range(first + 1, stop):
        largest = max(largest, delta[e])
    if largest > -np.inf:
        for e in range(first, stop):
            delta[e] -= largest
    return largest


@kernel
def sweep(log_likelihood, log_transition, log_initial, lists, log_totals, dead):
    """Turn the log likelihoods of all pieces into δ, in place.

    Parameters
    ----------
    log_likelihood : (nnz,) in: log likelihoods; out: δ, that of each position up to a constant
    log_transition, log_initial : (K, K) and (K,)
    lists : legal.Lists
    log_totals : (P,) output, log probability of the best path of each piece
    dead : (P,) output, the first position that no path reaches, −1 where there is a path to the end
    """
    offsets, states = lists.offsets, lists.states
    for piece in range(lists.starts.shape[0]):
        start = lists.starts[piece]
        weights = log_initial if lists.before[piece] < 0 else log_transition[lists.before[piece]]
        log_totals[piece], dead[piece] = 0.0, -1
        for position in range(start, lists.stops[piece]):
            first, stop = offsets[position], offsets[position + 1]
            if position == start:
                for e in range(first, stop):
                    log_likelihood[e] += weights[states[e]]
            else:
                _reach(log_likelihood, offsets[position - 1], first, states, log_transition, first, stop)
            largest = _bring_to_zero(log_likelihood, first, stop)
            log_totals[piece] += largest
            if largest == -np.inf:
                dead[piece] = position
                break


@kernel
def trace(delta, log_transition, lists, out):
    """Write the best path of each piece, from its last position to its first, into `out` (n,)."""
    offsets, states = lists.offsets, lists.states
    for piece in range(lists.starts.shape[0]):
        last = lists.stops[piece] - 1
        for position in range(last, lists.starts[piece] - 1, -1):
            first, stop = offsets[position], offsets[position + 1]
            chosen, best = first, -np.inf
            for e in range(first, stop):
                value = delta[e]
                if position < last:
                    value += log_transition[states[e], out[position + 1]]
                if value > best:
                    chosen, best = e, value
            out[position] = states[chosen]
