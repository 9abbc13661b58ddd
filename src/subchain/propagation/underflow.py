"""Detection of harmful underflow in forward passes with scaled probabilities.

A state whose filtered probability is below about 1e-308 underflows to zero and is lost. That does no harm if its weight
stays negligible, and all the harm if later observations are possible, or likely, from the lost state alone: in
left-right models, in mixtures of chains, in periodic chains, and wherever the way from the other states leads through
states that are far less likely. Where every transition has a probability of at least `LEAST_TRANSITION`, the kept
states make up for a lost one at the next step, and nothing has to be watched.

Elsewhere an upper bound on the lost weight of each state, relative to all kept weight, is carried along beside the
forward message: by the same recursion, with `LEAST_MARGINAL` added wherever the message, before it is divided by its
normaliser, falls below that. A bound that is negligible beside the kept weight of its own state is dropped, since both
have the same future. Sequences whose lost weight may exceed `MATTERS`, or whose normaliser nearly underflows, are
recomputed in log space.

Pieces of a cut chain are run in any order, so that what was lost before a piece is not known there. Its bound is a
multiple, which is found by a second recursion: it begins with one for every state of little weight.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.linking import called, linked
from subchain.propagation.band import Band, wrapped
from subchain.propagation.compiled import by_kind
from subchain.propagation.layout import Walks

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Transitions with a smaller probability do not make up for what is lost.
LEAST_TRANSITION = 1e-100
#: Smallest normaliser and smallest marginal that are safe from underflow.
LEAST_SCALE, LEAST_MARGINAL = 1e-100, 1e-290
#: Relative lost weight that is harmful, and its logarithm.
MATTERS = 1e-20
LOG_MATTERS = float(np.log(MATTERS))
#: Share of a state's weight that may be neglected.
NEGLIGIBLE = 1e-15
#: Range of the second recursion: smaller multiples count as this; where they are larger, the bound grows beyond limits.
LEAST_MULTIPLE, MOST_MULTIPLE, BEYOND = 1e-250, 1e250, 1e6
#: Log of the smallest positive double.
LEAST_LOG = -745.0
#: Logarithm of the largest ratio of the weights of two possible states that a message can have.
LARGEST_RATIO = 700.0
#: Bits of a word.
WORD = 64
#: What `steps_of` returns where nothing has to be watched.
UNWATCHED: Flags = np.empty((0, 0), dtype=np.bool_)

small = linked()


def exponentiate(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return exponentials that are zero only for −inf: smaller numbers give the smallest positive double."""
    return np.exp(np.where(logs > -np.inf, np.maximum(logs, LEAST_LOG), -np.inf))


def limited(logs: Array) -> Array:
    """Return exp(logs) (K,), of which none is smaller than e^-700 times the largest but for logs of −inf."""
    top = logs.max()
    if top == -np.inf:
        return np.zeros_like(logs)
    return np.exp(np.where(logs > -np.inf, np.maximum(logs, top - LARGEST_RATIO), -np.inf))


def steps_of(transition: NDArray[Any]) -> Flags:
    """Return which transitions of a matrix (K, K) are possible; (0, 0) where nothing has to be watched."""
    if bool((transition >= LEAST_TRANSITION).all()):
        return UNWATCHED
    return np.asarray(transition > 0.0)


def reached(transition: Array, possible: Flags) -> Flags:
    """Return the states (K,) that can be reached, in any number of steps, from those in `possible`, these included."""
    leads = transition > 0.0
    while True:
        further = possible | leads[possible].any(axis=0)
        if (further == possible).all():
            return possible
        possible = further


class Growth(NamedTuple):
    """Change of the log bound on the relative lost weight along each piece of a chain; each field is (lanes,).

    If the log bound is b at the beginning of a piece, it is max(b + gain, own) at its end and at most
    max(b + highest, own_highest) inside. −inf means that no weight was lost; own_highest is +inf where the pass is
    unreliable.
    """

    gain: Array
    own: Array
    highest: Array
    own_highest: Array

    @classmethod
    def nothing(cls, lanes: int) -> Growth:
        """Return the change along pieces that lose nothing."""
        return cls(*np.full((4, lanes), -np.inf))

    def matters(self) -> Flags:
        """Return which chains, each a single piece, have an unreliable scaled pass, (lanes,)."""
        return self.own_highest > LOG_MATTERS

    def along(self) -> Growth:
        """Return the change along all pieces, one after the other, as that of a single one; fields are (1,)."""
        gain, own, highest, own_highest = 0.0, -np.inf, -np.inf, -np.inf
        for here in zip(*(field.tolist() for field in self), strict=True):
            highest, own_highest = max(highest, gain + here[2]), max(own_highest, own + here[2], here[3])
            gain, own = gain + here[0], max(own + here[0], here[1])
        return Growth(*(np.array([value]) for value in (gain, own, highest, own_highest)))

    def matters_before(self, last: Array, stop: Array) -> Flags:
        """Return which chains, each a single piece, are unreliable with backward messages `stop` (K, lanes) at the end.

        `last` are the filtered marginals there, (K, lanes). What was lost may be in the state that the message favours.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            favoured = np.log(stop.max(axis=0)) - np.log((last * stop).sum(axis=0))
            return self.matters() | ~((self.own == -np.inf) | (self.own + favoured <= LOG_MATTERS))

    def matters_along(self, follows: Flags) -> Flags:
        """Return the pieces at which the bound becomes too large, (pieces,); `follows` marks continued chains."""
        out = np.empty(len(follows), dtype=np.bool_)
        _fold(follows, *self, out)
        return out


def growth(
    likelihood: Array,
    start: Array,
    transition: Array | Band,
    steps: Flags,
    walks: Walks,
    alpha: Array,
    scale: Array,
    follows: Flags | None = None,
) -> Growth:
    """Bound the weight that each chain has lost to underflow.

    Parameters
    ----------
    likelihood : (K, n)
    start : (K, lanes) predicted weights of the first position's states, before its observation
    transition : (K, K), or the band of its transpose
    steps : `steps_of` the transitions; for a band anything
    walks : layout.Walks
    alpha, scale : (K, n) and (n,), the filtered marginals and their normalisers
    follows : (lanes,) of bool, pieces that continue others
    """
    out = Growth.nothing(len(walks.lengths))
    if follows is None:
        follows = np.zeros(len(walks.lengths), dtype=np.bool_)
    is_watched = isinstance(transition, tuple) or len(steps) > 0
    if is_watched or not scale.min(initial=np.inf) >= LEAST_SCALE:
        search_losses(likelihood, start, transition, steps, walks, alpha, scale, is_watched, follows, out)
    return out


@linked()
def _fold(follows, gain, own, highest, own_highest, out):
    """Carry the bound along the pieces and write where it becomes too large into `out` (pieces,)."""
    bound = -np.inf
    for piece in range(follows.shape[0]):
        if not follows[piece]:
            bound = -np.inf
        out[piece] = max(bound + highest[piece], own_highest[piece]) > LOG_MATTERS
        bound = max(bound + gain[piece], own[piece])


@called()
def search_losses(likelihood, start, transition, steps, walks, alpha, scale, is_watched, follows, out):
    """Fill the fields of `out` (`Growth`) for every chain; own_highest is +inf where a normaliser underflows."""
    alive, leads = _alive(alpha, scale), _leads(transition, steps)
    weights = np.empty((4, alpha.shape[0]))
    sets = np.empty((2, alive.shape[0]), dtype=np.uint64)
    for lane in range(walks.lengths.shape[0]):
        for step in range(walks.lengths[lane]):
            if not scale[walks.columns[lane] + walks.offsets[step]] >= LEAST_SCALE:
                out.own_highest[lane] = np.inf
                break
        if out.own_highest[lane] < np.inf and is_watched:
            out.gain[lane], out.own[lane], out.highest[lane], out.own_highest[lane] = _watch(
                transition, leads, likelihood, start, walks, lane, alpha, alive, scale, follows[lane], weights, sets
            )


@small
def _watch(transition, leads, likelihood, start, walks, lane, alpha, alive, scale, follows, weights, sets):
    """Return the fields of `Growth` for one chain.

    Bounds on the lost weight of each state, and multiples of what was lost before the chain, are kept in rows of
    `weights`: after the observation of a position, and before that of the next one. `sets` are states with any weight
    at a position, and those that such states lead to.
    """
    lost, lost_next, earlier, earlier_next = weights[0], weights[1], weights[2], weights[3]
    present, touched = sets[0], sets[1]
    weights[:] = 0.0
    sets[:] = 0
    for k in range(alpha.shape[0]):
        if start[k, lane] > 0.0:
            touched[k // WORD] |= _bit(k)
            earlier_next[k] = 1.0 if follows else 0.0
    total, total_earlier = 0.0, 1.0 if follows else 0.0
    most, most_earlier = 0.0, 0.0
    for step in range(walks.lengths[lane]):
        column = walks.columns[lane] + walks.offsets[step]
        is_any = total > 0.0 or total_earlier > 0.0 or _any_gone(touched, alive, column)
        if is_any:
            total, total_earlier = _weigh(
                likelihood, alpha, column, 1.0 / scale[column], touched, lost_next, earlier_next, lost, earlier
            )
            if total > MATTERS:
                return BEYOND, BEYOND, BEYOND, np.inf
            if total_earlier > MOST_MULTIPLE:
                most_earlier, total_earlier = np.inf, 0.0
                earlier[:] = 0.0
            most, most_earlier = max(most, total), max(most_earlier, total_earlier)
            carry_on(transition, lost, lost_next)
            if follows:
                carry_on(transition, earlier, earlier_next)
        if _is_new(present, alive, column, lost, earlier, is_any):
            lead_on(transition, leads, present, touched)
    if most_earlier == np.inf:
        return BEYOND, np.log(total), BEYOND, np.log(most)
    return np.log(total_earlier), np.log(total), np.log(most_earlier), np.log(most)


@small
def _weigh(likelihood, alpha, column, factor, touched, lost_next, earlier_next, lost, earlier):
    """Carry both bounds over an observation, and drop what is negligible; return their sums."""
    total, total_earlier, least = 0.0, 0.0, LEAST_MARGINAL * factor
    for k in range(alpha.shape[0]):
        kept, weight = alpha[k, column], likelihood[k, column] * factor
        lost[k] = earlier[k] = 0.0
        if not weight > 0.0:
            continue
        bound = lost_next[k] * weight
        if kept < least and touched[k // WORD] & _bit(k) != 0:
            bound += least
        if bound > NEGLIGIBLE * kept:
            lost[k] = bound
            total += bound
        if earlier_next[k] > 0.0:
            multiple = max(earlier_next[k] * weight, LEAST_MULTIPLE)
            if MATTERS * multiple > NEGLIGIBLE * kept:
                earlier[k] = multiple
                total_earlier += multiple
    return total, total_earlier


@small
def is_weak(messages, far, steps, sizes, is_left):
    """Whether a state in any lane of `messages` (K, lanes) has underflowed to which a buffer can lead.

    Buffers have `sizes` (lanes,) positions, and states at their far ends the weights `far` (K, lanes).
    """
    for lane in range(messages.shape[1]):
        least = LEAST_MARGINAL * messages[:, lane].max()
        weak = ~(messages[:, lane] > least)  # so are all states of a message that has vanished
        if sizes[lane] > 0 and weak.any():
            possible = far[:, lane] > 0.0
            _lead_over(possible, steps, sizes[lane], is_left)
            if (weak & possible).any():
                return True
    return False


@small
def _lead_over(possible, steps, n, is_left):
    """Let `possible` (K,) be the states to which n steps, forwards or backwards, can lead from those that it was."""
    for _ in range(n):
        before = possible.copy()
        possible[:] = False
        for j in range(possible.shape[0]):
            if before[j]:
                possible |= steps[j] if is_left else steps[:, j]
        if (possible == before).all():
            return


# ---- sets of states, as bits -----------------------------------------------------------------------------------------


@small
def _bit(k):
    """The bit of a state in its word."""
    return np.uint64(1) << np.uint64(k % WORD)


@small
def _alive(alpha, scale):
    """Sets of the states that have not underflowed, before the normaliser was divided by, (words, n)."""
    out = np.zeros(((alpha.shape[0] + WORD - 1) // WORD, alpha.shape[1]), dtype=np.uint64)
    for k in range(alpha.shape[0]):
        row, bit = out[k // WORD], np.uint64(k % WORD)
        for column in range(alpha.shape[1]):
            row[column] |= np.uint64(alpha[k, column] * scale[column] >= LEAST_MARGINAL) << bit
    return out


@small
def _any_gone(touched, alive, column):
    """Whether a state that may have weight is not alive."""
    gone = np.uint64(0)
    for word in range(touched.shape[0]):
        gone |= touched[word] & ~alive[word, column]
    return gone != 0


@small
def _is_new(present, alive, column, lost, earlier, is_any):
    """Let `present` be the states with any weight, kept or lost; return whether they are others than before."""
    is_new = False
    for word in range(present.shape[0]):
        members = alive[word, column]
        if is_any:
            for k in range(word * WORD, min((word + 1) * WORD, lost.shape[0])):
                if lost[k] > 0.0 or earlier[k] > 0.0:
                    members |= _bit(k)
        is_new = is_new or members != present[word]
        present[word] = members
    return is_new


# ---- what differs between matrices and bands -------------------------------------------------------------------------


def _dense_leads(transition, steps):
    """The states that each state leads to, as bits, (K, words)."""
    n_states = transition.shape[0]
    out = np.zeros((n_states, (n_states + WORD - 1) // WORD), dtype=np.uint64)
    for j in range(steps.shape[0]):
        for k in range(n_states):
            if steps[j, k]:
                out[j, k // WORD] |= _bit(k)
    return out


def _band_leads(transition, steps):
    """Bands say it themselves."""
    return np.empty((0, 0), dtype=np.uint64)


def _dense_lead_on(transition, leads, present, touched):
    """Let `touched` be the states that any of those present lead to."""
    touched[:] = 0
    for j in range(leads.shape[0]):
        if present[j // WORD] & _bit(j) != 0:
            for word in range(touched.shape[0]):
                touched[word] |= leads[j, word]


def _band_lead_on(transition, leads, present, touched):
    """The same; row k of the band lists what leads to state k."""
    n_states, width = transition.weights.shape
    touched[:] = 0
    for k in range(n_states):
        for c in range(width):
            j = wrapped(transition.first[k] + c, n_states)
            if present[j // WORD] & _bit(j) != 0 and transition.weights[k, c] > 0.0:
                touched[k // WORD] |= _bit(k)
                break


def _dense_carry_on(transition, weights, out):
    """Carry weights of the states over a transition."""
    out[:] = 0.0
    for j in range(weights.shape[0]):
        weight = weights[j]
        if weight > 0.0:
            for k in range(out.shape[0]):
                out[k] += weight * transition[j, k]


def _band_carry_on(transition, weights, out):
    """The same; row k of the band lists what leads to state k."""
    n_states, width = transition.weights.shape
    for k in range(n_states):
        total = 0.0
        for c in range(width):
            total += transition.weights[k, c] * weights[wrapped(transition.first[k] + c, n_states)]
        out[k] = total


_leads = by_kind(_dense_leads, _band_leads, reorders=False)
lead_on = by_kind(_dense_lead_on, _band_lead_on, reorders=False)
carry_on = by_kind(_dense_carry_on, _band_carry_on, reorders=False)
