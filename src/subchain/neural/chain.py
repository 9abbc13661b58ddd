"""Likelihood of stretches of text under the weights of a model; marginals are carried from one to the next."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from subchain.neural.likelihoods import FactoredChain, chain_likelihood
from subchain.neural.parameters import Weights
from subchain.neural.transitions import LowRankWeights


class Stretch(NamedTuple):
    """B stretches of at most T words side by side.

    Attributes
    ----------
    words : (B, T) codes; anything where not known
    resets : (B, T) of bool, where the state is drawn from the distribution of first states
    known : (B, T) of bool, false behind the end of a stretch
    is_full : whether everything is known, as far as was looked for
    """

    words: Tensor
    resets: Tensor
    known: Tensor
    is_full: bool = False

    def between(self, start: int, stop: int) -> Stretch:
        """Return the stretches from one column to another."""
        here = slice(start, stop)
        known = self.known[:, here]
        return Stretch(self.words[:, here], self.resets[:, here], known, self.is_full)


class Carried(NamedTuple):
    """What is known of the state before a stretch: marginals (B, S) of all states of the groups (B,) of last words."""

    marginals: Tensor
    groups: Tensor

    @classmethod
    def nothing(cls, weights: Weights, n: int) -> Carried:
        """Return what is carried into n stretches that begin with first states."""
        marginals = weights.start.new_full((n, weights.size), 1.0 / weights.size)
        return cls(marginals, torch.zeros(n, dtype=torch.int64, device=marginals.device))


def log_likelihood(weights: Weights, stretch: Stretch, carried: Carried) -> tuple[Tensor, Carried]:
    """Return the log likelihoods (B,) of stretches given what is carried into them, and what they carry on.

    Marginals are carried on without gradients. Those of states that are not kept are dropped.
    """
    groups = weights.table.groups[torch.where(stretch.known, stretch.words, 0)]
    start = _restricted(weights, carried)
    if groups.shape[1] == 0:
        return start.new_zeros(len(start)), carried
    if isinstance(weights.transition, LowRankWeights) and weights.table.n_groups == 1:
        transition = weights.transition
        logs, last = FactoredChain.apply(
            start, transition.left[0].to(transition.kind), transition.right[0].to(transition.kind), weights.start[0],
            emission_logs(weights, stretch), stretch.resets, stretch.known,
        )  # fmt: skip
    else:
        logs, last = chain_likelihood(
            start, steps(weights, stretch, carried.groups), None if stretch.is_full else stretch.known
        )
    ends = stretch.known.sum(dim=1)
    of_last = torch.cat([carried.groups[:, None], groups], dim=1).gather(1, ends[:, None])[:, 0]
    whole = last.new_zeros(len(last), weights.size).scatter(1, weights.kept[of_last], last)
    return logs, Carried(whole, of_last)


def steps(weights: Weights, stretch: Stretch, before_first: Tensor) -> Tensor:
    """Return log weights of each transition times the emission behind it, (B, T, S, S).

    `before_first` (B,) are the groups of the words before the stretches.
    """
    words = torch.where(stretch.known, stretch.words, 0)
    groups = weights.table.groups[words]
    before = torch.cat([before_first[:, None], groups[:, :-1]], dim=1)
    logs = weights.transition.steps(before.flatten(), groups.flatten()).unflatten(0, groups.shape)
    first = weights.start[groups][:, :, None, :]
    logs = torch.where(stretch.resets[..., None, None], first, logs)
    return logs + emission_logs(weights, stretch)[:, :, None, :]


def emission_logs(weights: Weights, stretch: Stretch) -> Tensor:
    """Return the log probabilities of words in the states of their groups, (B, T, S)."""
    words = torch.where(stretch.known, stretch.words, 0)
    return weights.emissions.logs(words.flatten()).unflatten(0, words.shape)


def _restricted(weights: Weights, carried: Carried) -> Tensor:
    """Return carried marginals among the states that are kept, (B, S)."""
    kept = carried.marginals.gather(1, weights.kept[carried.groups])
    total = kept.sum(dim=1, keepdim=True)
    uniform = torch.full_like(kept, 1.0 / kept.shape[1])
    return torch.where(total > 0.0, kept / total.clamp(min=torch.finfo(total.dtype).tiny), uniform)
