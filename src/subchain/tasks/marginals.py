"""Probabilities of the states at every position, in one table that may be a file; or of one state of each position."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.tasks.output import Out, write
from subchain.tasks.question import Question


def smoothed(question: Question, out: Out) -> NDArray[Any]:
    """Given the whole sequence, (N, K)."""

    def fill(table: NDArray[Any]) -> None:
        rows = np.asarray(table)
        question.engine.smooth(question.surrogate, question.part, lambda block: block.write(rows)).checked()

    stored = question.stored
    return write(out, (question.data.n_observations, question.n_states), np.float64, stored.write if stored else fill)


def filtered(question: Question, out: Out) -> NDArray[Any]:
    """Given the sequence up to the position, (N, K)."""

    def fill(table: NDArray[Any]) -> None:
        rows = np.asarray(table)
        question.engine.filter(question.surrogate, question.part, lambda block: block.write(rows)).checked()

    return write(out, (question.data.n_observations, question.n_states), np.float64, fill)


def of_states(question: Question, states: NDArray[Any]) -> NDArray[np.float32]:
    """Of one given state of each position, given the whole sequence, (N,); no table of all states is made."""
    found = np.empty(len(states), dtype=np.float32)
    if question.stored is not None:
        question.stored.of_states(states, found)
    else:
        engine, surrogate = question.engine, question.surrogate
        engine.smooth(surrogate, question.part, lambda block: block.write_of(states, found)).checked()
    return found
