"""Functions with their own backward passes: what they save is small, and their gradients need no scattered additions.

`LogNormaliser` never stores the K × K table of a softmax over states: it is recomputed in blocks. `Picked` and
`Padded` are gathers whose gradients are a matrix product and another gather. `ChainLikelihood` is the forward
algorithm, whose gradients are posterior probabilities, by the backward algorithm.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

#: Entries of the blocks in which a normaliser is computed.
BLOCK = 1 << 26
#: The smallest weight that is not taken as zero.
LEAST = 1e-30


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


class ChainLikelihood(torch.autograd.Function):
    """Log likelihood of B stretches of chains, by the forward algorithm on probabilities."""

    @staticmethod
    def forward(context: Any, start: Tensor, steps: Tensor, known: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return log likelihoods (B,) and the marginals after the last position, (B, S).

        Parameters
        ----------
        start : (B, S) marginals before the first position; no gradient
        steps : (B, T, S, S) log weights: the transition into each position times the likelihood there
        known : (B, T) of bool, false behind the end of a stretch, where steps are not taken; None if there are no such
        """
        shift = steps.amax(dim=(2, 3), keepdim=True).clamp(min=-1e30)
        weights = (steps - shift).exp_()
        alpha = torch.empty(start.shape[0], steps.shape[1] + 1, start.shape[1], dtype=start.dtype, device=start.device)
        alpha[:, 0] = start
        totals, marginals = [], start
        for t in range(steps.shape[1]):
            after = torch.bmm(marginals[:, None], weights[:, t])[:, 0]
            total = after.sum(dim=1, keepdim=True)
            after = after / total.clamp(min=LEAST)
            if known is not None:
                here = known[:, t, None]
                after, total = torch.where(here, after, marginals), torch.where(here, total, torch.ones_like(total))
            totals.append(total)
            alpha[:, t + 1] = marginals = after
        scale = torch.cat(totals, dim=1)
        logs = scale.log() + shift[:, :, 0, 0]
        if known is not None:
            logs = torch.where(known, logs, torch.zeros_like(logs))
        context.save_for_backward(weights, alpha, scale, known)
        last = alpha[:, -1].clone()
        context.mark_non_differentiable(last)
        return logs.sum(dim=1), last

    @staticmethod
    def backward(context: Any, gradient: Tensor, _: Tensor) -> tuple[None, Tensor, None]:
        weights, alpha, scale, known = context.saved_tensors
        beta = gradient[:, None].expand(-1, alpha.shape[2]).contiguous()
        messages = torch.empty_like(alpha[:, 1:])
        inverse = 1.0 / scale.clamp(min=LEAST)
        for t in reversed(range(weights.shape[1])):
            message = beta * inverse[:, t, None]
            before = torch.bmm(weights[:, t], message[:, :, None])[:, :, 0]
            if known is not None:
                here = known[:, t, None]
                message, before = torch.where(here, message, torch.zeros_like(message)), torch.where(here, before, beta)
            messages[:, t], beta = message, before
        pairs = weights * alpha[:, :-1, :, None]
        return None, pairs.mul_(messages[:, :, None, :]), None


def chain_likelihood(start: Tensor, steps: Tensor, known: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return log likelihoods (B,) of stretches and the marginals after them, (B, S); see `ChainLikelihood`."""
    logs, last = ChainLikelihood.apply(start, steps, known)
    return logs, last


class FactoredChain(torch.autograd.Function):
    """Log likelihood of B stretches of chains whose transitions are a product of factors, in O(K f) a step."""

    @staticmethod
    def forward(
        context: Any, start: Tensor, left: Tensor, right: Tensor, first: Tensor, emissions: Tensor, resets: Tensor,
        known: Tensor,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Return log likelihoods (B,) and the marginals after the last position, (B, K).

        Parameters
        ----------
        start : (B, K) marginals before the first position; no gradient
        left, right : (K, f) factors of the transition matrix
        first : (K,) log probabilities of first states
        emissions : (B, T, K) log likelihoods
        resets, known : (B, T) of bool, where a sequence begins, and what is not behind the end of a stretch
        """
        shift = emissions.amax(dim=2, keepdim=True)
        likelihood, initial = (emissions - shift).exp_(), first.exp()
        alpha = emissions.new_empty(emissions.shape[0], emissions.shape[1] + 1, emissions.shape[2])
        predicted, scale = torch.empty_like(emissions), emissions.new_ones(emissions.shape[:2])
        alpha[:, 0] = start
        for t in range(emissions.shape[1]):
            carried = (alpha[:, t].to(left.dtype) @ left @ right.T).to(emissions.dtype)
            predicted[:, t] = torch.where(resets[:, t, None], initial, carried)
            after = predicted[:, t] * likelihood[:, t]
            total, here = after.sum(dim=1), known[:, t]
            scale[:, t] = torch.where(here, total, scale[:, t])
            alpha[:, t + 1] = torch.where(here[:, None], after / total.clamp(min=LEAST)[:, None], alpha[:, t])
        logs = torch.where(known, scale.log() + shift[..., 0], torch.zeros_like(scale))
        context.save_for_backward(left, right, likelihood, alpha, predicted, scale, resets, known)
        last = alpha[:, -1].clone()
        context.mark_non_differentiable(last)
        return logs.sum(dim=1), last

    @staticmethod
    def backward(context: Any, gradient: Tensor, _: Tensor) -> tuple[Any, ...]:
        left, right, likelihood, alpha, predicted, scale, resets, known = context.saved_tensors
        ones = gradient[:, None].expand(-1, alpha.shape[2])
        beta, messages = ones.contiguous(), torch.zeros_like(predicted)
        features = left.new_zeros(*predicted.shape[:2], left.shape[1])
        for t in reversed(range(predicted.shape[1])):
            here, is_first = known[:, t, None], resets[:, t, None]
            message = beta * likelihood[:, t] / scale[:, t, None].clamp(min=LEAST)
            messages[:, t] = torch.where(here, message, torch.zeros_like(message))
            inner = torch.where(is_first, torch.zeros_like(message), messages[:, t]).to(left.dtype) @ right
            features[:, t] = inner
            before = torch.where(is_first, ones, (inner @ left.T).to(beta.dtype))
            beta = torch.where(here, before, beta)
        shares = predicted * messages
        carried = (messages * ~resets[..., None]).flatten(0, 1).to(left.dtype)
        sources = alpha[:, :-1].flatten(0, 1).to(left.dtype)
        of_left, of_right = sources.T @ features.flatten(0, 1), carried.T @ (sources @ left)
        of_first = (shares * resets[..., None]).sum(dim=(0, 1))
        return None, of_left, of_right, of_first, shares, None, None


def _sums(table: Tensor) -> torch.dtype:
    """Return the type in which tables are summed: at least single precision."""
    return torch.float64 if table.dtype == torch.float64 else torch.float32
