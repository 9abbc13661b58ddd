"""Stationary distribution of a transition matrix, by the elimination of Grassmann, Taksar & Heyman (1985)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.linking import linked

#: A state that weighs so many times more than those before it becomes the unit of weight.
LARGE = 1e200


@linked()
def reduce_states(matrix):  # type: ignore[no-untyped-def]
    """Eliminate one state after the other from a transition matrix, in place.

    The transitions through an eliminated state are added to those between the remaining states. Nothing is subtracted,
    so nothing cancels, and no entry exceeds one, however rarely a state is left. The diagonal then has the probability
    of leaving each eliminated state. Returns False if one cannot reach the remaining states: the chain is reducible.
    """
    for state in range(matrix.shape[0] - 1, 0, -1):
        leaving = 0.0
        for k in range(state):
            leaving += matrix[state, k]
        if not leaving > 0.0:
            return False
        matrix[state, state] = leaving
        for k in range(state):
            matrix[state, k] /= leaving
        for j in range(state):
            for k in range(state):
                matrix[j, k] += matrix[j, state] * matrix[state, k]
    return True


@linked()
def put_back(out, state, entering, leaving):  # type: ignore[no-untyped-def]
    """Write the weight of an eliminated state beside those of the states before it, which it may dwarf."""
    if entering > LARGE * leaving:
        for k in range(state):
            out[k] *= leaving / entering
        out[state] = 1.0
    else:
        out[state] = entering / leaving


@linked()
def reduced_distribution(matrix):  # type: ignore[no-untyped-def]
    """Return the stationary probabilities, (K,), by back substitution in the result of `reduce_states`."""
    out = np.empty(matrix.shape[0])
    out[0] = 1.0
    for state in range(1, matrix.shape[0]):
        entering = 0.0
        for j in range(state):
            entering += out[j] * matrix[j, state]
        put_back(out, state, entering, matrix[state, state])
    return out / out.sum()


def stationary_distribution(transition: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the stationary distribution of a stochastic matrix, by elimination of one state after the other.

    Unlike power iteration, elimination also works for nearly periodic chains. A reducible chain has several stationary
    distributions; one of them is returned.

    Parameters
    ----------
    transition : (K, K), rows sum to one

    Returns
    -------
    (K,) probabilities

    Examples
    --------
    >>> stationary_distribution(np.array([[0.9, 0.1], [0.3, 0.7]])).round(6)
    array([0.75, 0.25])
    """
    found = np.array(transition, dtype=np.float64)
    if reduce_states(found):
        return reduced_distribution(found)
    n_states = len(transition)
    system = np.vstack((transition.T - np.eye(n_states), np.ones(n_states)))
    target = np.append(np.zeros(n_states), 1.0)
    solution = np.linalg.lstsq(system, target, rcond=None)[0]
    positive: NDArray[np.float64] = np.maximum(solution, 0.0)
    return positive / positive.sum()
