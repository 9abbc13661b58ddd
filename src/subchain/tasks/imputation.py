"""Imputation: missing entries replaced by their posterior expectation given all observations, or drawn from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data import Vocabulary, is_missing
from subchain.data.number_symbols import holds_numbers
from subchain.engines.results import MarginalBlock
from subchain.tasks.question import Question
from subchain.tasks.sampling import sample_paths


def impute(question: Question) -> NDArray[Any]:
    """Return the values with missing entries replaced; observed entries are unchanged."""
    values, emission = question.data.values, question.point.emission
    kind = emission.fill(values[:1], np.full((question.n_states, 1), 1.0 / question.n_states)).dtype
    out = values.astype(kind)

    def fill(block: MarginalBlock) -> None:
        missing = is_missing(values[block.positions])
        rows = np.flatnonzero(missing if missing.ndim == 1 else missing.any(axis=1))
        if len(rows):
            at = block.positions[rows]
            out[at] = emission.fill(values[at], block.table[:, rows])

    question.engine.smooth(question.surrogate, question.part, fill).checked()
    return out


def sample_missing(question: Question, n: int, seed: np.random.SeedSequence) -> NDArray[Any]:
    """Return n copies of the values, (n, N) or (n, N, D), with missing entries drawn from their joint posterior.

    A path is drawn from its posterior, then the missing entries given the states of the path and the known entries.
    """
    values, emission = question.data.values, question.point.emission
    missing = is_missing(values)
    rows = np.flatnonzero(missing if missing.ndim == 1 else missing.any(axis=1))
    of_paths, of_values = seed.spawn(2)
    paths, rng = sample_paths(question, n, of_paths), np.random.default_rng(of_values)
    here = np.take(values, rows, axis=0)
    drawn = np.stack([emission.draw_missing(here, path[rows].astype(np.int64), rng) for path in paths])
    out = np.repeat(np.asarray(values, dtype=drawn.dtype)[None], len(paths), axis=0)
    out[:, rows] = drawn
    return out


def in_words(
    table: NDArray[Any], vocabularies: Sequence[Vocabulary | None], given: Sequence[Vocabulary | None]
) -> NDArray[Any]:
    """Return the values with codes replaced by what they stand for, in columns that were not given as codes.

    Parameters
    ----------
    table : (N,) or (N, D)
    vocabularies : vocabulary or None of each column, of the codes in the table
    given : the same of the data as they were given, where None means numbers or codes

    Returns
    -------
    array of the same shape; of strings or numbers, or of objects if columns differ
    """
    meant = [_meanings(*column) for column in zip(vocabularies, given, strict=True)]
    if not any(entries is not None for entries in meant):
        return table
    if table.ndim == 1:
        return np.array(meant[0])[table.astype(np.int64)]
    words = table.astype(object)
    for column, entries in enumerate(meant):
        if entries is not None:
            words[:, column] = np.array(entries, dtype=object)[table[:, column].astype(np.int64)]
    return words


def _meanings(ours: Vocabulary | None, given: Vocabulary | None) -> list[Any] | None:
    """Return the symbol, or number, of each code; None for columns of numbers and of codes."""
    if ours is None or (given is None and not holds_numbers(ours)):
        return None
    return ours.to_list() if given is not None else [int(symbol) for symbol in ours]
