"""Posterior marginals of the states: tables over all positions, which may be files, or one state per position."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.tasks.output import Out, write
from subchain.tasks.question import Question


def smoothed(question: Question, out: Out) -> NDArray[Any]:
    """Return the posterior marginals given the whole sequence, (N, K)."""

    def fill(table: NDArray[Any]) -> None:
        rows = np.asarray(table)
        question.engine.smooth(question.surrogate, question.part, lambda block: block.write(rows)).checked()

    stored = question.stored
    return write(out, (question.data.n_observations, question.n_states), np.float64, stored.write if stored else fill)


def filtered(question: Question, out: Out) -> NDArray[Any]:
    """Return the filtered marginals, given the sequence up to each position, (N, K)."""

    def fill(table: NDArray[Any]) -> None:
        rows = np.asarray(table)
        question.engine.filter(question.surrogate, question.part, lambda block: block.write(rows)).checked()

    return write(out, (question.data.n_observations, question.n_states), np.float64, fill)


def of_states(question: Question, states: NDArray[Any]) -> NDArray[np.float32]:
    """Return the posterior marginal of one given state of each position, (N,), without a table of all states."""
    found = np.empty(len(states), dtype=np.float32)
    if question.stored is not None:
        question.stored.of_states(states, found)
    else:
        engine, surrogate = question.engine, question.surrogate
        engine.smooth(surrogate, question.part, lambda block: block.write_of(states, found)).checked()
    return found
