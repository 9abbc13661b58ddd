"""Functions with their own backward passes: what they save is small, and their gradients need no scattered additions.

`LogNormaliser` never stores the K × K table of a softmax over states: it is recomputed in blocks. `Picked` and
`Padded` are gathers whose gradients are a matrix product and another gather.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

#: Entries of the blocks in which a normaliser is computed.
BLOCK = 1 << 26


class LogNormaliser(torch.autograd.Function):
    """log Σ_l exp(u_k · v_l) for each row u_k, without the table of all products."""

    @staticmethod
    def forward(context: Any, sources: Tensor, targets: Tensor, rows: int) -> Tensor:
        """Return the log normalisers (n,) of sources (n, h) over targets (m, h), `rows` sources at a time."""
        out = [torch.logsumexp((block @ targets.T).to(_sums(block)), dim=1) for block in sources.split(rows)]
        normaliser = torch.cat(out)
        context.save_for_backward(sources, targets, normaliser)
        context.rows = rows
        return normaliser

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        sources, targets, normaliser = context.saved_tensors
        of_targets = torch.zeros(targets.shape, dtype=normaliser.dtype, device=targets.device)
        of_sources = torch.empty(sources.shape, dtype=sources.dtype, device=sources.device)
        for start in range(0, len(sources), context.rows):
            here = slice(start, start + context.rows)
            shares = (sources[here] @ targets.T).to(normaliser.dtype)
            shares.sub_(normaliser[here, None]).exp_().mul_(gradient[here, None])
            shares = shares.to(sources.dtype)
            of_sources[here] = shares @ targets
            of_targets += (shares.T @ sources[here]).to(of_targets.dtype)
        return of_sources, of_targets.to(targets.dtype), None


def log_normaliser(sources: Tensor, targets: Tensor, block: int = BLOCK) -> Tensor:
    """Return log Σ_l exp(sources_k · targets_l), (n,), of tables (n, h) and (m, h)."""
    found: Tensor = LogNormaliser.apply(sources, targets, max(1, block // len(targets)))
    return found


class Picked(torch.autograd.Function):
    """Rows of a table; the gradient is added up by a matrix product, which is fast for rows that are picked often."""

    @staticmethod
    def forward(context: Any, table: Tensor, index: Tensor) -> Tensor:
        """Return table[index], (n, …), for a table (G, …) and indices (n,)."""
        context.save_for_backward(index)
        context.shape = table.shape
        return table[index]

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (index,) = context.saved_tensors
        flat = gradient.reshape(len(index), -1)
        chosen = torch.zeros(context.shape[0], len(index), dtype=flat.dtype, device=flat.device)
        chosen[index, torch.arange(len(index), device=index.device)] = 1.0
        return (chosen @ flat).reshape(context.shape), None


def picked(table: Tensor, index: Tensor) -> Tensor:
    """Return rows of a table, (n, …), each of which may be picked many times."""
    found: Tensor = Picked.apply(table, index)
    return found


class Padded(torch.autograd.Function):
    """Rows of a table by group, zeros behind; each row has one place, so that the gradient is a gather."""

    @staticmethod
    def forward(context: Any, table: Tensor, members: Tensor, groups: Tensor, ranks: Tensor) -> Tensor:
        """Return table[members], (G, M, h), zero where a member is −1; `groups` and `ranks` (W,) say where a row is."""
        context.save_for_backward(groups, ranks)
        return table[members.clamp(min=0)] * (members >= 0)[..., None]

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        groups, ranks = context.saved_tensors
        return gradient[groups, ranks], None, None, None


def padded(table: Tensor, members: Tensor, groups: Tensor, ranks: Tensor) -> Tensor:
    """Return the rows of each group, (G, M, h), of a table (W, h)."""
    found: Tensor = Padded.apply(table, members, groups, ranks)
    return found


def _sums(table: Tensor) -> torch.dtype:
    """Return the type in which tables are summed: at least single precision."""
    return torch.float64 if table.dtype == torch.float64 else torch.float32
