"""Sequences arranged as lanes: which flat position stands in which column of a table that runs them side by side."""

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
    sequences : (lanes,) number of the sequence in each lane
    offsets : (steps + 1,) where each step's columns begin
    positions : (columns,) flat position of each column
    """

    sequences: Index
    offsets: Index
    positions: Index


def side_by_side(offsets: Index, most: int) -> Iterator[Lanes]:
    """Arrange all sequences that are not empty, at most so many at once, the longest first.

    Parameters
    ----------
    offsets : (n_sequences + 1,) flat position where each sequence begins, and the number of positions
    most : largest number of lanes
    """
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    order = order[: np.count_nonzero(lengths)]
    for first in range(0, len(order), most):
        sequences = order[first : first + most]
        steps = np.arange(lengths[sequences[0]])
        running = np.searchsorted(-lengths[sequences], -steps, side="left")
        columns = np.concatenate(([0], np.cumsum(running)))
        lane = np.arange(columns[-1]) - np.repeat(columns[:-1], running)
        yield Lanes(sequences, columns, offsets[sequences[lane]] + np.repeat(steps, running))
