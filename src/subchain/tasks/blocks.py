"""Posterior marginals block by block, in the order of the data, for results that need not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError
from subchain.inference.run.training import TrainingMarginals
from subchain.tasks.question import Question

Array = NDArray[np.float64]


def smoothed_blocks(question: Question, size: int) -> Iterator[tuple[int, Array]]:
    """Yield the first position and the posterior marginals (n, K) of consecutive blocks of at most `size` positions."""
    if not isinstance(size, (int, np.integer)) or size < 1:
        raise InputError(f"block must be a whole number of at least 1, not {size!r}.")
    if question.stored is not None:
        return _stored_blocks(question, question.stored, int(size))
    return question.engine.smooth_in_order(question.surrogate, question.part, int(size))


def _stored_blocks(question: Question, stored: TrainingMarginals, size: int) -> Iterator[tuple[int, Array]]:
    """Yield the same blocks from stored marginals of the training data."""
    for start, stop in pairwise(question.data.offsets.tolist()):
        for first in range(start, stop, size):
            yield first, np.ascontiguousarray(stored.table(first, min(first + size, stop)).T)
