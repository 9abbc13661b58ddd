"""Messages at the borders between the pieces of a long chain.

A chain that is cut into pieces can be worked on side by side only if every piece knows what its neighbours would tell
it. A hidden Markov model forgets: started a little early from any message, a pass arrives at the border with the true
one, up to rounding. How early is measured on the chain itself (`Messages.mixing_time`); whether it was enough is
checked afterwards, for every border, against the message that the neighbour has computed meanwhile. The comparison is
relative, entry by entry (in Hilbert's projective metric, which no observation can enlarge), so that a marginal of 1e-20
that a later observation brings back to life is right as well. Borders that disagree are given the neighbour's message
and their pieces are run again; chains that never forget get their messages from a plain sweep from end to end.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.partition import Index, Partition
from subchain.engines.cpu.precision import DOUBLE, Precision
from subchain.propagation.compiled import kernel, small_kernel
from subchain.propagation.lanes.groups import Edges

Array = NDArray[np.float64]


def disagreement(ours: Array, theirs: Array) -> Array:
    """Largest relative difference of two messages along the last axis."""
    sum_of_both = ours + theirs
    relative = np.abs(ours - theirs) / np.where(sum_of_both > DOUBLE.faint, sum_of_both, 1.0)
    return 2.0 * np.asarray(relative.max(axis=-1))


class BorderMessages(NamedTuple):
    """What some pieces were told by their neighbours, and what they tell them, all (n, K).

    Attributes
    ----------
    before : filtered marginal of the position before the piece (unused where the piece begins its sequence)
    after : backward message of the piece's last position, summing to one (unused where it ends its sequence)
    last : filtered marginal of the piece's last position, as computed
    first : backward message of the position before the piece, as computed (undefined without smoothed marginals)
    """

    before: Array
    after: Array
    last: Array
    first: Array


@dataclasses.dataclass
class Borders:
    """The messages of all pieces.

    Attributes
    ----------
    messages : (P, K) each
    known : (P,) whether `before` and `after` are set
    precision : when two messages count as the same
    """

    messages: BorderMessages
    known: NDArray[np.bool_]
    precision: Precision = DOUBLE

    @classmethod
    def unknown(cls, n_pieces: int, n_states: int, precision: Precision = DOUBLE) -> Borders:
        tables = BorderMessages(*(np.empty((n_pieces, n_states)) for _ in range(4)))
        return cls(tables, np.zeros(n_pieces, dtype=np.bool_), precision)

    def bound(self, before: Array | None, after: Array | None) -> None:
        """Set what the rest of a sequence tells the first and the last piece of a stretch; None where there is none."""
        if before is not None:
            self.messages.before[0] = before
        if after is not None:
            self.messages.after[-1] = after

    def begin(self, inner_before: Array, inner_after: Array, before: Array | None, after: Array | None) -> None:
        """Set both borders of the first and of the last piece of a stretch, of which kernels could not estimate one.

        Estimates of their inner borders are `inner_before` and `inner_after`, a row for each of the two pieces.
        """
        self.messages.after[0], self.messages.before[-1] = inner_after[0], inner_before[-1]
        self.bound(before, after)
        self.known[[0, -1]] = True

    def of(self, pieces: Index) -> Borders:
        """Return a copy for some pieces."""
        tables = BorderMessages(*(table[pieces] for table in self.messages))
        return Borders(tables, self.known[pieces], self.precision)

    def put(self, pieces: Index, found: BorderMessages) -> None:
        """Keep what a group of pieces has found."""
        for table, part in zip(self.messages, found, strict=True):
            table[pieces] = part
        self.known[pieces] = True

    def adopt(self, cut: Partition, *, smooth: bool) -> Index:
        """Give pieces whose borders disagree their neighbours' messages; return those pieces.

        Without `smooth` only forward messages count.
        """
        wrong = np.zeros(len(self.known), dtype=np.bool_)
        _adopt(self.messages, cut.is_first, smooth, self.precision, wrong)
        return np.flatnonzero(wrong)


def edges_of(borders: Borders | None, n_states: int) -> Edges:
    """Return the messages at borders as compiled passes take them."""
    if borders is None:
        none = np.empty((0, n_states))
        return Edges(none, none, none, none, np.empty(0, dtype=np.bool_))
    return Edges(*borders.messages, borders.known)


@small_kernel
def _differ(ours, theirs, precision):  # type: ignore[no-untyped-def]
    """Whether two messages (K,) do not count as the same."""
    for k in range(ours.shape[0]):
        both = ours[k] + theirs[k]
        if not 2.0 * abs(ours[k] - theirs[k]) <= precision.tolerance * (both if both > precision.faint else 1.0):
            return True
    return False


@small_kernel
def _overwrite(ours, theirs, precision):  # type: ignore[no-untyped-def]
    """Replace a message (K,) by another if they differ; return whether they did."""
    if not _differ(ours, theirs, precision):
        return False
    for k in range(ours.shape[0]):
        ours[k] = theirs[k]
    return True


@kernel
def _adopt(messages, is_first, smooth, precision, wrong):  # type: ignore[no-untyped-def]
    """Give pieces their neighbours' messages where they disagree; mark those pieces."""
    for piece in range(1, is_first.shape[0]):
        if is_first[piece]:
            continue
        if _overwrite(messages.before[piece], messages.last[piece - 1], precision):
            wrong[piece] = True
        if smooth and _overwrite(messages.after[piece - 1], messages.first[piece], precision):
            wrong[piece - 1] = True
