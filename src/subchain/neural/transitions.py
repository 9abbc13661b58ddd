"""Transitions between states as functions of their embeddings: a softmax, or its generalisation by positive features.

Both give the log weights of steps between the states of two groups, (n, S, S); features are also given as factors.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from subchain.core.components import Component
from subchain.errors import InputError
from subchain.neural.functions import log_normaliser, picked
from subchain.neural.networks import Noise, Residual
from subchain.transitions import LowRank


class Softmax(Component):
    """Transition probabilities exp(u_k · v_l) / Σ_m exp(u_k · v_m).

    Examples
    --------
    >>> Softmax()
    Softmax()
    """


class SoftmaxTransition(nn.Module):
    """Networks of sources and targets."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.source = Residual(width, width)
        self.target = Residual(width, width)

    def weights(self, states: Tensor, noise: Noise, share: float, kind: torch.dtype) -> SoftmaxWeights:
        """Return the weights among the kept states with embeddings (G, S, h); products are of the given type."""
        sources = self.source(states, noise, share) * states.shape[-1] ** -0.5
        return SoftmaxWeights(sources.to(kind), self.target(states, noise, share).to(kind))


class SoftmaxWeights:
    """Transitions from sources to targets, both (G, S, h), with the log normaliser of each source, (G, S)."""

    def __init__(self, sources: Tensor, targets: Tensor) -> None:
        self.sources = sources
        self.targets = targets
        flat = log_normaliser(sources.flatten(0, 1), targets.flatten(0, 1))
        self.normaliser = flat.view(sources.shape[:2])

    def steps(self, before: Tensor, after: Tensor) -> Tensor:
        """Return log probabilities (n, S, S) from the states of groups `before` to those of `after`, both (n,)."""
        logits = torch.bmm(picked(self.sources, before), picked(self.targets, after).transpose(1, 2))
        return logits.to(self.normaliser.dtype) - picked(self.normaliser, before)[..., None]

    def factors(self) -> tuple[Tensor, None]:
        """Return the transition matrix of the states of one group, (S, S), which has no second factor."""
        logits = (self.sources[0] @ self.targets[0].T).to(self.normaliser.dtype)
        matrix = (logits - self.normaliser[0, :, None]).exp()
        return matrix.clamp(min=torch.finfo(matrix.dtype).tiny).to(self.sources.dtype), None

    def rows(self, states: Tensor) -> Tensor:
        """Return the probabilities of all targets, (n, G · S), from states numbered through all groups, (n,)."""
        logits = (self.sources.flatten(0, 1)[states] @ self.targets.flatten(0, 1).T).to(self.normaliser.dtype)
        return (logits - self.normaliser.flatten()[states, None]).exp()


class LowRankTransition(nn.Module):
    """Networks of sources and targets, and the projection to features.

    Transition probabilities are φ(u_k) · φ(v_l) / Σ_m φ(u_k) · φ(v_m) with φ(x) = exp(W x − |x|² / 2) and learned W
    (Chiu, Deng & Rush 2021).
    """

    def __init__(self, width: int, n_features: int) -> None:
        super().__init__()
        self.source = Residual(width, width)
        self.target = Residual(width, width)
        self.projection = nn.Parameter(torch.randn(width, n_features))

    def weights(self, states: Tensor, noise: Noise, share: float, kind: torch.dtype) -> LowRankWeights:
        """Return the weights among the kept states with embeddings (G, S, h); products are of the given type."""
        scale = states.shape[-1] ** -0.25
        sources, targets = self.source(states, noise, share) * scale, self.target(states, noise, share) * scale
        return LowRankWeights(self._logs(sources, kind), self._logs(targets, kind), kind)

    def _logs(self, x: Tensor, kind: torch.dtype) -> Tensor:
        projected = (x.to(kind) @ self.projection.to(kind)).to(x.dtype)
        return projected - 0.5 * (x * x).sum(dim=-1, keepdim=True)


class LowRankWeights:
    """Transitions as the product of features of sources over their normalisers, and features of targets, (G, S, f).

    What is divided out of the features for the range of floating numbers cancels in the normalisers.
    """

    def __init__(self, sources: Tensor, targets: Tensor, kind: torch.dtype) -> None:
        left = (sources - sources.amax(dim=-1, keepdim=True).detach()).exp()
        self.right = (targets - targets.amax().detach()).exp()
        total = left @ self.right.sum(dim=(0, 1))
        self.left = left / total[..., None]
        self.kind = kind

    def steps(self, before: Tensor, after: Tensor) -> Tensor:
        """Return log probabilities (n, S, S) from the states of groups `before` to those of `after`, both (n,)."""
        left, right = picked(self.left, before), picked(self.right, after)
        return torch.bmm(left, right.transpose(1, 2)).clamp(min=torch.finfo(left.dtype).tiny).log()

    def factors(self) -> tuple[Tensor, Tensor]:
        """Return the factors of the transition matrix of the states of one group, (S, f) each."""
        return self.left[0].to(self.kind), self.right[0].to(self.kind)

    def rows(self, states: Tensor) -> Tensor:
        """Return the probabilities of all targets, (n, G · S), from states numbered through all groups, (n,)."""
        return self.left.flatten(0, 1)[states] @ self.right.flatten(0, 1).T


#: Settings of transitions.
Transition = Softmax | LowRank


def transition_of(given: Any) -> Transition:
    """Return the transition of a model, a copy; None is a softmax."""
    if given is None:
        return Softmax()
    if not isinstance(given, (Softmax, LowRank)):
        raise InputError(f"transition must be Softmax() or LowRank(features=…), not {given!r}.")
    if isinstance(given, LowRank):
        n_features, defaults = given.n_features, LowRank().get_params()
        others = [name for name, value in given.get_params().items() if value != defaults[name] and name != "features"]
        if others:
            raise InputError(
                f"LowRank: {', '.join(others)} belong to the prior of an HMM, and a NeuralHMM has none; leave them out."
            )
        return LowRank(n_features)
    return Softmax()


def transition_module(setting: Transition, width: int) -> SoftmaxTransition | LowRankTransition:
    """Return the networks of transitions for embeddings of a width."""
    return LowRankTransition(width, setting.n_features) if isinstance(setting, LowRank) else SoftmaxTransition(width)
