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

#: Largest number of states of a plain model: its transition matrix has 2 GiB.
MOST_STATES = 1 << 14


@torch.no_grad()
def plain_hmm(weights: Weights, groups: NDArray[np.int64], vocabulary: Vocabulary | None) -> HMM:
    """Return the model with the given weights of all states."""
    n_states = weights.start.numel()
    if n_states > MOST_STATES:
        raise InputError(
            f"a plain HMM of {n_states} states needs a transition matrix of {n_states**2 * 8 / 2**30:.1f} GiB; the "
            f"most is {MOST_STATES} states."
        )
    every = torch.arange(n_states, device=weights.start.device)
    transition = np.concatenate([_plain(weights.transition.rows(part)) for part in every.split(1024)])
    model = HMM.from_parameters(
        _normalised(_plain(weights.start.flatten().exp())), _normalised(transition), _emissions(weights, groups, every)
    )
    if vocabulary is not None:
        model.vocabularies_ = (vocabulary,)
    return model


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
