# mypy: disable-error-code="no-untyped-def"
"""From tables over all states to lists of legal ones and back: how any family answers for legal states alone."""

from __future__ import annotations

import numpy as np
from numba import njit

#: Logarithm of the smallest double above zero, and that double: what is possible stays so, however improbable.
LEAST_LOG, LEAST = -745.0, 5e-324

kernel = njit(nogil=True, cache=True, error_model="numpy")


@kernel
def pick(table, offsets, states, out):
    """Entries of a table (K, n) that belong to legal states into `out` (nnz,)."""
    for position in range(offsets.shape[0] - 1):
        for e in range(offsets[position], offsets[position + 1]):
            out[e] = table[states[e], position]


@kernel
def put(entries, offsets, states, out):
    """The way back of `pick`, with zeros for all other states."""
    out[:] = 0.0
    for position in range(offsets.shape[0] - 1):
        for e in range(offsets[position], offsets[position + 1]):
            out[states[e], position] = entries[e]


@kernel
def exponentiate(entries, offsets, shift):
    """Turn log likelihoods (nnz,) into likelihoods divided by exp(shift), in place; the best of a position becomes one.

    Minus infinity becomes zero, and nothing else does. A position of −inf has shift 0.
    """
    for position in range(offsets.shape[0] - 1):
        first, stop = offsets[position], offsets[position + 1]
        best = -np.inf
        for e in range(first, stop):
            best = max(best, entries[e])
        shift[position] = 0.0 if best == -np.inf else best
        for e in range(first, stop):
            if entries[e] > -np.inf:
                entries[e] = max(np.exp(max(entries[e] - best, LEAST_LOG)), LEAST)
            else:
                entries[e] = 0.0
