# mypy: disable-error-code="no-untyped-def"
"""Most probable path of a chain (Viterbi 1967): max-product recursion in log space and backtracking.

δ_t(k) is the log probability of the best path that ends in state k at position t. No back pointers are stored: the
predecessor of k maximises δ_{t−1}(j) + log transition[j, k], which backtracking recomputes with K comparisons for the
one state that the path visits; back pointers would need K² selections per step of the recursion. Ties go to the lowest
state.

There are two layouts. `sweep` and `trace` work on one chain, position-major, and vectorise along states. `sweep_lanes`
and `trace_lanes` work on many chains side by side, state-major, as described in `lanes`. Floating-point operations are
never reordered, so that a chain gives the same bits in any lane.
"""

from __future__ import annotations

import numpy as np

from subchain.numerics.compilation import compiled
from subchain.propagation.band import wrapped
from subchain.propagation.compiled import by_kind

#: Number of positions after which the largest δ of a single chain is subtracted, to preserve precision.
FRESH = 64
#: Lanes per strip; not a power of two, so that rows of a table do not compete for the same cache sets.
STRIP = 96

kernel = compiled(error_model="numpy")


def _dense_best_predecessors(log_transition, delta, best):
    """Set best[k] = max_j (δ[j] + log_transition[j, k]), four sources at a time."""
    n_states = delta.shape[0]
    best[:] = -np.inf
    j = 0
    while j + 4 <= n_states:
        a, b, c, d = delta[j], delta[j + 1], delta[j + 2], delta[j + 3]
        p, q, r, s = log_transition[j], log_transition[j + 1], log_transition[j + 2], log_transition[j + 3]
        for k in range(n_states):
            left, right = a + p[k], b + q[k]
            left = left if left > right else right
            other, right = c + r[k], d + s[k]
            other = other if other > right else right
            left = left if left > other else other
            best[k] = left if left > best[k] else best[k]
        j += 4
    while j < n_states:
        a, p = delta[j], log_transition[j]
        for k in range(n_states):
            left = a + p[k]
            best[k] = left if left > best[k] else best[k]
        j += 1


def _band_best_predecessors(log_transition, delta, best):
    """The same for the band of the transposed matrix."""
    n_states = delta.shape[0]
    for k in range(n_states):
        largest = -np.inf
        for c in range(log_transition.weights.shape[1]):
            value = delta[wrapped(log_transition.first[k] + c, n_states)] + log_transition.weights[k, c]
            largest = value if value > largest else largest
        best[k] = largest


def _dense_best_before(log_transposed, state, delta, column):
    """The state j with the largest delta[j, column] + log_transposed[state, j]; the lowest among equals."""
    onward = log_transposed[state]
    best, found = delta[0, column] + onward[0], 0
    for j in range(1, delta.shape[0]):
        value = delta[j, column] + onward[j]
        found = j if value > best else found
        best = value if value > best else best
    return found


def _band_best_before(log_transposed, state, delta, column):
    """The same for the band of the transposed matrix."""
    n_states, best, found = delta.shape[0], -np.inf, 0
    for c in range(log_transposed.weights.shape[1]):
        j = wrapped(log_transposed.first[state] + c, n_states)
        value = delta[j, column] + log_transposed.weights[state, c]
        if value > best or (value == best and j < found):
            best, found = value, j
    return found


_best_predecessors = by_kind(_dense_best_predecessors, _band_best_predecessors, reorders=False)
_best_before = by_kind(_dense_best_before, _band_best_before, reorders=False)


@kernel
def _best_last(delta, column, arrival):
    """The state j with the largest delta[j, column] + arrival[j]; the lowest among equals."""
    best, found = delta[0, column] + arrival[0], 0
    for j in range(1, delta.shape[0]):
        value = delta[j, column] + arrival[j]
        found = j if value > best else found
        best = value if value > best else best
    return found


@kernel
def arriving(log_transition, delta, out):
    """Largest δ[j] + log_transition[j, k] for every state k, (K,), into `out`."""
    _best_predecessors(log_transition, delta, out)


@kernel
def best_before(log_transposed, states, delta, out):
    """The best states before given ones: `states` (n,) follow positions with δ (K, n); `out` (n,)."""
    for i in range(states.shape[0]):
        out[i] = _best_before(log_transposed, states[i], delta, i)


@kernel
def sweep(log_likelihood, log_transition, start):
    """Turn the log likelihoods of one chain into δ, in place; return the constant that the last row lacks.

    Parameters
    ----------
    log_likelihood : (n, K) in: log likelihoods; out: δ, each row up to a constant
    log_transition : (K, K), or the band of its transpose
    start : (K,) predicted log weights of the first position's states, before its observation
    """
    predicted, subtracted = start.copy(), 0.0
    for position in range(log_likelihood.shape[0]):
        if position % FRESH == 0:
            largest = predicted.max()
            if largest > -np.inf:
                predicted -= largest
                subtracted += largest
        row = log_likelihood[position]
        for k in range(start.shape[0]):
            row[k] += predicted[k]
        _best_predecessors(log_transition, row, predicted)
    return subtracted


@kernel
def trace(delta, log_transposed, arrival, states):
    """Write the best path of one chain into `states`, from its last position to its first.

    Parameters
    ----------
    delta : (n, K) as written by `sweep`
    log_transposed : (K, K) the log of the transition matrix, transposed, or the band of that
    arrival : (K,) log weights of the continuation after the last position; zeros if there is none
    states : (n,) output
    """
    rows, state = delta.T, 0
    last = delta.shape[0] - 1
    for position in range(last, -1, -1):
        if position == last:
            state = _best_last(rows, position, arrival)
        else:
            state = _best_before(log_transposed, state, rows, position)
        states[position] = state


def _dense_best_predecessors_lanes(log_transition, table, at, best, count):
    """Set best[k] = max_j (table[j] + log_transition[j, k]) for `count` lanes, four sources at a time."""
    n_states = log_transition.shape[0]
    for k in range(n_states):
        out = best[k, :count]
        out[:] = -np.inf
        j = 0
        while j + 4 <= n_states:
            a, b = log_transition[j, k], log_transition[j + 1, k]
            c, d = log_transition[j + 2, k], log_transition[j + 3, k]
            p, q = table[j, at : at + count], table[j + 1, at : at + count]
            r, s = table[j + 2, at : at + count], table[j + 3, at : at + count]
            for lane in range(count):
                left, right = a + p[lane], b + q[lane]
                left = left if left > right else right
                other, right = c + r[lane], d + s[lane]
                other = other if other > right else right
                left = left if left > other else other
                out[lane] = left if left > out[lane] else out[lane]
            j += 4
        while j < n_states:
            a, p = log_transition[j, k], table[j, at : at + count]
            for lane in range(count):
                left = a + p[lane]
                out[lane] = left if left > out[lane] else out[lane]
            j += 1


def _band_best_predecessors_lanes(log_transition, table, at, best, count):
    """The same for the band of the transposed matrix."""
    n_states = table.shape[0]
    for k in range(n_states):
        out = best[k, :count]
        out[:] = -np.inf
        for c in range(log_transition.weights.shape[1]):
            weight, j = log_transition.weights[k, c], wrapped(log_transition.first[k] + c, n_states)
            other = table[j, at : at + count]
            for lane in range(count):
                left = weight + other[lane]
                out[lane] = left if left > out[lane] else out[lane]


_best_predecessors_lanes = by_kind(_dense_best_predecessors_lanes, _band_best_predecessors_lanes, reorders=False)


@kernel
def sweep_lanes(log_likelihood, log_transition, start, offsets):
    """Turn the log likelihoods of many chains side by side into δ, in place.

    Parameters
    ----------
    log_likelihood : (K, n) in: log likelihoods; out: δ
    log_transition : (K, K), or the band of its transpose
    start : (K, lanes) predicted log weights of the first position's states, before its observation
    offsets : (steps + 1,) first column of each step
    """
    n_states = log_likelihood.shape[0]
    predicted = np.empty((n_states, STRIP))
    for strip in range(0, offsets[1], STRIP):
        for step in range(offsets.shape[0] - 1):
            at = offsets[step] + strip
            width = min(STRIP, offsets[step + 1] - at)
            if width <= 0:
                break
            if step == 0:
                predicted[:, :width] = start[:, strip : strip + width]
            else:
                _best_predecessors_lanes(log_transition, log_likelihood, offsets[step - 1] + strip, predicted, width)
            for k in range(n_states):
                out, reached = log_likelihood[k, at : at + width], predicted[k, :width]
                for lane in range(width):
                    out[lane] += reached[lane]


@kernel
def trace_lanes(delta, log_transposed, offsets, origins, first, stop, states):
    """Write the best paths of many chains side by side into `states`, each from its last position to its first.

    Parameters
    ----------
    delta : (K, n) as written by `sweep_lanes`
    log_transposed : (K, K) the log of the transition matrix, transposed, or the band of that
    offsets : (steps + 1,) first column of each step
    origins : (lanes,) position in `states` of each lane's first step
    first, stop : (lanes,) range of positions of `states` that each lane writes
    states : (N,) output
    """
    n_states = delta.shape[0]
    nothing_after = np.zeros(n_states)
    state_of = np.empty(STRIP, dtype=np.int64)
    for strip in range(0, offsets[1], STRIP):
        running = 0
        for step in range(offsets.shape[0] - 2, -1, -1):
            at = offsets[step] + strip
            width = min(STRIP, offsets[step + 1] - at)
            for lane in range(width):
                if lane < running:
                    state = _best_before(log_transposed, state_of[lane], delta, at + lane)
                else:
                    state = _best_last(delta, at + lane, nothing_after)
                state_of[lane] = state
                position = origins[strip + lane] + step
                if first[strip + lane] <= position < stop[strip + lane]:
                    states[position] = state
            running = max(running, width)
