"""A plain HMM with the distributions of a neural one."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from subchain.data.vocabulary import Vocabulary
from subchain.emissions import BlockSparse, Categorical
from subchain.emissions.base import Parameters
from subchain.errors import InputError
from subchain.models.hmm import HMM
from subchain.neural.parameters import Weights
from subchain.neural.transitions import LowRankWeights, SoftmaxWeights
from subchain.transitions import LowRank
from subchain.transitions.operators import Factored

#: Most bytes of the tables of a plain model.
MOST_BYTES = 1 << 32


@torch.no_grad()
def plain_hmm(weights: Weights, groups: NDArray[np.int64], vocabulary: Vocabulary | None) -> HMM:
    """Return the model with the given weights of all states."""
    n_states, transition = weights.start.numel(), weights.transition
    n_columns = 2 * transition.left.shape[2] if isinstance(transition, LowRankWeights) else n_states
    needed = 8 * n_states * (len(groups) + n_columns)
    if needed > MOST_BYTES:
        raise InputError(
            f"a plain HMM of {n_states} states and {len(groups)} words needs tables of {needed / 2**30:.1f} GiB; the "
            f"most is {MOST_BYTES / 2**30:.0f} GiB."
        )
    every = torch.arange(n_states, device=weights.start.device)
    chain = _factors(transition) if isinstance(transition, LowRankWeights) else _matrix(transition, every)
    model = HMM.from_parameters(
        _normalised(_plain(weights.start.flatten().exp())), chain, _emissions(weights, groups, every)
    )
    if vocabulary is not None:
        model.vocabularies_ = (vocabulary,)
    return model


def _matrix(transition: SoftmaxWeights, every: torch.Tensor) -> NDArray[np.float64]:
    """Return the transition matrix, (K, K)."""
    return _normalised(np.concatenate([_plain(transition.rows(part)) for part in every.split(1024)]))


def _factors(transition: LowRankWeights) -> Factored:
    """Return factors whose rows sum to one: what the features of targets sum to goes to those of sources."""
    left, right = _plain(transition.left.flatten(0, 1)), _plain(transition.right.flatten(0, 1)).T
    return LowRank.from_parameters(_normalised(left * right.sum(axis=1)), _normalised(right))


def _emissions(weights: Weights, groups: NDArray[np.int64], every: torch.Tensor) -> Parameters:
    """Return the emissions of all states."""
    rows = _plain(weights.emissions.rows(every))
    n_states, n_words = len(rows), len(groups)
    table = np.zeros((n_states, n_words))
    members = weights.table.members.cpu().numpy()
    for state in range(n_states):
        own = members[state // weights.size]
        table[state, own[own >= 0]] = rows[state, own >= 0]
    table = _normalised(table)
    if weights.table.n_groups == 1:
        return Categorical.from_parameters(table)
    return BlockSparse.from_parameters(table, groups)


def _plain(table: torch.Tensor) -> NDArray[np.float64]:
    return table.double().cpu().numpy()


def _normalised(table: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(table / table.sum(axis=-1, keepdims=True))
