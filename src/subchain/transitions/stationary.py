"""The distribution that a transition matrix leaves as it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def stationary_distribution(transition: NDArray[np.float64]) -> NDArray[np.float64]:
    """Stationary distribution of a stochastic matrix, by a linear solve.

    Power iteration never ends on nearly periodic chains; the solve does not mind. A reducible chain has several
    stationary distributions; one of them is returned.

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
    n_states = len(transition)
    system = np.vstack((transition.T - np.eye(n_states), np.ones(n_states)))
    target = np.append(np.zeros(n_states), 1.0)
    solution = np.linalg.lstsq(system, target, rcond=None)[0]
    positive: NDArray[np.float64] = np.maximum(solution, 0.0)
    return positive / positive.sum()
