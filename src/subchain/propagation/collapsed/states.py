"""One visit of single states: take out, predict, renew, put back.

What a position puts into the counts is its posterior marginal or its drawn state, as in `pieces.py`; the steps of a
visit are verbs of these, implemented in `marginal_states.py` and `drawn_states.py`.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.compiled import ordered_kernel
from subchain.propagation.verbs import room, step


class Ends(NamedTuple):
    """Whether each position begins, or ends, its sequence, (N,) each."""

    is_first: NDArray[np.bool_]
    is_last: NDArray[np.bool_]


@room
def state_room(shares, rows):
    """Tables that a visit works in."""


@step
def is_certain(shares, position):
    """Whether a position need not be visited, since it has one legal state."""


@step
def look_around(shares, position, ends, tables):
    """Return what a position and its neighbours have put in, or write it into the tables."""


@step
def take_out_state(shares, position, place, rows, emissions, how, tables):
    """Take a position's observation out of the counts, if it is to be excluded; its transitions may wait."""


@step
def renew_state(shares, position, place, rows, emissions, how, tables, since):
    """Give a position a new marginal and return its normaliser, or draw its new state and return that.

    What is returned is negative where no state explains the position.
    Its own transitions are left out of the weights where they were not taken out of the counts before.
    """


@step
def put_back_state(shares, position, place, new, rows, emissions, how, tables, since):
    """Write the new share of a position; count it if it is to be put back, else leave the counts as they were."""


@step
def finish_states(shares, rows, tables):
    """Leave the counts of transitions as the visits have changed them."""


@ordered_kernel
def visit_states(shares, order, ends, rows, emissions, how, since):
    """Visit single positions one after the other.

    Parameters
    ----------
    shares : what positions have put in, and where to write what they put in now
    order : (n,) positions
    ends : Ends
    rows, emissions, how, since : as for `pieces.visit_pieces`

    Returns
    -------
    The first position that no state explains, where the visits end; −1 if there is none.
    """
    tables = state_room(shares, rows)
    for position in order:
        if is_certain(shares, position):
            continue
        place = look_around(shares, position, ends, tables)
        take_out_state(shares, position, place, rows, emissions, how, tables)
        new = renew_state(shares, position, place, rows, emissions, how, tables, since)
        if new < 0:
            return position
        put_back_state(shares, position, place, new, rows, emissions, how, tables, since)
    finish_states(shares, rows, tables)
    return np.int64(-1)
