"""Residual networks, and embeddings of states that are made of their group's and their own.

(Chiu & Rush, Scaling Hidden Markov Language Models, 2020, section 3.2 and the appendix on parameterisation.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Have PyTorch's generator of the processor begin with a seed; leave it as it was."""
    before = torch.random.get_rng_state()
    torch.random.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        torch.random.set_rng_state(before)


class Noise:
    """Random masks of one update, a function of seed, number of the update and device; none without a seed."""

    def __init__(self, seed: int | None, device: torch.device) -> None:
        self.generator: torch.Generator | None = None
        self.device = device
        if seed is not None:
            self.generator = torch.Generator(device)
            self.generator.manual_seed(seed)

    def drop(self, table: Tensor, share: float) -> Tensor:
        """Return the table with a share of the entries set to zero and the others scaled up."""
        if self.generator is None or share == 0.0:
            return table
        kept = torch.rand(table.shape, generator=self.generator, device=self.device, dtype=torch.float32) >= share
        return table * (kept / (1.0 - share)).to(table.dtype)

    def choose(self, n_groups: int, size: int, kept: int) -> Tensor:
        """Return `kept` of `size` members of each group, rising, (G, kept); all of them without a seed."""
        if self.generator is None or kept == size:
            return torch.arange(size, device=self.device).expand(n_groups, size)
        drawn = torch.rand(n_groups, size, generator=self.generator, device=self.device)
        return drawn.topk(kept, dim=1).indices.sort(dim=1).values


class Residual(nn.Module):
    """LayerNorm(x' + ReLU(W₂ x')) with x' = ReLU(W₁ x); the entries of x' may be dropped out."""

    def __init__(self, n_inputs: int, n_outputs: int) -> None:
        super().__init__()
        self.first = nn.Linear(n_inputs, n_outputs)
        self.second = nn.Linear(n_outputs, n_outputs)
        self.norm = nn.LayerNorm(n_outputs)

    def forward(self, x: Tensor, noise: Noise, share: float) -> Tensor:
        """Return (…, n_outputs) for inputs (…, n_inputs)."""
        hidden = noise.drop(torch.relu(self.first(x)), share)
        found: Tensor = self.norm(hidden + torch.relu(self.second(hidden)))
        return found


class StateEmbeddings(nn.Module):
    """Embeddings of the states of all groups: a vector of the group beside one of the state, through a network.

    With one group a state has its own vector alone.
    """

    def __init__(self, n_groups: int, size: int, width: int) -> None:
        super().__init__()
        of_group = width // 2 if n_groups > 1 else 0
        self.groups = nn.Parameter(torch.randn(n_groups, of_group) / math.sqrt(width)) if of_group else None
        self.states = nn.Parameter(torch.randn(n_groups, size, width - of_group) / math.sqrt(width))
        self.network = Residual(width, width)

    def forward(self, kept: Tensor, noise: Noise, share: float) -> Tensor:
        """Return embeddings (G, S, h) of the kept states of each group, (G, S)."""
        own = torch.gather(self.states, 1, kept[..., None].expand(-1, -1, self.states.shape[2]))
        if self.groups is not None:
            own = torch.cat([self.groups[:, None].expand(-1, own.shape[1], -1), own], dim=2)
        found: Tensor = self.network(own, noise, share)
        return found
