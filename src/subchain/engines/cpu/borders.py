"""Messages at the borders between the pieces of a long chain.

A chain that is cut into pieces can be worked on side by side only if every piece knows what its neighbours would tell
it. A hidden Markov model forgets: started a little early from any message, a pass arrives at the border with the true
one, up to rounding. How early is measured on the chain itself (`forgetting_time`); whether it was enough is checked
afterwards, for every border, against the message that the neighbour has computed meanwhile. The comparison is
relative, entry by entry (in Hilbert's projective metric, which no observation can enlarge), so that a marginal of 1e-20
that a later observation brings back to life is right as well. Borders that disagree are given the neighbour's message
and their pieces are run again; chains that never forget get their messages from a plain sweep from end to end.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.partition import Partition

Array = NDArray[np.float64]

#: Largest relative difference between two messages that count as the same.
AGREEMENT = 1e-13


def disagreement(ours: Array, theirs: Array) -> Array:
    """Largest relative difference of two messages along the last axis."""
    sum_of_both = ours + theirs
    relative = np.abs(ours - theirs) / np.where(sum_of_both > 1e-290, sum_of_both, 1.0)
    return 2.0 * np.asarray(relative.max(axis=-1))


@dataclasses.dataclass
class Borders:
    """What each piece is told by its neighbours, and what it tells them, all (P, K).

    Attributes
    ----------
    before : filtered marginal of the position before the piece (unused where the piece begins its sequence)
    after : backward message of the piece's last position, summing to one (unused where it ends its sequence)
    last : filtered marginal of the piece's last position, as computed
    first : backward message of the position before the piece, as computed
    known : (P,) whether `before` and `after` are set
    """

    before: Array
    after: Array
    last: Array
    first: Array
    known: NDArray[np.bool_]

    @classmethod
    def unknown(cls, n_pieces: int, n_states: int) -> Borders:
        before, after, last, first = (np.empty((n_pieces, n_states)) for _ in range(4))
        return cls(before, after, last, first, known=np.zeros(n_pieces, dtype=np.bool_))

    def adopt(self, cut: Partition, *, smooth: bool) -> NDArray[np.int64]:
        """Give pieces whose borders disagree their neighbours' messages; return those pieces.

        Without `smooth` only forward messages count.
        """
        inner = np.flatnonzero(~cut.is_first)
        wrong = inner[disagreement(self.before[inner], self.last[inner - 1]) > AGREEMENT]
        self.before[wrong] = self.last[wrong - 1]
        if not smooth:
            return wrong
        earlier = inner - 1
        off = disagreement(self.after[earlier], self.first[inner]) > AGREEMENT
        self.after[earlier[off]] = self.first[inner[off]]
        return np.union1d(wrong, earlier[off])
