"""The forward algorithm on stretches of chains, whose gradients are posterior probabilities by the backward algorithm.

Forward and backward weights are logarithms whose largest one is zero. The best likelihood of each state is divided out
of a step, so that unlikely words do no harm. Products with transitions are matrix products of the weights themselves
where these keep within the range of floating numbers, and sums in log space where they do not. What decides is one
number for a whole batch.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

#: What stands for the logarithm of zero where a difference is taken.
ZERO = -1e30
#: How far, in log space, a sum stays above the numbers that are lost.
MARGIN = 30.0


class ChainLikelihood(torch.autograd.Function):
    """Log likelihood of B stretches of chains."""

    @staticmethod
    def forward(context: Any, start: Tensor, steps: Tensor, known: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return log likelihoods (B,) and the marginals after the last position, (B, S).

        Parameters
        ----------
        start : (B, S) marginals before the first position; no gradient
        steps : (B, T, S, S) log weights: the transition into each position times the likelihood there
        known : (B, T) of bool, false behind the end of a stretch, where steps are not taken; None if there are no such
        """
        best = steps.amax(dim=2).clamp(min=ZERO)
        is_within = bool((best - steps.amin(dim=2)).amax() <= -_lowest(steps)) if steps.numel() else True
        weights = steps - best[:, :, None]
        if is_within:
            weights = weights.exp_()
        alpha = start.new_empty(start.shape[0], steps.shape[1] + 1, start.shape[1])
        alpha[:, 0] = before = start.log()
        tops = []
        for t in range(steps.shape[1]):
            after = _through(before, weights[:, t], is_within) + best[:, t]
            top = _top(after)
            after = after - top
            if known is not None:
                here = known[:, t, None]
                after, top = torch.where(here, after, before), torch.where(here, top, torch.zeros_like(top))
            tops.append(top)
            alpha[:, t + 1] = before = after
        context.save_for_backward(weights, best, alpha, known)
        context.is_within = is_within
        last = torch.softmax(before, dim=1)
        context.mark_non_differentiable(last)
        return torch.logsumexp(before, dim=1) + torch.cat(tops, dim=1).sum(dim=1), last

    @staticmethod
    def backward(context: Any, gradient: Tensor, _: Tensor) -> tuple[None, Tensor, None]:
        weights, best, alpha, known = context.saved_tensors
        beta = torch.zeros_like(alpha[:, 0])
        messages, behind = torch.empty_like(best), torch.empty_like(best)
        for t in reversed(range(weights.shape[1])):
            message = best[:, t] + beta
            messages[:, t] = message = message - _top(message)
            behind[:, t] = before = _through(message, weights[:, t].transpose(1, 2), context.is_within)
            beta = before if known is None else torch.where(known[:, t, None], before, beta)
        messages -= torch.logsumexp(alpha[:, :-1] + behind, dim=2, keepdim=True).clamp(min=ZERO)
        factor = gradient[:, None, None] if known is None else gradient[:, None, None] * known[..., None]
        sources = alpha[:, :-1, :, None]
        if context.is_within:
            pairs = (weights * sources.exp()).mul_((messages.exp_() * factor)[:, :, None, :])
        else:
            pairs = (weights + sources).add_(messages[:, :, None, :]).exp_().mul_(factor[..., None])
        return None, pairs, None


def chain_likelihood(start: Tensor, steps: Tensor, known: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return log likelihoods (B,) of stretches and the marginals after them, (B, S); see `ChainLikelihood`."""
    logs, last = ChainLikelihood.apply(start, steps, known)
    return logs, last


class FactoredChain(torch.autograd.Function):
    """Log likelihood of B stretches of chains with the same transitions in all steps.

    Transitions are a product of factors, in O(K f) a step, or one matrix.
    """

    @staticmethod
    def forward(
        context: Any, start: Tensor, left: Tensor, right: Tensor | None, first: Tensor, emissions: Tensor,
        resets: Tensor, known: Tensor,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Return log likelihoods (B,) and the marginals after the last position, (B, K).

        Parameters
        ----------
        start : (B, K) marginals before the first position; no gradient
        left, right : (K, f) factors of the transition matrix; (K, K) and None for the matrix itself
        first : (K,) log probabilities of first states
        emissions : (B, T, K) log likelihoods
        resets, known : (B, T) of bool, where a sequence begins, and what is not behind the end of a stretch
        """
        most = left.amax(dim=0) if right is None else left.amax(dim=0) @ right.T
        most = most.to(emissions.dtype).log()  # no transition into a state is more likely
        for is_within in (True, False):
            factors = _Factors(left, right, is_within)
            alpha, predicted, tops = _forward(start, factors, first, emissions, resets, known)
            is_low = (predicted < _lowest(emissions) + most) & (known & ~resets)[..., None]
            if not bool(is_low.any()):
                break
        context.save_for_backward(left, right, emissions, alpha, predicted, resets, known)
        context.is_within = is_within
        last = torch.softmax(alpha[:, -1], dim=1)
        context.mark_non_differentiable(last)
        return torch.logsumexp(alpha[:, -1], dim=1) + tops.sum(dim=1), last

    @staticmethod
    def backward(context: Any, gradient: Tensor, _: Tensor) -> tuple[Any, ...]:
        left, right, emissions, alpha, predicted, resets, known = context.saved_tensors
        factors = _Factors(left, right, context.is_within)
        messages, features = torch.empty_like(emissions), emissions.new_empty(*resets.shape, left.shape[1])
        beta = torch.zeros_like(alpha[:, 0])
        for t in reversed(range(emissions.shape[1])):
            message = emissions[:, t] + beta
            messages[:, t] = message = message - _top(message)
            features[:, t] = factors.of_targets(message)
            before = factors.to_sources(features[:, t])
            before = torch.where(resets[:, t, None], torch.zeros_like(before), before)
            beta = torch.where(known[:, t, None], before, beta)
        total = torch.logsumexp(predicted + messages, dim=2, keepdim=True).clamp(min=ZERO)
        messages, features, factor = messages - total, features - total, gradient[:, None] * known
        shares = (predicted + messages).exp_().mul_(factor[..., None])
        sources, moving = alpha[:, :-1].flatten(0, 1), (factor * ~resets).flatten()
        of_left = factors.outer(sources, features.flatten(0, 1), moving)
        of_right = None
        if right is not None:
            of_right = factors.outer(messages.flatten(0, 1), factors.of_sources(sources), moving)
        of_first = (shares * resets[..., None]).sum(dim=(0, 1))
        return None, of_left, of_right, of_first, shares, None, None


class _Factors:
    """Products of weights, given and returned as logarithms, with the factors of a transition matrix.

    Without a second factor the features are the targets.
    """

    def __init__(self, left: Tensor, right: Tensor | None, is_within: bool) -> None:
        self.left = left if is_within else left.log()
        self.right = right if is_within or right is None else right.log()
        self.is_within = is_within

    def of_sources(self, logs: Tensor) -> Tensor:
        """Return features (n, f) of weights of sources (n, K)."""
        return self._times(logs, self.left)

    def to_targets(self, logs: Tensor) -> Tensor:
        """Return weights of targets (n, K) of features (n, f)."""
        return logs if self.right is None else self._times(logs, self.right.T)

    def of_targets(self, logs: Tensor) -> Tensor:
        """Return features (n, f) of weights of targets (n, K)."""
        return logs if self.right is None else self._times(logs, self.right)

    def to_sources(self, logs: Tensor) -> Tensor:
        """Return weights of sources (n, K) of features (n, f)."""
        return self._times(logs, self.left.T)

    def outer(self, rows: Tensor, columns: Tensor, factor: Tensor) -> Tensor:
        """Return Σ_n factor_n exp(rows_n) exp(columns_n)ᵀ, (K, f)."""
        rows, columns = (table.masked_fill(factor[:, None] == 0.0, -torch.inf) for table in (rows, columns))
        if self.is_within:
            return rows.exp().to(self.left.dtype).T @ (columns.exp() * factor[:, None]).to(self.left.dtype)
        found = torch.zeros_like(self.left)
        for row, column, share in zip(rows, columns, factor, strict=True):
            found += (row[:, None] + column).exp_().mul_(share).to(found.dtype)
        return found

    def _times(self, logs: Tensor, table: Tensor) -> Tensor:
        if self.is_within:
            return (logs.exp().to(table.dtype) @ table).to(logs.dtype).log_()
        return torch.stack([torch.logsumexp(row[:, None] + table, dim=0) for row in logs]).to(logs.dtype)


def _forward(
    start: Tensor, factors: _Factors, first: Tensor, emissions: Tensor, resets: Tensor, known: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return log weights of states (B, T + 1, K), those before each word (B, T, K), and what is divided out, (B, T)."""
    alpha = emissions.new_empty(emissions.shape[0], emissions.shape[1] + 1, emissions.shape[2])
    predicted, tops = torch.empty_like(emissions), torch.empty_like(emissions[..., 0])
    alpha[:, 0] = start.log()
    for t in range(emissions.shape[1]):
        carried = factors.to_targets(factors.of_sources(alpha[:, t]))
        predicted[:, t] = torch.where(
            resets[:, t, None], first + torch.logsumexp(alpha[:, t], 1, keepdim=True), carried
        )
        after, here = predicted[:, t] + emissions[:, t], known[:, t, None]
        top = _top(after)
        alpha[:, t + 1] = torch.where(here, after - top, alpha[:, t])
        tops[:, t] = torch.where(here, top, torch.zeros_like(top))[:, 0]
    return alpha, predicted, tops


def _through(logs: Tensor, table: Tensor, is_within: bool) -> Tensor:
    """Return the logarithms (B, S) of exp(logs) times tables (B, S, S), which are logarithms unless within range."""
    if is_within:
        return torch.bmm(logs.exp()[:, None], table)[:, 0].log_()
    return torch.logsumexp(logs[:, :, None] + table, dim=1)


def _top(logs: Tensor) -> Tensor:
    return logs.amax(dim=1, keepdim=True).clamp(min=ZERO)


def _lowest(table: Tensor) -> float:
    """Return the logarithm above which a sum is exact, whatever was lost below the range of numbers."""
    return math.log(torch.finfo(table.dtype).tiny) + MARGIN
