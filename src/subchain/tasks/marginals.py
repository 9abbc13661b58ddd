"""Probabilities of the states at every position, in one table that may be a file; or of one state of each position."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu import per_position
from subchain.tasks.output import Out, write
from subchain.tasks.question import Question


def smoothed(question: Question, out: Out) -> NDArray[Any]:
    """Given the whole sequence, (N, K)."""
    if question.stored is not None:
        return write(out, (question.data.n_observations, question.n_states), np.float64, question.stored.write)
    messages, shape = question.messages(), (question.data.n_observations, question.n_states)
    return write(out, shape, np.float64, lambda table: per_position.smooth(question.engine, messages, table))


def filtered(question: Question, out: Out) -> NDArray[Any]:
    """Given the sequence up to the position, (N, K)."""
    messages, shape = question.messages(), (question.data.n_observations, question.n_states)
    return write(out, shape, np.float64, lambda table: per_position.filter(question.engine, messages, table))


def of_states(question: Question, states: NDArray[Any]) -> NDArray[np.float32]:
    """Of one given state of each position, given the whole sequence, (N,); no table of all states is made."""
    found = np.empty(len(states), dtype=np.float32)
    if question.stored is not None:
        question.stored.of_states(states, found)
    else:
        per_position.marginals_of_states(question.engine, question.messages(), states, found)
    return found
