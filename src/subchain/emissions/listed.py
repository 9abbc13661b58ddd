# mypy: disable-error-code="no-untyped-def"
"""Conversion between tables over all states, (K, n), and lists of legal states, (nnz,).

Families without methods of their own for legal states use these kernels. Entry e of a list belongs to state `states[e]`
at the position t with `offsets[t] <= e < offsets[t + 1]`.
"""

from __future__ import annotations

import numpy as np

from subchain.numerics.compilation import compiled

#: Log of the smallest positive double, and that double: likelihoods above zero are not allowed to underflow to zero.
LEAST_LOG, LEAST = -745.0, 5e-324

kernel = compiled(error_model="numpy")


@kernel
def pick(table, offsets, states, out):
    """Copy the entries of a table (K, n) that belong to legal states into `out` (nnz,)."""
    for position in range(offsets.shape[0] - 1):
        for e in range(offsets[position], offsets[position + 1]):
            out[e] = table[states[e], position]


@kernel
def put(entries, offsets, states, out):
    """Copy entries (nnz,) into a table `out` (K, n), with zeros for all other states; the reverse of `pick`."""
    out[:] = 0.0
    for position in range(offsets.shape[0] - 1):
        for e in range(offsets[position], offsets[position + 1]):
            out[states[e], position] = entries[e]


@kernel
def exponentiate(entries, offsets, shift):
    """Turn log likelihoods (nnz,) into likelihoods divided by exp(shift), in place.

    `shift` (n,) receives the largest log likelihood of each position, or 0 where all are −inf. Only −inf becomes zero.
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
