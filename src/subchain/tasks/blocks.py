"""Posterior marginals block by block, in the order of the data, for results that need not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from subchain.errors import ImpossibleSequenceError, InputError
from subchain.inference.run.training import TrainingMarginals
from subchain.tasks.impossible import PossiblePart, possible_part
from subchain.tasks.question import Question

Array = NDArray[np.float64]


def smoothed_blocks(question: Question, size: int) -> Iterator[tuple[int, Array]]:
    """Yield the first position and the posterior marginals (n, K) of consecutive blocks of at most `size` positions.

    Marginals of impossible sequences among others are nan, with a warning.
    """
    if not isinstance(size, (int, np.integer)) or size < 1:
        raise InputError(f"block must be a whole number of at least 1, not {size!r}.")
    if question.stored is not None:
        return _checked(question, _stored_blocks(question, question.stored, int(size)))
    with question.intact():
        try:
            blocks = question.engine.smooth_in_order(question.surrogate, question.part, int(size))
        except ImpossibleSequenceError as error:
            blocks = _with_gaps(question, possible_part(question, error), int(size))
    return _checked(question, blocks)


def _checked(question: Question, blocks: Iterator[tuple[int, Array]]) -> Iterator[tuple[int, Array]]:
    """Yield the same blocks, each if the file of the data was whole until it was computed."""
    while True:
        with question.intact():
            block = next(blocks, None)
        if block is None:
            return
        yield block


def _with_gaps(question: Question, part: PossiblePart, size: int) -> Iterator[tuple[int, Array]]:
    """Yield the blocks of the possible sequences, and nan for the positions between them."""
    asked, following = part.question, 0
    for first, table in asked.engine.smooth_in_order(asked.surrogate, asked.part, size):
        at = part.positions[first : first + len(table)]
        for rows in np.split(np.arange(len(at)), np.flatnonzero(np.diff(at) > 1) + 1):
            yield from _gap(following, int(at[rows[0]]), question.n_states, size)
            yield int(at[rows[0]]), table[rows]
            following = int(at[rows[-1]]) + 1
    yield from _gap(following, question.data.n_observations, question.n_states, size)


def _gap(start: int, stop: int, n_states: int, size: int) -> Iterator[tuple[int, Array]]:
    for first in range(start, stop, size):
        yield first, np.full((min(size, stop - first), n_states), np.nan)


def _stored_blocks(question: Question, stored: TrainingMarginals, size: int) -> Iterator[tuple[int, Array]]:
    """Yield the same blocks from stored marginals of the training data."""
    for start, stop in pairwise(question.data.offsets.tolist()):
        for first in range(start, stop, size):
            yield first, np.ascontiguousarray(stored.table(first, min(first + size, stop)).T)
