# mypy: disable-error-code="no-untyped-def"
"""Whether a filtered pass in scaled probabilities can be believed, or something that matters has fallen below a double.

A state that is 1e-320 times as likely as another is lost to scaled probabilities. Where every state can move to every
other this does no harm: what was lost is outweighed at the next step, whatever is observed then. Where moves are
forbidden, a lost state may be the only one that explains what comes later, so every state that can be reached must keep
a weight that a double can hold. Sequences that fail the test are worked out in logarithms.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

#: Transition matrices without a smaller entry forget what underflows.
LEAST_MOVE = 1e-100
#: Smallest normaliser and smallest joint weight of state and observation that are safely above the end of the doubles.
LEAST_SCALE, LEAST_WEIGHT = 1e-190, 1e-290
#: Logarithm of the smallest double above zero.
LEAST_LOG = -745.0


def exponentiate(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exponentials that are zero for −inf alone: what is possible stays so, however improbable."""
    return np.exp(np.where(logs > -np.inf, np.maximum(logs, LEAST_LOG), -np.inf))


@njit(nogil=True, cache=True)
def doubtful(likelihood, start, transition, walks, alpha, scale, out):
    """Mark the chains whose scaled pass cannot be believed.

    Parameters
    ----------
    likelihood : (K, n) zero only where an observation is impossible
    start : (K, lanes) weights of the first position's states before its observation is seen
    transition : (K, K)
    walks : layout.Walks
    alpha, scale : (K, n) and (n,), the filtered beliefs and their normalisers
    out : (lanes,) output, booleans
    """
    forgets = transition.min() >= LEAST_MOVE
    for lane in range(walks.lengths.shape[0]):
        out[lane] = False
        for step in range(walks.lengths[lane]):
            if not scale[walks.columns[lane] + walks.offsets[step]] >= LEAST_SCALE:
                out[lane] = True
                break
        if not out[lane] and not forgets:
            out[lane] = _loses_a_state(likelihood, start, transition, walks, lane, alpha, scale)


@njit(nogil=True, cache=True)
def _loses_a_state(likelihood, start, transition, walks, lane, alpha, scale):
    """Whether a state that can be reached has a weight too small for a double."""
    n_states = transition.shape[0]
    reached, before = start[:, lane] > 0.0, np.empty(n_states, dtype=np.bool_)
    for step in range(walks.lengths[lane]):
        column = walks.columns[lane] + walks.offsets[step]
        if step > 0:
            before[:] = reached
            for k in range(n_states):
                reached[k] = False
                for j in range(n_states):
                    if before[j] and transition[j, k] > 0.0:
                        reached[k] = True
                        break
        for k in range(n_states):
            reached[k] = reached[k] and likelihood[k, column] > 0.0
            if reached[k] and alpha[k, column] * scale[column] < LEAST_WEIGHT:
                return True
    return False
