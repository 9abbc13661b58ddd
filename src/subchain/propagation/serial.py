# mypy: disable-error-code="no-untyped-def"
"""One chain, one position after the other: the plain recursions, for what cannot be done in lanes.

`advance` and `recede` carry a scaled message over a stretch of a chain whose past is not forgotten, so that its pieces
cannot be started early. The `log_` functions work in log space: slower, but exact where probabilities differ by more
than a double can hold. Tables here are position-major, (n, K).
"""

from __future__ import annotations

import numpy as np

from subchain.propagation.compiled import kernel


@kernel
def advance(likelihood, transition, alpha):
    """Carry a filtered marginal over n positions, in place; becomes all zero if the stretch is impossible."""
    n_states = alpha.shape[0]
    predicted = np.empty(n_states)
    for position in range(likelihood.shape[0]):
        predicted[:] = 0.0
        for j in range(n_states):
            weight = alpha[j]
            if weight > 0.0:
                for k in range(n_states):
                    predicted[k] += weight * transition[j, k]
        total = 0.0
        for k in range(n_states):
            predicted[k] *= likelihood[position, k]
            total += predicted[k]
        inverse = 1.0 / total if total > 0.0 else 0.0
        for k in range(n_states):
            alpha[k] = predicted[k] * inverse


@kernel
def recede(likelihood, transposed, beta):
    """Carry a backward message from the last of n positions to the one before the first, in place."""
    n_states = beta.shape[0]
    mixed = np.empty(n_states)
    for position in range(likelihood.shape[0] - 1, -1, -1):
        mixed[:] = 0.0
        for k in range(n_states):
            weight = likelihood[position, k] * beta[k]
            if weight > 0.0:
                for j in range(n_states):
                    mixed[j] += weight * transposed[k, j]
        total = 0.0
        for j in range(n_states):
            total += mixed[j]
        inverse = 1.0 / total if total > 0.0 else 0.0
        for j in range(n_states):
            beta[j] = mixed[j] * inverse


@kernel
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


@kernel
def log_forward(log_likelihood, log_transition, alpha, out):
    """Log joint of past and state: `alpha` (K,) holds the predicted log weights of the first position, in place.

    On return `out` (n, K) holds the log joint at every position and `alpha` what it predicts for the next.
    """
    n_states = alpha.shape[0]
    terms = np.empty(n_states)
    for position in range(log_likelihood.shape[0]):
        for k in range(n_states):
            out[position, k] = alpha[k] + log_likelihood[position, k]
        for k in range(n_states):
            for j in range(n_states):
                terms[j] = out[position, j] + log_transition[j, k]
            alpha[k] = _log_sum(terms)


@kernel
def log_backward(log_likelihood, log_transition, beta, out):
    """Log probability of the future: `beta` (K,) holds that of the last position, in place.

    On return `out` (n, K) holds it at every position and `beta` that of the position before the first.
    """
    n_states = beta.shape[0]
    terms = np.empty(n_states)
    for position in range(log_likelihood.shape[0] - 1, -1, -1):
        for k in range(n_states):
            out[position, k] = beta[k]
        for j in range(n_states):
            for k in range(n_states):
                terms[k] = log_transition[j, k] + log_likelihood[position, k] + out[position, k]
            beta[j] = _log_sum(terms)


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
