"""Sequences of probability zero among others: they are reported, and the others are answered."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.categorical import CategoricalParameters
from subchain.emissions.poisson import PoissonParameters
from subchain.errors import ImpossibleSequenceError
from subchain.tasks.output import Out, write
from subchain.tasks.question import Question

Ask = Callable[[Question, Out], NDArray[Any]]


class PossiblePart(NamedTuple):
    """The sequences of a question that the model can explain.

    Attributes
    ----------
    question : the question for these sequences alone
    sequences : (S,) their numbers
    positions : (n,) their flat positions
    """

    question: Question
    sequences: NDArray[np.int64]
    positions: NDArray[np.int64]


def possible_part(question: Question, error: ImpossibleSequenceError) -> PossiblePart:
    """Return the sequences that an error does not name, and warn of those that it names.

    If no other sequence is left, an `ImpossibleSequenceError` that describes the observation is raised.
    """
    data, message = question.data, explained(question, error)
    is_possible = np.ones(data.n_sequences, dtype=np.bool_)
    is_possible[list(error.positions)] = False
    if not error.positions or not data.lengths[is_possible].any():
        raise ImpossibleSequenceError(message, error.positions) from error
    n = len(error.positions)
    what = "It is not answered" if n == 1 else f"These {n} sequences are not answered"
    warnings.warn(f"{message} {what}; the other {data.n_sequences - n} are.", stacklevel=5)
    positions = np.flatnonzero(np.repeat(is_possible, data.lengths))
    evidence = None if question.evidence is None else question.evidence.at(positions)
    part = dataclasses.replace(question, data=data[is_possible], evidence=evidence, stored=None)
    return PossiblePart(part, np.flatnonzero(is_possible), positions)


def where_possible(question: Question, ask: Ask, out: Out, blank: float) -> NDArray[Any]:
    """Return the table that `ask` computes, with `blank` in the rows of impossible sequences, of which it warns."""
    try:
        return ask(question, out)
    except ImpossibleSequenceError as error:
        if isinstance(out, np.ndarray) and out.dtype.kind == "u":
            raise  # unsigned numbers have no room for −1
        part = possible_part(question, error)
    found = ask(part.question, None)

    def fill(table: NDArray[Any]) -> None:
        table[...] = blank
        table[part.positions] = found

    return write(out, (question.data.n_observations, *found.shape[1:]), found.dtype.type, fill)


def explained(question: Question, error: ImpossibleSequenceError) -> str:
    """Return the message of an error with the observation at which the first impossible sequence ends."""
    if not error.positions:
        return str(error)
    sequence, position = next(iter(error.positions.items()))
    n = len(error.positions)
    more = f" (and {n - 1} more)" if n > 1 else ""
    values = question.data.values[int(question.data.offsets[sequence]) + position]
    return (
        f"{question.data.label(sequence)}{more} has probability zero under the model: no path of states explains "
        f"{_observation(question, values)} at position {position} after the observations before it. Check this "
        "observation, the structural zeros of the transitions and the states that were given as allowed or known; a "
        "prior that is not flat makes observations possible that the training data did not have."
    )


def _observation(question: Question, values: Any) -> str:
    """Return one observation in words of its family: a symbol, a count, or a row."""
    emission, vocabulary = question.point.emission, question.data.vocabulary
    row = np.atleast_1d(values)
    if len(row) > 1:
        return f"the row {row.tolist()}"
    if isinstance(emission, CategoricalParameters):
        code = int(row[0])
        return f"the symbol {vocabulary.symbols[code]!r}" if vocabulary is not None else f"the symbol {code}"
    return f"the {'count' if isinstance(emission, PoissonParameters) else 'observation'} {row[0]:g}"
