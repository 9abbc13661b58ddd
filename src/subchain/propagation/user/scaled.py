# mypy: disable-error-code="no-untyped-def"
"""Scaled forward and backward passes over chains one after the other, in the layout of the user's tables.

Tables are position-major, (n, K), with the sequences concatenated; inner loops run along states. For few chains this is
faster than lanes, which vectorise along chains, and needs no rearrangement. Scaling is the same as in `lanes`.
"""

from __future__ import annotations

import numpy as np

from subchain.propagation.compiled import kernel, small_kernel


@small_kernel
def _mix(weights, matrix, out):
    """Set out (K,) = weights (J,) · matrix (J, K), four rows at a time."""
    rows = weights.shape[0]
    out[:] = 0.0
    j = 0
    while j + 4 <= rows:
        a, b, c, d = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        p, q, r, s = matrix[j], matrix[j + 1], matrix[j + 2], matrix[j + 3]
        for k in range(out.shape[0]):
            out[k] += a * p[k] + b * q[k] + c * r[k] + d * s[k]
        j += 4
    while j < rows:
        a, p = weights[j], matrix[j]
        for k in range(out.shape[0]):
            out[k] += a * p[k]
        j += 1


@kernel
def forward(likelihood, transition, initial, starts, stops, alpha, scale):
    """Compute the filtered marginals of all positions.

    Parameters
    ----------
    likelihood : (n, K)
    transition : (K, K)
    initial : (K,)
    starts, stops : (n_sequences,) first position of each sequence, and the one after its last
    alpha : (n, K) output; each row sums to one, or to zero from the position at which a sequence becomes impossible
    scale : (n,) output, the normalisers
    """
    for sequence in range(starts.shape[0]):
        for position in range(starts[sequence], stops[sequence]):
            row = alpha[position]
            if position == starts[sequence]:
                row[:] = initial
            else:
                _mix(alpha[position - 1], transition, row)
            total = 0.0
            for k in range(row.shape[0]):
                row[k] *= likelihood[position, k]
                total += row[k]
            scale[position] = total
            inverse = 1.0 / total if total > 0.0 else 0.0
            for k in range(row.shape[0]):
                row[k] *= inverse


@kernel
def backward(likelihood, transposed, starts, stops, alpha, scale, marginals, pairs):
    """Compute the posterior marginals of all positions, and sums over pairs of neighbouring positions.

    Parameters
    ----------
    likelihood : (n, K)
    transposed : (K, K) the transition matrix transposed
    starts, stops : (n_sequences,) first position of each sequence, and the one after its last
    alpha, scale : as written by `forward`
    marginals : (n, K) output, each row sums to one
    pairs : (K, K) Σ α_{t−1} ⊗ (b_t β_t / scale_t) is added; times the transition matrix these are expected transitions
    """
    n_states = transposed.shape[0]
    beta, weighted = np.empty(n_states), np.empty(n_states)
    for sequence in range(starts.shape[0]):
        beta[:] = 1.0
        for position in range(stops[sequence] - 1, starts[sequence] - 1, -1):
            row = marginals[position]
            total = 0.0
            for k in range(n_states):
                row[k] = alpha[position, k] * beta[k]
                total += row[k]
            inverse = 1.0 / total
            for k in range(n_states):
                row[k] *= inverse
            if position == starts[sequence]:
                break
            inverse /= scale[position]
            for k in range(n_states):
                weighted[k] = likelihood[position, k] * beta[k] * inverse
            before = alpha[position - 1]
            for j in range(n_states):
                for k in range(n_states):
                    pairs[j, k] += before[j] * weighted[k]
            _mix(weighted, transposed, beta)
