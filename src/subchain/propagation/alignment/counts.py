"""Arithmetic on counts of word pairs that needs no room of the size of the table."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from subchain.propagation.compiled import kernel


@kernel
def add_rows(rows, targets, pairs, of_source, of_target):
    """Add column 0 of `pairs` (E, 2) by source word to `of_source`, and column 1 by target word to `of_target`."""
    for word in range(rows.shape[0] - 1):
        for entry in range(rows[word], rows[word + 1]):
            of_source[word] += pairs[entry, 0]
            of_target[targets[entry]] += pairs[entry, 1]


@kernel
def add_scaled(out, factor, values):
    """Add `factor` times `values` (n,) to `out` (n,)."""
    for at in range(out.shape[0]):
        out[at] += factor * values[at]
