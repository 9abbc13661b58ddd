"""Forward and backward passes over many chains side by side, lanes innermost.

The chains of a block run in lockstep: row k of a table holds state k, its columns are ordered by step and, within a step,
by lane, so that every inner loop runs along lanes and fills the vector units, which the recursion of a single chain cannot.
Lanes are sorted by falling length; step t occupies the columns `offsets[t]` to `offsets[t + 1]`, so chains of unequal length
need no padding.

Probabilities are scaled: each position is divided by its own normaliser, whose logarithms add up to the log likelihood.
Transition rows need not sum to one (variational surrogates do not).
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: Rounding may be reordered and fused, but nan and infinity keep their meaning.
FASTMATH = {"contract", "reassoc", "nsz", "arcp", "afn"}

#: Lanes that are worked on together, so that the messages of all states stay in the first-level cache.
STRIP = 128

kernel = njit(nogil=True, cache=True, fastmath=FASTMATH, error_model="numpy")


@kernel
def _mix(matrix, source, source_at, target, target_at, count):
    """target[k] = Σ_j matrix[j, k] · source[j] for `count` lanes, four terms at a time."""
    rows, columns = matrix.shape
    for k in range(columns):
        out = target[k, target_at : target_at + count]
        j = 0
        if rows >= 4:
            a, b, c, d = matrix[0, k], matrix[1, k], matrix[2, k], matrix[3, k]
            p = source[0, source_at : source_at + count]
            q = source[1, source_at : source_at + count]
            r = source[2, source_at : source_at + count]
            s = source[3, source_at : source_at + count]
            for lane in range(count):
                out[lane] = a * p[lane] + b * q[lane] + c * r[lane] + d * s[lane]
            j = 4
        else:
            out[:] = 0.0
        while j + 4 <= rows:
            a, b, c, d = matrix[j, k], matrix[j + 1, k], matrix[j + 2, k], matrix[j + 3, k]
            p = source[j, source_at : source_at + count]
            q = source[j + 1, source_at : source_at + count]
            r = source[j + 2, source_at : source_at + count]
            s = source[j + 3, source_at : source_at + count]
            for lane in range(count):
                out[lane] += a * p[lane] + b * q[lane] + c * r[lane] + d * s[lane]
            j += 4
        while j < rows:
            a = matrix[j, k]
            p = source[j, source_at : source_at + count]
            for lane in range(count):
                out[lane] += a * p[lane]
            j += 1


@kernel
def _normalize(table, at, count, total):
    """Divide `count` columns of `table` by their sums, which are written to `total`; columns of zeros stay zero."""
    total[:count] = 0.0
    for k in range(table.shape[0]):
        row = table[k, at : at + count]
        for lane in range(count):
            total[lane] += row[lane]
    inverse = np.empty(STRIP)
    for lane in range(count):
        inverse[lane] = 1.0 / total[lane] if total[lane] > 0.0 else 0.0
    for k in range(table.shape[0]):
        row = table[k, at : at + count]
        for lane in range(count):
            row[lane] *= inverse[lane]


@kernel
def absorb_step(likelihood, alpha, at, stop, scale):
    """Turn the predicted states of one step's columns into filtered ones: times likelihood, normalised."""
    for strip in range(at, stop, STRIP):
        width = min(STRIP, stop - strip)
        for k in range(alpha.shape[0]):
            a, b = alpha[k, strip : strip + width], likelihood[k, strip : strip + width]
            for lane in range(width):
                a[lane] *= b[lane]
        _normalize(alpha, strip, width, scale[strip : strip + width])


@kernel
def forward(likelihood, transition, start, offsets, alpha, scale):
    """Filtered beliefs of every position.

    Parameters
    ----------
    likelihood : (K, n)
    transition : (K, K)
    start : (K, lanes) weights of the first position's states before its observation is seen
    offsets : (steps + 1,)
    alpha : (K, n) output, each column sums to one
    scale : (n,) output, the normalisers; zero where the chain is impossible
    """
    for strip in range(0, offsets[1], STRIP):
        for step in range(offsets.shape[0] - 1):
            at = offsets[step] + strip
            width = min(STRIP, offsets[step + 1] - at)
            if width <= 0:
                break
            if step == 0:
                alpha[:, at : at + width] = start[:, strip : strip + width]
            else:
                _mix(transition, alpha, offsets[step - 1] + strip, alpha, at, width)
            absorb_step(likelihood, alpha, at, at + width, scale)


@kernel
def believe_step(likelihood, alpha, at, count, scale, beta, beliefs):
    """Beliefs of one step's columns from filtered and backward messages; weights the likelihoods for the step before."""
    factor = np.empty(STRIP)
    for strip in range(0, count, STRIP):
        width = min(STRIP, count - strip)
        first = at + strip
        for k in range(alpha.shape[0]):
            out, a = beliefs[k, first : first + width], alpha[k, first : first + width]
            b = beta[k, strip : strip + width]
            for lane in range(width):
                out[lane] = a[lane] * b[lane]
        _normalize(beliefs, first, width, factor)
        for lane in range(width):
            weight = factor[lane] * scale[first + lane]
            factor[lane] = 1.0 / weight if weight > 0.0 else 0.0
        for k in range(alpha.shape[0]):
            w, b = likelihood[k, first : first + width], beta[k, strip : strip + width]
            for lane in range(width):
                w[lane] *= b[lane] * factor[lane]


@kernel
def backward(likelihood, transposed, stop, offsets, alpha, scale, beliefs):
    """Smoothed beliefs of every position; turns `likelihood` into the weighted messages that pair sums need.

    Parameters
    ----------
    likelihood : (K, n) in: likelihoods; out: likelihood · β / scale, the backward message weighted by its observation
    transposed : (K, K) the transition matrix transposed
    stop : (K, lanes) backward message of each lane's last position, in any scale
    offsets, alpha, scale : as written by `forward`
    beliefs : (K, n) output, each column sums to one
    """
    steps = offsets.shape[0] - 1
    beta = np.empty((transposed.shape[0], STRIP))
    for strip in range(0, offsets[1], STRIP):
        running = 0
        for step in range(steps - 1, -1, -1):
            at = offsets[step] + strip
            count = min(STRIP, offsets[step + 1] - at)
            if count <= 0:
                continue
            if running > 0:
                _mix(transposed, likelihood, offsets[step + 1] + strip, beta, 0, running)
            for k in range(transposed.shape[0]):
                for lane in range(running, count):
                    beta[k, lane] = stop[k, strip + lane]
            believe_step(likelihood, alpha, at, count, scale, beta, beliefs)
            running = count


@kernel
def retreat(likelihood, transposed, offsets, beta):
    """Carry a backward message from each lane's last position to the position before its first, in place.

    Parameters
    ----------
    likelihood : (K, n) overwritten
    transposed : (K, K) the transition matrix transposed
    offsets : (steps + 1,) all steps with the same number of lanes
    beta : (K, lanes) in: message of the last position; out: message of the position before the first, summing to one
    """
    n_states = transposed.shape[0]
    lanes = beta.shape[1]
    total = np.empty(STRIP)
    for strip in range(0, lanes, STRIP):
        count = min(STRIP, lanes - strip)
        for step in range(offsets.shape[0] - 2, -1, -1):
            at = offsets[step] + strip
            for k in range(n_states):
                w, b = likelihood[k, at : at + count], beta[k, strip : strip + count]
                for lane in range(count):
                    w[lane] *= b[lane]
            _mix(transposed, likelihood, at, beta, strip, count)
            _normalize(beta, strip, count, total)


@kernel
def pair_sums(alpha, weighted, offsets, sums):
    """Add Σ α_{t−1} ⊗ weighted_t over all steps and lanes to `sums`; times the transition matrix these are pair counts."""
    n_states = sums.shape[0]
    for step in range(1, offsets.shape[0] - 1):
        before, at, count = offsets[step - 1], offsets[step], offsets[step + 1] - offsets[step]
        for j in range(n_states):
            a = alpha[j, before : before + count]
            k = 0
            while k + 4 <= n_states:
                p, q = weighted[k, at : at + count], weighted[k + 1, at : at + count]
                r, s = weighted[k + 2, at : at + count], weighted[k + 3, at : at + count]
                sum_p = sum_q = sum_r = sum_s = 0.0
                for lane in range(count):
                    sum_p += a[lane] * p[lane]
                    sum_q += a[lane] * q[lane]
                    sum_r += a[lane] * r[lane]
                    sum_s += a[lane] * s[lane]
                sums[j, k] += sum_p
                sums[j, k + 1] += sum_q
                sums[j, k + 2] += sum_r
                sums[j, k + 3] += sum_s
                k += 4
            while k < n_states:
                p = weighted[k, at : at + count]
                sum_p = 0.0
                for lane in range(count):
                    sum_p += a[lane] * p[lane]
                sums[j, k] += sum_p
                k += 1


@kernel
def weigh(table, offsets, weights):
    """Multiply each lane's columns by its weight."""
    for k in range(table.shape[0]):
        for step in range(offsets.shape[0] - 1):
            first = offsets[step]
            for lane in range(offsets[step + 1] - first):
                table[k, first + lane] *= weights[lane]
