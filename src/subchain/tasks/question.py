"""What a fitted model is asked: data that it has checked, what is known of their states, and who computes.

Answers have the shape of the question: with one array in, an array comes out; with several sequences in, or a
dictionary, a list with one item for each of them.
"""

from __future__ import annotations

import dataclasses
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data import Evidence, Sequences
from subchain.engines import Engine, Part, Surrogate
from subchain.inference.run.training import TrainingMarginals
from subchain.structures.chain.model import HMMPoint


@dataclasses.dataclass(frozen=True)
class Question:
    """Data put to a model.

    Attributes
    ----------
    point : the model
    engine : what runs the chains
    data : the observations
    evidence : what is known of their states, or None
    in_list : whether the answer is a list with one item a sequence
    stored : what the run that made the model believes of these very data, or None
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
        """The model in the form in which an engine takes it."""
        return self.point.surrogate()

    @property
    def part(self) -> Part:
        """The data in the form in which an engine takes them."""
        return Part(self.data, self.evidence)

    def answer(self, table: NDArray[Any]) -> NDArray[Any] | list[NDArray[Any]]:
        """A table with one row a position, in the form in which the data came."""
        return self.data.split(table) if self.in_list else table

    def answers(self, items: list[Any]) -> Any:
        """One item for each sequence, in the form in which the data came."""
        return items if self.in_list else items[0]


def comes_in_list(x: Any, data: Sequences) -> bool:
    """Whether a user who gave `x`, understood as `data`, expects one answer for each sequence."""
    if data.n_sequences != 1 or isinstance(x, dict):
        return True
    if not isinstance(x, (list, tuple)):
        return False
    return not all(item is None or isinstance(item, (str, Number, np.generic)) for item in (x[0], x[-1]))
