# mypy: disable-error-code="no-untyped-def"
"""Most probable paths through the legal states of each position, in log space.

δ is defined in `viterbi.py`, here for legal states only; lists and pieces are those of `passes.py`. A piece that ends
before its sequence does has a single legal state at its last position, so that each piece determines its path by
itself. Floating-point operations are never reordered. Ties go to the lowest state.
"""

from __future__ import annotations

import numpy as np

from subchain.numerics.compilation import compiled

kernel = compiled(error_model="numpy")


@kernel
def _reach(delta, first, stop, states, log_transition, begin, end):
    """Add max_f (delta[f] + log_transition[states[f], states[e]]) to delta[e].

    f runs from `first` to `stop`, e from `begin` to `end`.
    """
    for e in range(begin, end):
        k, best = states[e], -np.inf
        for f in range(first, stop):
            best = max(best, delta[f] + log_transition[states[f], k])
        delta[e] += best


@kernel
def _bring_to_zero(delta, first, stop):
    """Subtract the largest entry from all, to preserve precision, and return it."""
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
    log_likelihood : (nnz,) in: log likelihoods; out: δ, up to a constant per position
    log_transition, log_initial : (K, K) and (K,)
    lists : passes.Lists
    log_totals : (P,) output, log probability of the best path of each piece
    dead : (P,) output, the first position that no path reaches, −1 if a path reaches the end
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
