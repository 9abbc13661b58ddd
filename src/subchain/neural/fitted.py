"""What a fit has found: trained networks, with all that is needed to use them or to store them."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.vocabulary import Vocabulary
from subchain.neural.emissions import WordTable
from subchain.neural.evaluation import whole_weights
from subchain.neural.parameters import Networks, Weights
from subchain.neural.training import NeuralTrace
from subchain.neural.transitions import Transition


@dataclasses.dataclass(frozen=True)
class Trained:
    """Networks and the settings that they were trained with.

    Attributes
    ----------
    networks : on their device
    table : the words, on the same device
    transition : setting of the transitions
    precision : floating type of training
    joined : whether sequences are one text
    vocabulary : the words in the order of their codes; None for data of codes
    end : the word that all training sequences end with, if it stands nowhere else
    trace : history of training
    """

    networks: Networks
    table: WordTable
    transition: Transition
    precision: str
    joined: bool
    vocabulary: Vocabulary | None
    end: int | None
    trace: NeuralTrace

    @cached_property
    def weights(self) -> Weights:
        """The distributions of all states."""
        return whole_weights(self.networks, self.table)

    @property
    def groups(self) -> NDArray[np.int64]:
        """Group of each word, (W,)."""
        groups: NDArray[np.int64] = self.table.groups.cpu().numpy()
        return groups

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: the weights are computed again."""
        return {name: value for name, value in vars(self).items() if name != "weights"}
