"""Slow likelihoods of neural models: the networks' distributions as dense tables, and the forward algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def tables(weights: Any) -> tuple[Any, Any, Any]:
    """First states (K,), transitions (K, K) and emissions (K, W) among the kept states, from embeddings."""
    transition, n_groups = weights.transition, weights.table.n_groups
    if hasattr(transition, "sources"):
        scores = transition.sources.flatten(0, 1) @ transition.targets.flatten(0, 1).T
        moves = torch.softmax(scores, dim=1)
    else:
        scores = transition.left.flatten(0, 1) @ transition.right.flatten(0, 1).T
        moves = scores / scores.sum(dim=1, keepdim=True)
    size = weights.start.shape[1]
    emitted = torch.zeros(n_groups * size, weights.table.n_words, dtype=moves.dtype)
    for group in range(n_groups):
        own = weights.table.members[group]
        own = own[own >= 0]
        here = slice(group * size, (group + 1) * size)
        emitted[here, own] = weights.emissions.rows(torch.arange(n_groups * size))[here, : len(own)]
    return weights.start.flatten().exp(), moves, emitted


def log_likelihood(weights: Any, words: Any, resets: Any) -> Any:
    """Log probability of one text (N,) by the forward algorithm over all states."""
    first, moves, emitted = tables(weights)
    total, alpha = 0.0, first
    for position, word in enumerate(words):
        predicted = first if resets[position] else alpha @ moves
        joint = predicted * emitted[:, word]
        total = total + joint.sum().log()
        alpha = joint / joint.sum()
    return total


def numpy_tables(weights: Any) -> tuple[np.ndarray, ...]:
    return tuple(table.detach().numpy() for table in tables(weights))
