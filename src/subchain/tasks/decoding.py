"""Decoding of hidden states: the most probable state of each position, or the most probable path."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.engines.results import WriteBest
from subchain.errors import InputError, unknown_name
from subchain.tasks.impossible import where_possible
from subchain.tasks.output import Out, write
from subchain.tasks.question import Question


def _best_states(question: Question, out: NDArray[Any]) -> None:
    """Write the most probable state of each position."""
    question.engine.smooth(question.surrogate, question.part, WriteBest(out)).checked()


def _best_paths(question: Question, out: NDArray[Any]) -> None:
    """Write the most probable path of each sequence."""
    question.engine.viterbi(question.surrogate, question.part, out)


#: State of positions that have none, because their sequence is impossible.
NO_STATE = -1
#: Methods of decoding: functions that write the states of all positions into an array.
DECODINGS = {"posterior": _best_states, "viterbi": _best_paths}


def decode_states(question: Question, decoding: str, out: Out) -> NDArray[Any]:
    """Return the decoded states of all positions, (N,); `decoding` is a name in `DECODINGS`.

    States of impossible sequences among others are −1, with a warning.
    """
    if decoding not in DECODINGS:
        raise unknown_name("decoding", decoding, DECODINGS)
    if isinstance(out, np.ndarray) and out.dtype.kind in "iu" and np.iinfo(out.dtype).max < question.n_states - 1:
        raise InputError(
            f"out is of type {out.dtype}, which cannot represent {question.n_states} states; use a larger integer type."
        )

    def decode(asked: Question, into: Out) -> NDArray[Any]:
        shape = (asked.data.n_observations,)
        if asked.stored is not None and decoding == "posterior":
            return write(into, shape, np.int32, asked.stored.best)
        return write(into, shape, np.int32, lambda table: DECODINGS[decoding](asked, np.asarray(table)))

    return where_possible(question, decode, out, NO_STATE)
