"""Probabilities of the states at every position, in one table that may be a file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.engines import marginals
from subchain.tasks.output import Out, write
from subchain.tasks.question import Question


def smoothed(question: Question, out: Out) -> NDArray[Any]:
    """Given the whole sequence, (N, K)."""
    if question.stored is not None:
        return write(out, (question.data.n_observations, question.n_states), np.float64, question.stored.write)
    messages, shape = question.messages(), (question.data.n_observations, question.n_states)
    return write(out, shape, np.float64, lambda table: marginals.smooth(question.engine, messages, table))


def filtered(question: Question, out: Out) -> NDArray[Any]:
    """Given the sequence up to the position, (N, K)."""
    messages, shape = question.messages(), (question.data.n_observations, question.n_states)
    return write(out, shape, np.float64, lambda table: marginals.filter(question.engine, messages, table))
