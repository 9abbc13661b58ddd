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

#: Transition matrices without a smaller entry forget what underflows.
LEAST_MOVE = 1e-100
#: Smallest normaliser and smallest joint weight of state and observation that are safely above the end of the doubles.
LEAST_SCALE, LEAST_WEIGHT = 1e-190, 1e-300


@njit(nogil=True, cache=True)
def doubtful(log_likelihood, initial, transition, starts, stops, alpha, scale, out):
    """Mark the sequences whose scaled pass cannot be believed.

    Parameters
    ----------
    log_likelihood : (n, K)
    initial : (K,)
    transition : (K, K)
    starts, stops : (n_sequences,) first position of each sequence, and the one after its last
    alpha, scale : as written by `chain.forward`
    out : (n_sequences,) output, booleans
    """
    forgets = transition.min() >= LEAST_MOVE
    for sequence in range(starts.shape[0]):
        start, stop = starts[sequence], stops[sequence]
        out[sequence] = False
        for position in range(start, stop):
            if not scale[position] >= LEAST_SCALE:
                out[sequence] = True
                break
        if not out[sequence] and not forgets:
            out[sequence] = _loses_a_state(log_likelihood, initial, transition, start, stop, alpha, scale)


@njit(nogil=True, cache=True)
def _loses_a_state(log_likelihood, initial, transition, start, stop, alpha, scale):
    """Whether a state that can be reached has a weight too small for a double."""
    n_states = initial.shape[0]
    reached, before = initial > 0.0, np.empty(n_states, dtype=np.bool_)
    for position in range(start, stop):
        if position > start:
            before[:] = reached
            for k in range(n_states):
                reached[k] = False
                for j in range(n_states):
                    if before[j] and transition[j, k] > 0.0:
                        reached[k] = True
                        break
        for k in range(n_states):
            reached[k] = reached[k] and log_likelihood[position, k] > -np.inf
            if reached[k] and alpha[position, k] * scale[position] < LEAST_WEIGHT:
                return True
    return False
