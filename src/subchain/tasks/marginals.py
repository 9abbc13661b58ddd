"""Posterior marginals of the states: tables over all positions, which may be files, or one state per position."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.engines.results import WriteMarginals
from subchain.tasks.impossible import where_possible
from subchain.tasks.output import Out, write
from subchain.tasks.question import Question


def smoothed(question: Question, out: Out) -> NDArray[Any]:
    """Return the posterior marginals given the whole sequence, (N, K); nan for impossible sequences."""

    def ask(asked: Question, into: Out) -> NDArray[Any]:
        def fill(table: NDArray[Any]) -> None:
            asked.engine.smooth(asked.surrogate, asked.part, WriteMarginals(np.asarray(table))).checked()

        stored = asked.stored
        return write(into, (asked.data.n_observations, asked.n_states), np.float64, stored.write if stored else fill)

    return where_possible(question, ask, out, np.nan)


def filtered(question: Question, out: Out) -> NDArray[Any]:
    """Return the filtered marginals, given the sequence up to each position, (N, K); nan for impossible sequences."""

    def ask(asked: Question, into: Out) -> NDArray[Any]:
        def fill(table: NDArray[Any]) -> None:
            asked.engine.filter(asked.surrogate, asked.part, WriteMarginals(np.asarray(table))).checked()

        return write(into, (asked.data.n_observations, asked.n_states), np.float64, fill)

    return where_possible(question, ask, out, np.nan)


def of_states(question: Question, states: NDArray[Any]) -> NDArray[np.float32]:
    """Return the posterior marginal of one given state of each position, (N,), without a table of all states."""
    found = np.empty(len(states), dtype=np.float32)
    if question.stored is not None:
        question.stored.of_states(states, found)
    else:
        engine, surrogate = question.engine, question.surrogate
        engine.smooth(surrogate, question.part, lambda block: block.write_of(states, found)).checked()
    return found
