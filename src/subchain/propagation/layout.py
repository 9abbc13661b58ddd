"""Where chains stand: which flat position is in which column of a table, one chain after the other or side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]


class Lanes(NamedTuple):
    """Sequences side by side, sorted by falling length; none is empty.

    Attributes
    ----------
    n_lanes : number of lanes
    offsets : (steps + 1,) where each step's columns begin
    positions : (columns,) flat position of each column
    """

    n_lanes: int
    offsets: Index
    positions: Index


class Walks(NamedTuple):
    """How to walk along chains that stand in the same table.

    Attributes
    ----------
    lengths : (lanes,) number of steps of each chain
    columns, offsets : (lanes,) and (steps,); the column of a chain's step is the sum of its entry and the step's
    origins : (lanes,) flat position of each chain's first step
    """

    lengths: Index
    columns: Index
    offsets: Index
    origins: Index


def end_to_end(starts: Index, stops: Index) -> Walks:
    """Walk along chains that stand one after the other, each position in the column of its number."""
    lengths = stops - starts
    return Walks(lengths, starts, np.arange(lengths.max(initial=0)), starts)


def side_by_side(starts: Index, stops: Index, most: int) -> Iterator[Lanes]:
    """Arrange the sequences that are not empty, at most so many at once, the longest first.

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
