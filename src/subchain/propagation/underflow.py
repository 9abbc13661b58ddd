# mypy: disable-error-code="no-untyped-def"
"""Detection of harmful underflow in forward passes with scaled probabilities.

A state whose filtered probability is below about 1e-308 underflows to zero and is lost. That is harmless if the
remaining states reach, some steps later, every state that the lost one reaches: its weight is negligible there. It is
harmful otherwise (left-right models, mixtures of chains, periodic chains), because later observations may be possible
from the lost state only. For such states the test maintains an upper bound on the lost weight relative to the kept
weight: at each step the bound is multiplied by the largest likelihood of a lost state and divided by the normaliser. A
lost state remains lost, even if its computed weight grows again, until it receives weight from a state that is not
lost. Sequences whose bound approaches one, or whose normaliser nearly underflows, are recomputed in log space.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.compilation import compiled
from subchain.propagation.band import Band, Spans, wrapped
from subchain.propagation.compiled import by_kind
from subchain.propagation.layout import Walks

Array = NDArray[np.float64]

#: Transitions with a smaller probability do not count as possible when reachability is computed.
LEAST_TRANSITION = 1e-100
#: Smallest normaliser and smallest marginal that are safe from underflow.
LEAST_SCALE, LEAST_MARGINAL = 1e-100, 1e-290
#: Log of the smallest marginal, and log of the relative lost weight that is harmful.
LOG_LEAST_MARGINAL, LOG_MATTERS = -667.0, -32.0
#: Where a chain continues a previous piece, states with smaller weights may have been lost in that piece; the loss of a
#: larger weight would have been detected there.
WEAK = 1e-13
#: Log of the smallest positive double.
LEAST_LOG = -745.0


def exponentiate(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return exponentials that are zero only for −inf: smaller numbers give the smallest positive double."""
    return np.exp(np.where(logs > -np.inf, np.maximum(logs, LEAST_LOG), -np.inf))


def covering(transition: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return a (K, K) mask: `out[i, j]` is true if i eventually reaches every state that j reaches in as many steps.

    In a periodic chain this holds only for states in the same phase, although all states are reachable from all.
    """
    n_states = len(transition)
    ahead = transition >= LEAST_TRANSITION
    if ahead.all():
        return ahead
    steps = 1
    while steps < n_states**2 and not ahead.all():
        ahead = ahead.astype(np.float32) @ ahead.astype(np.float32) > 0.0
        steps *= 2
    uncovered = (~ahead).astype(np.float32) @ ahead.T.astype(np.float32)
    return np.asarray(uncovered == 0.0)


def reached(transition: NDArray[np.float64], possible: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The states (K,) that can be reached, in any number of steps, from those that are marked, these included."""
    leads = transition >= LEAST_TRANSITION
    while True:
        further = possible | leads[possible].any(axis=0)
        if (further == possible).all():
            return possible
        possible = further


class Growth(NamedTuple):
    """Change of the log bound on the relative lost weight along each piece of a chain; each field is (lanes,).

    If the log bound is b at the beginning of a piece, it is max(b + gain, own) at its end and at most
    max(b + highest, own_highest) inside. −inf means that no harmful weight was lost, +inf that the pass is unreliable.
    """

    gain: Array
    own: Array
    highest: Array
    own_highest: Array

    @classmethod
    def nothing(cls, lanes: int) -> Growth:
        """Return the change along pieces that lose nothing."""
        return cls(*np.full((4, lanes), -np.inf))

    def matters(self) -> NDArray[np.bool_]:
        """Return which chains, each a single piece, have an unreliable scaled pass, (lanes,)."""
        return self.own_highest > LOG_MATTERS

    def matters_along(self, follows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the pieces at which the bound becomes too large, (pieces,); `follows` marks continued chains."""
        out = np.empty(len(follows), dtype=np.bool_)
        _fold(follows, *self, out)
        return out


def growth(
    likelihood: Array,
    start: Array,
    transition: Array | Band,
    covers: NDArray[np.bool_] | Spans,
    walks: Walks,
    alpha: Array,
    scale: Array,
    follows: NDArray[np.bool_] | None = None,
) -> Growth:
    """Bound the weight that each chain has lost to underflow.

    Parameters
    ----------
    likelihood : (K, n)
    start : (K, lanes) predicted weights of the first position's states, before its observation
    transition : (K, K), or the band of its transpose
    covers : (K, K) of bool, see `covering`; for a band its `spans`
    walks : layout.Walks
    alpha, scale : (K, n) and (n,), the filtered marginals and their normalisers
    follows : (lanes,) of bool, pieces that continue others: states with weights below `WEAK` may be lost already
    """
    out = Growth.nothing(len(walks.lengths))
    all_covered = covers.all_cover_all if isinstance(covers, Spans) else bool(covers.all())
    if follows is None:
        follows = np.zeros(len(walks.lengths), dtype=np.bool_)
    if not all_covered or not scale.min(initial=np.inf) >= LEAST_SCALE:
        _search(likelihood, start, transition, covers, walks, alpha, scale, all_covered, follows, *out)
    return out


@compiled()
def _fold(follows, gain, own, highest, own_highest, out):
    """Carry the bound along the pieces and write where it becomes too large into `out` (pieces,)."""
    bound = -np.inf
    for piece in range(follows.shape[0]):
        if not follows[piece]:
            bound = -np.inf
        out[piece] = max(bound + highest[piece], own_highest[piece]) > LOG_MATTERS
        bound = max(bound + gain[piece], own[piece])


@compiled()
def _search(
    likelihood, start, transition, covers, walks, alpha, scale, all_covered, follows, gain, own, highest, own_highest
):  # fmt: skip
    """Fill the fields of `Growth` for every chain; own_highest is +inf where a normaliser underflows."""
    for lane in range(walks.lengths.shape[0]):
        for step in range(walks.lengths[lane]):
            if not scale[walks.columns[lane] + walks.offsets[step]] >= LEAST_SCALE:
                own_highest[lane] = np.inf
                break
        if own_highest[lane] < np.inf and not all_covered:
            gain[lane], own[lane], highest[lane], own_highest[lane] = _lost_states(
                likelihood, start, transition, covers, walks, lane, alpha, scale, follows[lane]
            )


def _dense_best_uncovered(covers, lost, healthy, likelihood, column):
    """The largest likelihood among lost states that no healthy state covers; zero if there is none."""
    n_states, best = likelihood.shape[0], 0.0
    for k in range(n_states):
        if lost[k] and likelihood[k, column] > best:
            out_of_reach = True
            for j in range(n_states):
                if healthy[j] and covers[j, k]:
                    out_of_reach = False
                    break
            if out_of_reach:
                best = likelihood[k, column]
    return best


def _band_best_uncovered(covers, lost, healthy, likelihood, column):
    """The same by intervals: of all healthy states that reach as far down, the one that reaches up furthest decides."""
    n_states, best = likelihood.shape[0], 0.0
    furthest = np.full(n_states + 1, -1)
    for j in range(n_states):
        if healthy[j] and covers.low[j] <= covers.high[j]:
            furthest[covers.low[j]] = max(furthest[covers.low[j]], covers.high[j])
    for low in range(1, n_states):
        furthest[low] = max(furthest[low], furthest[low - 1])
    for k in range(n_states):
        if lost[k] and likelihood[k, column] > best and furthest[covers.least[k]] < covers.most[k]:
            best = likelihood[k, column]
    return best


@compiled()
def _step(weight, alpha, lost, healthy):
    """What one transition tells of the state that it leads to: whether it is touched, lost, and refreshed."""
    if not weight > 0.0:
        return False, False, False
    return alpha >= LEAST_MARGINAL, lost, healthy and weight >= LEAST_TRANSITION


def _dense_carry(transition, k, alpha, column, lost, healthy):
    """Whether state k is touched by a state that has not underflowed, led to by a lost one, led to by a healthy one."""
    touched = carried = refreshed = False
    for j in range(alpha.shape[0]):
        here, gone, fresh = _step(transition[j, k], alpha[j, column], lost[j], healthy[j])
        touched, carried, refreshed = touched or here, carried or gone, refreshed or fresh
    return touched, carried and not refreshed


def _band_carry(transition, k, alpha, column, lost, healthy):
    """The same for the band of the transposed matrix."""
    touched = carried = refreshed = False
    for c in range(transition.weights.shape[1]):
        j = wrapped(transition.first[k] + c, alpha.shape[0])
        here, gone, fresh = _step(transition.weights[k, c], alpha[j, column], lost[j], healthy[j])
        touched, carried, refreshed = touched or here, carried or gone, refreshed or fresh
    return touched, carried and not refreshed


_best_uncovered = by_kind(_dense_best_uncovered, _band_best_uncovered, reorders=False)
_carry = by_kind(_dense_carry, _band_carry, reorders=False)


@compiled()
def _lost_states(likelihood, start, transition, covers, walks, lane, alpha, scale, follows):
    """Return the fields of `Growth` for one chain: the bound on lost weight of states that no other state covers."""
    n_states = likelihood.shape[0]
    touched = start[:, lane] > 0.0
    lost, carried = np.zeros(n_states, dtype=np.bool_), np.empty(n_states, dtype=np.bool_)
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
        best = _best_uncovered(covers, lost, healthy, likelihood, column) if any_lost else 0.0
        if best > 0.0:
            change = np.log(best) - np.log(scale[column])
            gain, own = gain + change, max(own + change, LOG_LEAST_MARGINAL)
            highest, own_highest = max(highest, gain), max(own_highest, own)
        else:
            gain = own = -np.inf
        for k in range(n_states):
            touched[k], carried[k] = _carry(transition, k, alpha, column, lost, healthy)
        lost[:] = carried
    return gain, own, highest, own_highest
