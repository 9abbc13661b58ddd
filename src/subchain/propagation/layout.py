"""Layout of chains in a table: concatenated, or side by side in lanes; it maps columns to flat positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.linking import linked

Index = NDArray[np.int64]


class Lanes(NamedTuple):
    """Sequences side by side, sorted by falling length; none is empty.

    Attributes
    ----------
    n_lanes : number of lanes
    offsets : (steps + 1,) first column of each step
    positions : (columns,) flat position of each column
    """

    n_lanes: int
    offsets: Index
    positions: Index


class Walks(NamedTuple):
    """Columns of the chains in a table, for either layout.

    Attributes
    ----------
    lengths : (lanes,) number of steps of each chain
    columns, offsets : (lanes,) and (steps,); step t of chain i is in column ``columns[i] + offsets[t]``
    origins : (lanes,) flat position of each chain's first step
    """

    lengths: Index
    columns: Index
    offsets: Index
    origins: Index


def end_to_end(starts: Index, stops: Index) -> Walks:
    """Return the columns of concatenated chains, where the column of a position is the position itself."""
    lengths = stops - starts
    return Walks(lengths, starts, np.arange(lengths.max(initial=0)), starts)


def side_by_side(starts: Index, stops: Index, most: int) -> Iterator[Lanes]:
    """Yield groups of at most `most` sequences side by side, the longest first; empty sequences are skipped.

    Parameters
    ----------
    starts, stops : (n_sequences,) first flat position of each sequence, and the one after its last
    most : largest number of lanes
    """
    lengths = stops - starts
    order = np.argsort(-lengths, kind="stable")
    order = order[: np.count_nonzero(lengths)]
    for first in range(0, len(order), most):
        sequences = order[first : first + most]
        steps = np.arange(lengths[sequences[0]])
        running = np.searchsorted(-lengths[sequences], -steps, side="left")
        columns = np.concatenate(([0], np.cumsum(running)))
        lane = np.arange(columns[-1]) - np.repeat(columns[:-1], running)
        yield Lanes(len(sequences), columns, starts[sequences[lane]] + np.repeat(steps, running))


# These are over sooner than another thread could be given the lock of Python and return it: they keep it.


@linked(nogil=False)
def step_offsets(lengths):  # type: ignore[no-untyped-def]
    """Return where the columns of each step begin, (steps + 1,), for lanes of falling lengths."""
    offsets = np.empty(lengths[0] + 1, dtype=np.int64)
    offsets[0] = 0
    lanes = lengths.shape[0]
    for step in range(lengths[0]):
        while lengths[lanes - 1] <= step:
            lanes -= 1
        offsets[step + 1] = offsets[step] + lanes
    return offsets


@linked(nogil=False)
def column_positions(starts, offsets, out):  # type: ignore[no-untyped-def]
    """Write the position of the observation in each column, for lanes that begin at `starts`."""
    for step in range(offsets.shape[0] - 1):
        first = offsets[step]
        for lane in range(offsets[step + 1] - first):
            out[first + lane] = starts[lane] + step
