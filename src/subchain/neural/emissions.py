"""Emissions as functions of embeddings of states and words: a softmax over the words of each state's group."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subchain.neural.functions import log_normaliser, padded
from subchain.neural.networks import Noise, Residual


@dataclasses.dataclass(frozen=True)
class WordTable:
    """Where words stand: each has a rank in its group.

    Attributes
    ----------
    groups, ranks : (W,) group of each word and its place in the group
    members : (G, M) words by group and rank, −1 behind the smaller groups
    """

    groups: Tensor
    ranks: Tensor
    members: Tensor

    @classmethod
    def of(cls, groups: NDArray[np.int64], device: torch.device) -> WordTable:
        """Return the table for the group of each word, (W,)."""
        sizes, order = np.bincount(groups), np.argsort(groups, kind="stable")
        ranks = np.empty(len(groups), dtype=np.int64)
        ranks[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        members = np.full((len(sizes), sizes.max()), -1)
        members[groups, ranks] = np.arange(len(groups))
        return cls(*(torch.from_numpy(table).to(device) for table in (groups, ranks, members)))

    @property
    def n_groups(self) -> int:
        """Number of groups, G."""
        return self.members.shape[0]

    @property
    def n_words(self) -> int:
        """Number of words, W."""
        return self.groups.shape[0]


class Emissions(nn.Module):
    """Embeddings of words, and the network of states."""

    def __init__(self, n_words: int, width: int) -> None:
        super().__init__()
        self.words = nn.Parameter(torch.randn(n_words, width) / math.sqrt(width))
        self.network = Residual(width, width)

    def weights(
        self, states: Tensor, table: WordTable, noise: Noise, share: float, kind: torch.dtype
    ) -> BlockEmissions | DenseEmissions:
        """Return the emissions of the kept states with embeddings (G, S, h)."""
        found = self.network(states, noise, share)
        if table.n_groups == 1:
            return DenseEmissions(found[0].to(kind), self.words.to(kind), found.dtype)
        return BlockEmissions(found, padded(self.words, table.members, table.groups, table.ranks), table)


class BlockEmissions:
    """Log probabilities of the words of each group in its states, (G, M, S)."""

    def __init__(self, states: Tensor, words: Tensor, table: WordTable) -> None:
        logits = torch.bmm(words, states.transpose(1, 2)).masked_fill(table.members[..., None] < 0, -torch.inf)
        self.logs_of_groups = torch.log_softmax(logits, dim=1)
        self.table = table

    def logs(self, words: Tensor) -> Tensor:
        """Return the log probabilities of words (n,) in the states of their groups, (n, S)."""
        places = self.table.groups[words] * self.logs_of_groups.shape[1] + self.table.ranks[words]
        return nn.functional.embedding(places, self.logs_of_groups.flatten(0, 1))

    def rows(self, states: Tensor) -> Tensor:
        """Return the probabilities of the words of the groups of states (n,), numbered through all groups, (n, M)."""
        return self.logs_of_groups.transpose(1, 2).flatten(0, 1)[states].exp()


class DenseEmissions:
    """Log probabilities of all words in all states, from embeddings of states (S, h) and words (W, h)."""

    def __init__(self, states: Tensor, words: Tensor, sums: torch.dtype) -> None:
        self.states = states
        self.words = words
        self.sums = sums
        self.normaliser = log_normaliser(states, words)

    def logs(self, words: Tensor) -> Tensor:
        """Return the log probabilities of words (n,) in all states, (n, S)."""
        chosen = nn.functional.embedding(words, self.words)
        return (chosen @ self.states.T).to(self.sums) - self.normaliser

    def rows(self, states: Tensor) -> Tensor:
        """Return the probabilities of all words in states (n,), (n, W)."""
        return ((self.states[states] @ self.words.T).to(self.sums) - self.normaliser[states, None]).exp()
