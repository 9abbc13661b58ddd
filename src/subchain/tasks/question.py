"""Input of all prediction tasks: a fitted model, checked data, evidence about their states, and an engine.

The form of a result follows the form of the data: for one array it is an array; for several sequences, or a dictionary,
it is a list with one item per sequence.
"""

from __future__ import annotations

import dataclasses
from contextlib import AbstractContextManager
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data import Evidence, Sequences
from subchain.data.mapped import MappedFile, intact
from subchain.engines import Engine, Part, Surrogate
from subchain.inference.run.training import TrainingMarginals
from subchain.structures.chain.model import HMMPoint


@dataclasses.dataclass(frozen=True)
class Question:
    """A model together with the data that it is applied to.

    Attributes
    ----------
    point : the model
    engine : engine that computes messages and marginals
    data : the observations
    evidence : what is known of their states, or None
    in_list : whether the result is a list with one item per sequence
    stored : posterior marginals of these data that the training run has kept, or None
    """

    point: HMMPoint
    engine: Engine
    data: Sequences
    evidence: Evidence | None
    in_list: bool
    stored: TrainingMarginals | None = None

    @property
    def n_states(self) -> int:
        """Number of states of the model."""
        return len(self.point.chain.initial)

    @property
    def surrogate(self) -> Surrogate:
        """The model in the form that engines take."""
        return self.point.surrogate()

    @property
    def part(self) -> Part:
        """The data in the form that engines take."""
        return Part(self.data, self.evidence)

    def intact(self) -> AbstractContextManager[None]:
        """Return a context at whose end an `InputError` is raised if a file that answers are read from has changed."""
        known = () if self.evidence is None else self.evidence.files
        return intact(self.data.file, None if self.stored is None else MappedFile.of(self.stored.entries), *known)

    def answer(self, table: NDArray[Any]) -> NDArray[Any] | list[NDArray[Any]]:
        """Return a table with one row per position in the form of the data: whole, or as a list of tables."""
        return self.data.split(table) if self.in_list else table

    def answers(self, items: list[Any]) -> Any:
        """Return items, one per sequence, in the form of the data: the list, or its only item."""
        return items if self.in_list else items[0]


def comes_in_list(x: Any, data: Sequences) -> bool:
    """Return whether the result for input `x`, parsed as `data`, is a list with one item per sequence."""
    if data.n_sequences != 1 or isinstance(x, dict):
        return True
    if not isinstance(x, (list, tuple)):
        return False
    return not all(item is None or isinstance(item, (str, Number, np.generic)) for item in (x[0], x[-1]))
