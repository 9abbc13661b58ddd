"""Selection and order of states for display: states that often follow each other are placed side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Smallest expected number of positions of a state that is in use.
LEAST_VISITS = 1.0
#: Largest number of states for which the leaf order of the cluster tree is optimised.
MOST_ORDERED = 120


def used_states(visits: Array) -> Index:
    """Return the indices of the states with at least one expected visit, given expected visits (K,).

    If there are none, as in a model without data, all states are returned.

    Examples
    --------
    >>> used_states(np.array([10.0, 0.2, 3.0]))
    array([0, 2])
    """
    used = np.flatnonzero(visits >= LEAST_VISITS)
    return used if len(used) else np.arange(len(visits))


def flow(transition: Array, occupancy: Array) -> Array:
    """Return the frequency of each transition, as a share of all positions, (K, K)."""
    return occupancy[:, None] * transition


def block_order(transitions: Array) -> Index:
    """Return an order of the states, (K,), in which states that often follow each other are side by side.

    The order comes from hierarchical clustering.

    Parameters
    ----------
    transitions : (K, K)
        Frequency of each transition. Self-transitions and directions are ignored.

    Examples
    --------
    >>> transitions = np.array([[5.0, 0.1, 4.0, 0.1], [0.1, 5.0, 0.1, 4.0], [4.0, 0.1, 5.0, 0.1], [0.1, 4.0, 0.1, 5.0]])
    >>> block_order(transitions)
    array([0, 2, 3, 1])
    """
    n_states = len(transitions)
    if n_states < 3:
        return np.arange(n_states)
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    between = transitions + transitions.T
    np.fill_diagonal(between, 0.0)
    degree = np.sqrt(between.sum(axis=1))
    near = between / np.maximum(degree[:, None] * degree, np.finfo(float).tiny)
    far = 1.0 - near / max(near.max(), np.finfo(float).tiny)
    np.fill_diagonal(far, 0.0)
    distances = squareform(far, checks=False)
    tree = linkage(distances, "average")
    if n_states <= MOST_ORDERED:
        tree = optimal_leaf_ordering(tree, distances)
    order = np.asarray(leaves_list(tree), dtype=np.int64)
    return order if order[0] < order[-1] else order[::-1].copy()
