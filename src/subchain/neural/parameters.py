"""All networks of a model, and the distributions that they give for the states that are kept."""

from __future__ import annotations

import dataclasses
import math

import torch
from torch import Tensor, nn

from subchain.neural.emissions import BlockEmissions, DenseEmissions, Emissions, WordTable
from subchain.neural.networks import Noise, Residual, StateEmbeddings
from subchain.neural.transitions import LowRankWeights, SoftmaxWeights, Transition, transition_module

#: Types of the parameters, and of large products, by the name of the precision.
PRECISIONS = {
    "double": (torch.float64, torch.float64),
    "single": (torch.float32, torch.float32),
    "mixed": (torch.float32, torch.bfloat16),
}


@dataclasses.dataclass
class Weights:
    """An HMM over the states that are kept, S of each group.

    Attributes
    ----------
    start : (G, S) log probabilities of first states
    transition, emissions : see there
    kept : (G, S) which states of each group
    table : the words
    size : number of all states of a group
    """

    start: Tensor
    transition: SoftmaxWeights | LowRankWeights
    emissions: BlockEmissions | DenseEmissions
    kept: Tensor
    table: WordTable
    size: int

    @property
    def is_factored(self) -> bool:
        """Whether recursions run with factors of the transitions, which are the same in all steps: with one group."""
        return self.table.n_groups == 1

    @property
    def entries_of_word(self) -> int:
        """Entries of the largest table that the likelihood makes for each word."""
        return self.start.shape[1] if self.is_factored else self.start.shape[1] ** 2


class Networks(nn.Module):
    """Embeddings and networks of G groups of states."""

    def __init__(self, n_words: int, n_groups: int, size: int, width: int, transition: Transition) -> None:
        super().__init__()
        self.n_groups = n_groups
        self.size = size
        self.width = width
        self.states = StateEmbeddings(n_groups, size, width)
        self.first = Residual(width, width)
        self.first_vector = nn.Parameter(torch.randn(width) / math.sqrt(width))
        self.transition = transition_module(transition, width)
        self.emissions = Emissions(n_words, width)

    def weights(
        self, table: WordTable, noise: Noise, n_kept: int, share: float = 0.0, kind: torch.dtype | None = None
    ) -> Weights:
        """Return the distributions among the states that are kept in an update.

        Parameters
        ----------
        table : the words
        noise : of the update; without a seed nothing is dropped
        n_kept : number of states that are kept in each group
        share : share of the entries inside networks that are dropped
        kind : type of large products; that of the parameters by default
        """
        kept = noise.choose(table.n_groups, self.size, n_kept)
        states = self.states(kept, noise, share)
        kind = states.dtype if kind is None else kind
        first = self.first(states, noise, share) @ self.first_vector
        return Weights(
            torch.log_softmax(first.flatten(), dim=0).view(first.shape),
            self.transition.weights(states, noise, share, kind),
            self.emissions.weights(states, table, noise, share, kind),
            kept, table, self.size,
        )  # fmt: skip
