# mypy: disable-error-code="no-untyped-def"
"""Whether a filtered pass in scaled probabilities can be believed, or something that matters has fallen below a double.

A state that is 1e-320 times as likely as another is lost to scaled probabilities. Where every state can be reached
from every other this does no harm: what was lost is outweighed as soon as its states are reached again. It matters
where the lost states cannot be reached from those that are left (left-right models, mixtures of chains): they may
turn out to be the ones that explain what comes later. For such states the test keeps a bound on what was lost
relative to what was kept: it grows at each step by the best likelihood among them, divided by the normaliser.
Sequences for which the bound comes near one, or whose normaliser nearly vanishes, are worked out in logarithms.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from subchain.propagation.layout import Walks

Array = NDArray[np.float64]

#: Moves that are less probable than this do not count as a way to reach a state.
LEAST_MOVE = 1e-100
#: Smallest normaliser, and smallest belief, that are safely above the end of the doubles.
LEAST_SCALE, LEAST_BELIEF = 1e-100, 1e-290
#: Logarithm of the smallest belief, and of the share of lost weight that matters.
LOG_LEAST_BELIEF, LOG_MATTERS = -667.0, -32.0
#: Logarithm of the smallest double above zero.
LEAST_LOG = -745.0


def exponentiate(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exponentials that are zero for −inf alone: what is possible stays so, however improbable."""
    return np.exp(np.where(logs > -np.inf, np.maximum(logs, LEAST_LOG), -np.inf))


def reachable(transition: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which states (columns) can be reached from which (rows), in any number of steps, by moves that count."""
    reach = (transition >= LEAST_MOVE) | np.eye(len(transition), dtype=np.bool_)
    while not reach.all():
        further = reach.astype(np.float32) @ reach.astype(np.float32) > 0.0
        if (further == reach).all():
            break
        reach = further
    return reach


def doubtful(
    likelihood: Array,
    start: Array,
    transition: Array,
    reach: NDArray[np.bool_],
    walks: Walks,
    alpha: Array,
    scale: Array,
) -> NDArray[np.bool_]:
    """Mark the chains whose scaled pass cannot be believed.

    Parameters
    ----------
    likelihood : (K, n)
    start : (K, lanes) weights of the first position's states before its observation is seen
    transition : (K, K)
    reach : (K, K) of bool, see `reachable`
    walks : layout.Walks
    alpha, scale : (K, n) and (n,), the filtered beliefs and their normalisers

    Returns
    -------
    (lanes,) of bool
    """
    out = np.zeros(len(walks.lengths), dtype=np.bool_)
    every_way = bool(reach.all())
    if not every_way or not scale.min(initial=np.inf) >= LEAST_SCALE:
        _search(likelihood, start, transition, reach, walks, alpha, scale, every_way, out)
    return out


@njit(nogil=True, cache=True)
def _search(likelihood, start, transition, reach, walks, alpha, scale, every_way, out):
    for lane in range(walks.lengths.shape[0]):
        for step in range(walks.lengths[lane]):
            if not scale[walks.columns[lane] + walks.offsets[step]] >= LEAST_SCALE:
                out[lane] = True
                break
        if not out[lane] and not every_way:
            out[lane] = _lost_states_matter(likelihood, start, transition, reach, walks, lane, alpha, scale)


@njit(nogil=True, cache=True)
def _lost_states_matter(likelihood, start, transition, reach, walks, lane, alpha, scale):
    """Whether weight that has underflowed could, in states that the rest cannot reach, outweigh what is left."""
    n_states = transition.shape[0]
    touched = start[:, lane] > 0.0
    lost, moved = np.zeros(n_states, dtype=np.bool_), np.empty(n_states, dtype=np.bool_)
    bound = -np.inf
    for step in range(walks.lengths[lane]):
        column = walks.columns[lane] + walks.offsets[step]
        any_lost = False
        for k in range(n_states):
            lost[k] = lost[k] or (touched[k] and alpha[k, column] < LEAST_BELIEF)
            any_lost = any_lost or lost[k]
        best = -1.0
        if any_lost:
            for k in range(n_states):
                if lost[k]:
                    out_of_reach = True
                    for j in range(n_states):
                        if alpha[j, column] >= LEAST_BELIEF and reach[j, k]:
                            out_of_reach = False
                            break
                    if out_of_reach:
                        best = max(best, likelihood[k, column])
        if best >= 0.0:
            gain = np.log(best) - np.log(scale[column]) if best > 0.0 else -np.inf
            bound = max(bound + gain, LOG_LEAST_BELIEF)
            if bound > LOG_MATTERS:
                return True
        else:
            bound = -np.inf
        for k in range(n_states):
            touched[k] = moved[k] = False
            for j in range(n_states):
                if transition[j, k] > 0.0:
                    if alpha[j, column] >= LEAST_BELIEF:
                        touched[k] = True
                    if lost[j]:
                        moved[k] = True
        lost[:] = moved
    return False
