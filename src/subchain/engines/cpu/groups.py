"""What a worker does: run the tiles of a group and return all that was found.

`run_group` is a function of the surrogate and the data (`Messages`), the group's tiles and the messages at their
borders. It writes to nothing that others see, so that a thread, another process or another machine can do it; the
caller puts results together in a fixed order.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.borders import BorderMessages, Borders
from subchain.engines.cpu.consumers import Consumer, TileRun
from subchain.engines.cpu.fused import Fused
from subchain.engines.cpu.messages import Messages
from subchain.engines.cpu.partition import Index, Partition, Tile
from subchain.propagation.underflow import Growth

Array = NDArray[np.float64]
Result = TypeVar("Result")


class GroupRun(NamedTuple, Generic[Result]):
    """What a group of tiles gave.

    Attributes
    ----------
    result : what the consumer made of the messages
    pieces : (n,) pieces of the group
    log_totals : (n,) their log normalisers
    lost : bounds on what they lost to underflow, (n,) each; None where nothing was
    borders : messages at their borders, (n, K) each; None where no chain was cut
    """

    result: Result
    pieces: Index
    log_totals: Array
    lost: Growth | None
    borders: BorderMessages | None


def run_group(
    messages: Messages,
    cut: Partition,
    group: slice,
    borders: Borders | None,
    lead: int | None,
    consumer: Consumer[Result],
    fused: Fused | None = None,
) -> GroupRun[Result]:
    """Run the tiles of a group.

    Parameters
    ----------
    messages : the surrogate and the data
    cut, group : all pieces, and which tiles to run
    borders : messages at the borders, not changed; None where no chain was cut
    lead : how many positions beyond a border to begin where its message is not known; None if all are
    consumer : what the messages are for
    fused : runs the tiles in one call where that can be done
    """
    result, tiles, pieces = consumer.begin(), cut.tiles[group], cut.pieces_of(group)
    totals, done = np.empty(len(pieces)), np.zeros(len(tiles), dtype=np.bool_)
    found: BorderMessages | None = None
    if fused is not None:
        totals, found, done = fused.run(cut, group, borders, lead, result)
        if done.all():
            return GroupRun(result, pieces, totals, None, found)
    if borders is not None and found is None:
        found = BorderMessages(*(np.empty((len(pieces), messages.surrogate.n_states)) for _ in range(4)))
    space, edges = messages.workspace(), np.cumsum([0, *(tile.lanes for tile in tiles)])
    lost: list[Growth | None] = []
    for number, tile in enumerate(tiles):
        if done[number]:
            lost.append(None)
            continue
        lanes = slice(edges[number], edges[number + 1])
        told = None
        if borders is not None:
            told = messages.told(tile, cut, borders, lead, space, smooth=consumer.smooth)
        filtered, smoothed = messages.run(tile, cut, told, space, smooth=consumer.smooth)
        if told is not None and found is not None:
            last = filtered.alpha[:, tile.last_columns].T
            first = last if smoothed is None else messages.before_first(smoothed, tile.lanes)
            for table, part in zip(found, (told.before, told.after, last, first), strict=True):
                table[lanes] = part
        totals[lanes] = filtered.log_totals
        lost.append(filtered.lost)
        consumer.tile(result, TileRun(filtered, smoothed, cut, told, messages.kernels))
    return GroupRun(result, pieces, totals, _together(tiles, lost), found)


def _together(tiles: list[Tile], lost: list[Growth | None]) -> Growth | None:
    """What the tiles' pieces lost, one after the other; None where nothing was."""
    if all(growth is None for growth in lost):
        return None
    of_tiles = [growth or Growth.nothing(tile.lanes) for tile, growth in zip(tiles, lost, strict=True)]
    return Growth(*map(np.concatenate, zip(*of_tiles, strict=True)))
