"""Likelihood of stretches of text under the weights of a model; marginals are carried from one to the next."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from subchain.neural.likelihoods import FactoredChain, chain_likelihood
from subchain.neural.parameters import Weights


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
    if groups.shape[1] == 0:
        return weights.start.new_zeros(len(groups)), carried
    logs, last = _likelihood(weights, stretch, carried, emission_logs(weights, stretch))
    ends = stretch.known.sum(dim=1)
    of_last = torch.cat([carried.groups[:, None], groups], dim=1).gather(1, ends[:, None])[:, 0]
    whole = last.new_zeros(len(last), weights.size).scatter(1, weights.kept[of_last], last)
    return logs, Carried(whole, of_last)


def marginals(weights: Weights, stretch: Stretch) -> Tensor:
    """Return the posterior marginals of the states of each word's group, (B, T, S), of stretches that are whole chains.

    They are the derivatives of the log likelihood by those of the words.
    """
    with torch.enable_grad():
        emissions = emission_logs(weights, stretch).detach().requires_grad_()
        logs, _ = _likelihood(weights, stretch, Carried.nothing(weights, len(stretch.words)), emissions)
        return torch.autograd.grad(logs.sum(), emissions)[0]


def _likelihood(weights: Weights, stretch: Stretch, carried: Carried, emissions: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log likelihoods (B,) of stretches, and the marginals (B, S) after them."""
    start, known = _restricted(weights, carried), stretch.known
    if weights.is_factored:
        factors = weights.transition.factors()
        found: tuple[Tensor, Tensor] = FactoredChain.apply(
            start, *factors, weights.start[0], emissions, stretch.resets, known
        )
        return found
    arriving = transitions(weights, stretch, carried.groups)
    return chain_likelihood(start, arriving + emissions[:, :, None, :], None if stretch.is_full else known)


def steps(weights: Weights, stretch: Stretch, before_first: Tensor) -> Tensor:
    """Return log weights of each transition times the emission behind it, (B, T, S, S)."""
    return transitions(weights, stretch, before_first) + emission_logs(weights, stretch)[:, :, None, :]


def transitions(weights: Weights, stretch: Stretch, before_first: Tensor) -> Tensor:
    """Return log weights of the transitions into each position, (B, T, S, S).

    `before_first` (B,) are the groups of the words before the stretches.
    """
    words = torch.where(stretch.known, stretch.words, 0)
    groups = weights.table.groups[words]
    before = torch.cat([before_first[:, None], groups[:, :-1]], dim=1)
    logs = weights.transition.steps(before.flatten(), groups.flatten()).unflatten(0, groups.shape)
    first = weights.start[groups][:, :, None, :]
    return torch.where(stretch.resets[..., None, None], first, logs)


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
