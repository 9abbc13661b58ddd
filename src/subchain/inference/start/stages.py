"""Starts for chains that never return to a state: sequences are cut into equal parts, one for each state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.data.sequences import Sequences
from subchain.transitions.operators import TransitionOperator

Index = NDArray[np.int64]


def order_of_states(operator: TransitionOperator) -> Index | None:
    """Return the states of a chain in an order that every path follows; None if a path can return to a state it left.

    Examples
    --------
    >>> from subchain.transitions.operators import Dense
    >>> order_of_states(Dense(np.array([[0.5, 0.0, 0.5], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])))
    array([1, 0, 2])
    >>> order_of_states(Dense(np.full((2, 2), 0.5))) is None
    True
    """
    n_states = operator.n_states
    own = operator.diagonal()
    left, order = np.ones((n_states, 1)), list[int]()
    while len(order) < n_states:
        entered = (operator.apply(left) - own[:, None] * left)[:, 0] > 1e-12
        begins = np.flatnonzero((left[:, 0] > 0.0) & ~entered)
        if not len(begins):
            return None
        order += begins.tolist()
        left[begins] = 0.0
    return np.array(order)


def equal_parts(data: Sequences, index: Index, order: Index) -> Index:
    """Return the state of each position of `index` if every sequence spends as much time in each state of `order`."""
    sequence = np.searchsorted(data.offsets, index, side="right") - 1
    along = (index - data.offsets[sequence]) / np.maximum(data.lengths[sequence], 1)
    return order[(along * len(order)).astype(np.int64)]
