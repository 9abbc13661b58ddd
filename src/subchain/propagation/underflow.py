# mypy: disable-error-code="no-untyped-def"
"""Whether a filtered pass in scaled probabilities can be believed, or something that matters has fallen below a double.

A state that is 1e-320 times as likely as another is lost to scaled probabilities. Where the states that are left come,
some steps later, to all that the lost one can come to, this does no harm: what was lost is outweighed there. It matters
where they do not (left-right models, mixtures of chains, chains that go round in step): the lost state may turn out to
be the one that explains what comes later. For such states the test keeps a bound on what was lost relative to what was
kept: it grows at each step by the best likelihood among them, divided by the normaliser. A state that has been lost
stays so, even if its computed weight recovers, until weight flows into it from one that was not. Sequences for which
the bound comes near one, or whose normaliser nearly vanishes, are worked out in log space.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from subchain.propagation.layout import Walks

Array = NDArray[np.float64]

#: Moves that are less probable than this do not count as a way to reach a state.
LEAST_MOVE = 1e-100
#: Smallest normaliser, and smallest marginal, that are safely above the end of the doubles.
LEAST_SCALE, LEAST_MARGINAL = 1e-100, 1e-290
#: Logarithm of the smallest marginal, and of the share of lost weight that matters.
LOG_LEAST_BELIEF, LOG_MATTERS = -667.0, -32.0
#: Marginals that may have been lost before, where a chain was cut: any larger one would have been noticed there.
WEAK = 1e-13
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


def covering(transition: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which states (rows) come, after enough steps and from then on, to all that others (columns) have come to by then.

    Where a chain goes round in step this is true of states in step with each other only, although all can be reached
    from all.
    """
    n_states = len(transition)
    ahead = transition >= LEAST_MOVE
    if ahead.all():
        return ahead
    steps = 1
    while steps < n_states**2 and not ahead.all():
        ahead = ahead.astype(np.float32) @ ahead.astype(np.float32) > 0.0
        steps *= 2
    uncovered = (~ahead).astype(np.float32) @ ahead.T.astype(np.float32)
    return np.asarray(uncovered == 0.0)


class Growth(NamedTuple):
    """How a bound on lost weight, relative to what was kept, changes along stretches of chains; logarithms, (lanes,).

    A bound b on entering a stretch is max(b + gain, own) on leaving it, and at most max(b + highest, own_highest)
    within it. Infinite values say that nothing lost matters (−inf) or that the pass cannot be believed at all (+inf).
    """

    gain: Array
    own: Array
    highest: Array
    own_highest: Array

    @classmethod
    def nothing(cls, lanes: int) -> Growth:
        """Stretches that have lost nothing."""
        return cls(*np.full((4, lanes), -np.inf))

    def matters(self) -> NDArray[np.bool_]:
        """Chains, each a stretch of its own, whose scaled pass cannot be believed."""
        return self.own_highest > LOG_MATTERS

    def matters_along(self, follows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Stretches at which the bound comes too near, where those in `follows` continue the one before them."""
        out = np.empty(len(follows), dtype=np.bool_)
        _fold(follows, *self, out)
        return out


def growth(
    likelihood: Array,
    start: Array,
    transition: Array,
    covers: NDArray[np.bool_],
    walks: Walks,
    alpha: Array,
    scale: Array,
    follows: NDArray[np.bool_] | None = None,
) -> Growth:
    """Bound what each chain has lost to underflow.

    Parameters
    ----------
    likelihood : (K, n)
    start : (K, lanes) weights of the first position's states before its observation is seen
    transition : (K, K)
    covers : (K, K) of bool, see `covering`
    walks : layout.Walks
    alpha, scale : (K, n) and (n,), the filtered marginals and their normalisers
    follows : (lanes,) of bool, stretches that continue others: what is weak there may have been lost before
    """
    out = Growth.nothing(len(walks.lengths))
    every_way = bool(covers.all())
    if follows is None:
        follows = np.zeros(len(walks.lengths), dtype=np.bool_)
    if not every_way or not scale.min(initial=np.inf) >= LEAST_SCALE:
        _search(likelihood, start, transition, covers, walks, alpha, scale, every_way, follows, *out)
    return out


@njit(nogil=True, cache=True)
def _fold(follows, gain, own, highest, own_highest, out):
    bound = -np.inf
    for piece in range(follows.shape[0]):
        if not follows[piece]:
            bound = -np.inf
        out[piece] = max(bound + highest[piece], own_highest[piece]) > LOG_MATTERS
        bound = max(bound + gain[piece], own[piece])


@njit(nogil=True, cache=True)
def _search(
    likelihood, start, transition, covers, walks, alpha, scale, every_way, follows, gain, own, highest, own_highest
):  # fmt: skip
    for lane in range(walks.lengths.shape[0]):
        for step in range(walks.lengths[lane]):
            if not scale[walks.columns[lane] + walks.offsets[step]] >= LEAST_SCALE:
                own_highest[lane] = np.inf
                break
        if own_highest[lane] < np.inf and not every_way:
            gain[lane], own[lane], highest[lane], own_highest[lane] = _lost_states(
                likelihood, start, transition, covers, walks, lane, alpha, scale, follows[lane]
            )


@njit(nogil=True, cache=True)
def _lost_states(likelihood, start, transition, covers, walks, lane, alpha, scale, follows):
    """Growth along one chain of the weight that has underflowed, in states that the rest does not cover."""
    n_states = transition.shape[0]
    touched = start[:, lane] > 0.0
    lost, moved = np.zeros(n_states, dtype=np.bool_), np.empty(n_states, dtype=np.bool_)
    healthy = np.empty(n_states, dtype=np.bool_)
    if follows:
        for k in range(n_states):
            lost[k] = touched[k] and start[k, lane] < WEAK
    gain, own, highest, own_highest = 0.0, -np.inf, -np.inf, -np.inf
    for step in range(walks.lengths[lane]):
        column = walks.columns[lane] + walks.offsets[step]
        any_lost = False
        for k in range(n_states):
            lost[k] = lost[k] or (touched[k] and alpha[k, column] < LEAST_MARGINAL)
            any_lost = any_lost or lost[k]
            healthy[k] = alpha[k, column] >= LEAST_MARGINAL and not lost[k]
        best = 0.0
        if any_lost:
            for k in range(n_states):
                if lost[k] and likelihood[k, column] > best:
                    out_of_reach = True
                    for j in range(n_states):
                        if healthy[j] and covers[j, k]:
                            out_of_reach = False
                            break
                    if out_of_reach:
                        best = likelihood[k, column]
        if best > 0.0:
            change = np.log(best) - np.log(scale[column])
            gain, own = gain + change, max(own + change, LOG_LEAST_BELIEF)
            highest, own_highest = max(highest, gain), max(own_highest, own)
        else:
            gain = own = -np.inf
        for k in range(n_states):
            touched[k] = moved[k] = False
            refreshed = False
            for j in range(n_states):
                if transition[j, k] > 0.0:
                    if alpha[j, column] >= LEAST_MARGINAL:
                        touched[k] = True
                    if lost[j]:
                        moved[k] = True
                    if healthy[j] and transition[j, k] >= LEAST_MOVE:
                        refreshed = True
            moved[k] = moved[k] and not refreshed
        lost[:] = moved
    return gain, own, highest, own_highest
