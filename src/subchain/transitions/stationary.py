"""Stationary distribution of a transition operator: of a matrix, or of a band or factors without the matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.linking import linked
from subchain.numerics.stationary import put_back, stationary_distribution
from subchain.transitions.operators import Banded, Factored, TransitionOperator
from subchain.transitions.sums import MOST_DENSE


def stationary_of(moves: TransitionOperator) -> NDArray[np.float64]:
    """Stationary distribution (K,) of a stochastic operator; of a band in O(K · width²), of factors in O(K · f²).

    A chain with parts that never meet has several stationary distributions. Up to a thousand states the choice is that
    of the matrix; beyond, all sets of states that are never left count alike.

    Examples
    --------
    >>> from subchain.transitions.layout import Layout
    >>> moves = Banded(Layout(np.array([0, 0]), 2), np.array([[0.9, 0.1], [0.3, 0.7]]))
    >>> stationary_of(moves).round(6)
    array([0.75, 0.25])
    """
    if isinstance(moves, Factored):
        left, right = moves.factors
        return np.asarray(stationary_distribution(right @ left) @ right)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not isinstance(moves, Banded):
        return stationary_distribution(moves.dense())
    rows = np.repeat(np.arange(moves.n_states), moves.layout.width)
    graph = coo_array((moves.weights.ravel(), (rows, moves.layout.columns.ravel())), shape=(moves.n_states,) * 2)
    found = _of_class(graph, np.arange(moves.n_states))
    if found is not None:
        return found
    if moves.n_states <= MOST_DENSE:
        return stationary_distribution(moves.dense())
    graph.eliminate_zeros()
    n_classes, member = connected_components(graph, directed=True, connection="strong")
    from_class, to_class = member[graph.coords[0]], member[graph.coords[1]]
    closed = np.setdiff1d(np.arange(n_classes), from_class[from_class != to_class])
    total = np.zeros(moves.n_states)
    for number in closed:
        states = np.flatnonzero(member == number)
        of_class = _of_class(graph, states)
        assert of_class is not None, "states that all lead to each other have a stationary distribution"
        total[states] = of_class / len(closed)
    return total


def _of_class(graph: Any, states: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """Stationary distribution over some states (n,) that are never left; None if there are parts that never meet.

    States are taken in the order 0, n − 1, 1, n − 2, …, if the band is on a circle: in that order it is a plain one.
    """
    n_all, n_states = graph.shape[0], len(states)
    rows, columns = graph.coords
    order = states
    if (np.abs(rows - columns) > n_all // 2).any():
        order = np.empty_like(states)
        order[::2], order[1::2] = states[: -(-n_states // 2)], states[::-1][: n_states // 2]
    place = np.full(n_all, -1)
    place[order] = np.arange(n_states)
    inside = (place[rows] >= 0) & (place[columns] >= 0) & (graph.data > 0.0)
    rows, columns = place[rows[inside]], place[columns[inside]]
    below, above = int((rows - columns).max(initial=0)), int((columns - rows).max(initial=0))
    table = np.zeros((n_states, below + above + 1))
    table[rows, columns - rows + below] = graph.data[inside]
    found = _eliminate(table, below, above)
    if not found.any():
        return None
    out = np.empty(n_states)
    out[np.searchsorted(states, order)] = found / found.sum()
    return out


@linked()
def _eliminate(table, below, above):  # type: ignore[no-untyped-def]
    """Weights of the states by elimination, as in `reduce_states`, within a band; zeros if parts never meet.

    `table[j, k − j + below]` is the weight of j → k. What is eliminated adds to no entry outside the band.
    """
    n_states = table.shape[0]
    out = np.zeros(n_states)
    for state in range(n_states - 1, 0, -1):
        leaving = 0.0
        for k in range(max(state - below, 0), state):
            leaving += table[state, k - state + below]
        if not leaving > 0.0:
            return out
        table[state, below] = leaving
        for k in range(max(state - below, 0), state):
            table[state, k - state + below] /= leaving
        for j in range(max(state - above, 0), state):
            for k in range(max(state - below, 0), state):
                table[j, k - j + below] += table[j, state - j + below] * table[state, k - state + below]
    out[0] = 1.0
    for state in range(1, n_states):
        entering = 0.0
        for j in range(max(state - above, 0), state):
            entering += out[j] * table[j, state - j + below]
        put_back(out, state, entering, table[state, below])
    return out
