# mypy: disable-error-code="no-untyped-def"
"""One chain, one position after the other: the plain recursions, for what cannot be done in lanes.

`advance` and `recede` carry a scaled message over a stretch of a chain whose past is not forgotten, so that its pieces
cannot be started early. The `log_` functions work in log space: slower, but exact where probabilities differ by more
than a double can hold. Tables here are position-major, (n, K).
"""

from __future__ import annotations

import numpy as np

from subchain.propagation.band import wrapped
from subchain.propagation.compiled import by_kind, kernel, small_kernel

# Products with a matrix, or with the band of its transpose; see `propagation.band`.


def _dense_product(matrix, vector, out):
    """Σ_j vector[j] · matrix[j, k]."""
    out[:] = 0.0
    for j in range(vector.shape[0]):
        weight = vector[j]
        if weight > 0.0:
            for k in range(vector.shape[0]):
                out[k] += weight * matrix[j, k]


def _band_product(matrix, vector, out):
    """The same for a band."""
    n_states = vector.shape[0]
    for k in range(n_states):
        total = 0.0
        for c in range(matrix.weights.shape[1]):
            total += matrix.weights[k, c] * vector[wrapped(matrix.first[k] + c, n_states)]
        out[k] = total


_product = by_kind(_dense_product, _band_product)


@kernel
def advance(likelihood, transition, alpha):
    """Carry a filtered marginal over n positions, in place; becomes all zero if the stretch is impossible.

    `transition` is the matrix, or the band of its transpose.
    """
    n_states = alpha.shape[0]
    predicted = np.empty(n_states)
    for position in range(likelihood.shape[0]):
        _product(transition, alpha, predicted)
        total = 0.0
        for k in range(n_states):
            predicted[k] *= likelihood[position, k]
            total += predicted[k]
        inverse = 1.0 / total if total > 0.0 else 0.0
        for k in range(n_states):
            alpha[k] = predicted[k] * inverse


@kernel
def recede(likelihood, transposed, beta):
    """Carry a backward message from the last of n positions to the one before the first, in place.

    `transposed` is the transposed matrix, or the band of the matrix.
    """
    n_states = beta.shape[0]
    mixed = np.empty(n_states)
    for position in range(likelihood.shape[0] - 1, -1, -1):
        for k in range(n_states):
            beta[k] *= likelihood[position, k]
        _product(transposed, beta, mixed)
        total = 0.0
        for j in range(n_states):
            total += mixed[j]
        inverse = 1.0 / total if total > 0.0 else 0.0
        for j in range(n_states):
            beta[j] = mixed[j] * inverse


# ---- log space -------------------------------------------------------------------------------------------------------


@small_kernel
def _log_sum(values):
    largest = values[0]
    for k in range(1, values.shape[0]):
        largest = max(largest, values[k])
    if largest == -np.inf:
        return -np.inf
    total = 0.0
    for k in range(values.shape[0]):
        total += np.exp(values[k] - largest)
    return largest + np.log(total)


def _dense_log_product(log_matrix, vector, terms, out):
    """Logarithm of Σ_j exp(vector[j] + log_matrix[j, k]); `terms` (K,) is scratch."""
    n_states = vector.shape[0]
    for k in range(n_states):
        for j in range(n_states):
            terms[j] = vector[j] + log_matrix[j, k]
        out[k] = _log_sum(terms)


def _band_log_product(log_matrix, vector, terms, out):
    """The same for a band."""
    n_states, width = vector.shape[0], log_matrix.weights.shape[1]
    for k in range(n_states):
        for c in range(width):
            terms[c] = vector[wrapped(log_matrix.first[k] + c, n_states)] + log_matrix.weights[k, c]
        out[k] = _log_sum(terms[:width])


_log_product = by_kind(_dense_log_product, _band_log_product)


@kernel
def log_forward(log_likelihood, log_transition, alpha, out):
    """Log joint of past and state: `alpha` (K,) holds the predicted log weights of the first position, in place.

    On return `out` (n, K) holds the log joint at every position and `alpha` what it predicts for the next.
    `log_transition` is the logarithm of the matrix, or of the band of its transpose.
    """
    n_states = alpha.shape[0]
    terms = np.empty(n_states)
    for position in range(log_likelihood.shape[0]):
        for k in range(n_states):
            out[position, k] = alpha[k] + log_likelihood[position, k]
        _log_product(log_transition, out[position], terms, alpha)


@kernel
def log_backward(log_likelihood, log_transposed, beta, out):
    """Log probability of the future: `beta` (K,) holds that of the last position, in place.

    On return `out` (n, K) holds it at every position and `beta` that of the position before the first.
    `log_transposed` is the logarithm of the transposed matrix, or of the band of the matrix.
    """
    n_states = beta.shape[0]
    terms, weighted = np.empty(n_states), np.empty(n_states)
    for position in range(log_likelihood.shape[0] - 1, -1, -1):
        for k in range(n_states):
            out[position, k] = beta[k]
            weighted[k] = beta[k] + log_likelihood[position, k]
        _log_product(log_transposed, weighted, terms, beta)


@kernel
def log_pair_sums(alpha, log_transition, log_likelihood, beta, log_total, sums):
    """Add the pair marginals of each position and the next to `sums` (K, K).

    `alpha` (n, K) belongs to n positions, `log_likelihood` and `beta` (n, K) to the positions one later.
    """
    n_states = sums.shape[0]
    for position in range(alpha.shape[0]):
        for j in range(n_states):
            before = alpha[position, j] - log_total
            if before == -np.inf:
                continue
            for k in range(n_states):
                sums[j, k] += np.exp(before + log_transition[j, k] + log_likelihood[position, k] + beta[position, k])


@kernel
def band_log_pair_sums(alpha, log_band, log_likelihood, beta, log_total, sums):
    """The same for the entries of a band alone: `sums` (K, width); `log_band` is that of the matrix itself."""
    n_states, width = sums.shape
    for position in range(alpha.shape[0]):
        for j in range(n_states):
            before = alpha[position, j] - log_total
            if before == -np.inf:
                continue
            for c in range(width):
                k = wrapped(log_band.first[j] + c, n_states)
                sums[j, c] += np.exp(before + log_band.weights[j, c] + log_likelihood[position, k] + beta[position, k])
