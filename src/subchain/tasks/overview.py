"""Which states are worth showing, and in which order: blocks of states that follow each other stand together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: A state that holds less than one position is not in use.
LEAST_VISITS = 1.0
#: So many states are put into the best order of all that a tree of clusters allows; beyond, any such order will do.
MOST_ORDERED = 120


def used_states(visits: Array) -> Index:
    """Numbers of the states that hold at least one position, by their expected numbers of visits, (K,).

    Without any visits all are in use: nothing speaks against them.

    Examples
    --------
    >>> used_states(np.array([10.0, 0.2, 3.0]))
    array([0, 2])
    """
    used = np.flatnonzero(visits >= LEAST_VISITS)
    return used if len(used) else np.arange(len(visits))


def flow(transition: Array, occupancy: Array) -> Array:
    """How often each move happens, as a share of all positions, (K, K)."""
    return occupancy[:, None] * transition


def block_order(moves: Array) -> Index:
    """An order in which states that follow each other often stand side by side, (K,).

    Parameters
    ----------
    moves : (K, K)
        How often each move happens. Staying does not count, nor does the direction.

    Examples
    --------
    >>> moves = np.array([[5.0, 0.1, 4.0, 0.1], [0.1, 5.0, 0.1, 4.0], [4.0, 0.1, 5.0, 0.1], [0.1, 4.0, 0.1, 5.0]])
    >>> block_order(moves)
    array([0, 2, 3, 1])
    """
    n_states = len(moves)
    if n_states < 3:
        return np.arange(n_states)
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    between = moves + moves.T
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
