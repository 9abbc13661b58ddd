"""One visit of clusters of pieces: take out, predict, run, put back.

A *piece* is a sequence or a stretch of one; a *cluster* is one piece or several that are visited together. What the
cluster has put into the counts is taken out, the rest makes a plain hidden Markov model, the pieces are run under it,
and what they put in now is counted. What pieces put in is either posterior marginals (`DenseMarginals` over all states,
`ListedMarginals` over legal ones), as in collapsed variational inference, or drawn states (`DrawnStates`), as in Gibbs
sampling. The steps of a visit are verbs of these, implemented in `dense_pieces.py`, `listed_pieces.py` and
`drawn_pieces.py`; emissions are counted by verbs of their own (`verbs.py`).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.compiled import bare_part, kernel
from subchain.propagation.verbs import room, stage

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Pieces(NamedTuple):
    """Where pieces lie, in the order of the data.

    Attributes
    ----------
    starts, stops : (G,) first position of each, and the one behind its last
    is_first, is_last : (G,) whether it begins or ends its sequence
    share_of : (G,) row of the tables of inner transitions that belongs to its cluster; row 0 stays zero
    weights : (G,) how often it counts; empty if all count once
    size : number of clusters; cluster i has the pieces i, i + size, i + 2 size, …
    """

    starts: Index
    stops: Index
    is_first: NDArray[np.bool_]
    is_last: NDArray[np.bool_]
    share_of: Index
    weights: Array
    size: int


class How(NamedTuple):
    """How clusters are visited.

    Attributes
    ----------
    excludes : whether a cluster's own share is taken out before it is visited
    puts_back : whether its new share takes the place of the old one at once
    by_counts : whether rows weigh as much as they have counts where a neighbour's last state is averaged over
    measures : whether entropies are wanted
    """

    excludes: bool
    puts_back: bool
    by_counts: bool = False
    measures: bool = True


class Legal(NamedTuple):
    """The states that each position may have; empty arrays if that is all of them.

    Attributes
    ----------
    offsets : (N + 1,) where the entries of each position begin
    states : (nnz,)
    logs, factors : (nnz,) what evidence adds to log weights, the largest of a position being zero, and what it
        multiplies weights by; empty if it says nothing
    """

    offsets: Index
    states: NDArray[np.int32]
    factors: Array
    logs: Array


@bare_part
def weight_of(pieces, piece):
    """How often a piece counts."""
    return pieces.weights[piece] if pieces.weights.shape[0] else 1.0


@kernel
def most_positions(order, pieces):
    """Positions of the longest piece, and of the longest cluster."""
    longest, most = 1, 1
    for cluster in order:
        summed = 0
        for piece in range(cluster, pieces.starts.shape[0], pieces.size):
            n = pieces.stops[piece] - pieces.starts[piece]
            longest, summed = max(longest, n), summed + n
        most = max(most, summed)
    return longest, most


# ---- steps -----------------------------------------------------------------------------------------------------------


@room
def piece_room(shares, order, pieces, rows):
    """Tables that a visit works in."""


@stage
def take_out(shares, cluster, pieces, rows, emissions, how, room):
    """Take a cluster's share out of the counts, if it is to be excluded, and predict transitions and first states."""


@stage
def run_piece(shares, piece, pieces, rows, emissions, how, room, since):
    """Run a piece under the predictive model; what it finds goes to the room, behind what others of its cluster found.

    Adds the log normaliser and the entropy to `since`. Returns the position that no state explains, −1 if there is
    none.
    """


@stage
def put_back(shares, cluster, pieces, rows, emissions, how, room, since):
    """Write the new share of a cluster; count it if it is to be put back, else leave the counts as they were."""


@kernel
def visit_pieces(shares, order, pieces, rows, emissions, how, since):
    """Visit clusters one after the other.

    Parameters
    ----------
    shares : what clusters have put in, and where to write what they put in now
    order : (n,) numbers of the clusters
    pieces : Pieces
    rows, emissions : counts of transitions and of emissions, in place
    how : How
    since : (2,) log normalisers and entropies, or changed states and accepted sequences, in place

    Returns
    -------
    The first position that no state explains, with which the visit ends; −1 if there is none.
    """
    tables = piece_room(shares, order, pieces, rows)
    for cluster in order:
        take_out(shares, cluster, pieces, rows, emissions, how, tables)
        for piece in range(cluster, pieces.starts.shape[0], pieces.size):
            lost = run_piece(shares, piece, pieces, rows, emissions, how, tables, since)
            if lost >= 0:
                return lost
        put_back(shares, cluster, pieces, rows, emissions, how, tables, since)
    return -1
