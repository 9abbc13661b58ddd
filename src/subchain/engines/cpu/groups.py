"""What a worker does: run the tiles of a group and return all that was found.

`run_group` is a function of the surrogate and the data (`Messages`), the group's tiles and the messages at their
borders. It writes to nothing that others see, so that a thread, another process or another machine can do it; the
caller puts results together in a fixed order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.borders import BorderMessages, Borders
from subchain.engines.cpu.consumers import Consumer, TileRun
from subchain.engines.cpu.messages import Messages
from subchain.engines.cpu.partition import Index, Partition
from subchain.propagation.underflow import Growth

Array = NDArray[np.float64]
Result = TypeVar("Result")


class Group(NamedTuple):
    """Tiles to run: their group, and their numbers."""

    number: int
    tiles: Iterable[int]


class TileTold(NamedTuple):
    """What the pieces of a tile gave.

    Attributes
    ----------
    pieces : (n,)
    log_totals : (n,) their log normalisers
    lost : bounds on what they lost to underflow, (n,) each; None where nothing was
    borders : messages at their borders, (n, K) each; None where no chain was cut
    """

    pieces: Index
    log_totals: Array
    lost: Growth | None
    borders: BorderMessages | None


class GroupRun(NamedTuple, Generic[Result]):
    """What tiles of a group gave.

    Attributes
    ----------
    number : of the group
    result : what the consumer made of the messages
    tiles : what the pieces of each tile gave
    """

    number: int
    result: Result
    tiles: list[TileTold]


def run_group(
    messages: Messages,
    cut: Partition,
    group: Group,
    borders: Borders | None,
    lead: int | None,
    consumer: Consumer[Result],
) -> GroupRun[Result]:
    """Run tiles of a group.

    Parameters
    ----------
    messages : the surrogate and the data
    cut, group : all pieces, and which tiles to run
    borders : messages at the borders, not changed; None where no chain was cut
    lead : how many positions beyond a border to begin where its message is not known; None if all are
    consumer : what the messages are for
    """
    result, space, runs = consumer.begin(), messages.workspace(), []
    for tile in (cut.tiles[number] for number in group.tiles):
        told, found = None, None
        if borders is not None:
            told = messages.told(tile, cut, borders, lead, space, smooth=consumer.smooth)
        filtered, smoothed = messages.run(tile, cut, told, space, smooth=consumer.smooth)
        if told is not None:
            last = filtered.alpha[:, tile.last_columns].T
            first = last if smoothed is None else messages.before_first(smoothed, tile.lanes)
            found = BorderMessages(told.before, told.after, last, first)
        runs.append(TileTold(tile.pieces, filtered.log_totals, filtered.lost, found))
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # whatever is not finite is done again
            consumer.tile(result, TileRun(filtered, smoothed, cut, told, messages.kernels))
    return GroupRun(group.number, result, runs)
