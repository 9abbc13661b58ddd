"""Excerpts of large files, for checks before runs that may not read such a file in full."""

from __future__ import annotations

import numpy as np

from subchain.data.mapped import is_memory_mapped
from subchain.data.sequences import Sequences

#: Files with more bytes than this are large.
LARGE_FILE = 1 << 30
EXCERPTS, EXCERPT_ROWS = 64, 1 << 14


def excerpts(data: Sequences) -> Sequences:
    """Return some stretches of a large mapped file, spread over all of it; other data as they are."""
    is_large = data.values.nbytes > LARGE_FILE and data.n_observations > EXCERPTS * EXCERPT_ROWS
    if not is_large or not is_memory_mapped(data.values):
        return data
    starts = np.linspace(0, data.n_observations - EXCERPT_ROWS, EXCERPTS).astype(np.int64)
    blocks = [np.asarray(data.values[start : start + EXCERPT_ROWS]) for start in starts]
    return Sequences(np.concatenate(blocks), columns=data.columns, vocabulary=data.vocabularies)
