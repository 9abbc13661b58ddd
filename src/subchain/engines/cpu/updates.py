"""Many stochastic updates in one compiled call of each thread; see `update_kernels.py`."""

from __future__ import annotations

import time
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.engines.base import BoundarySteps, ChainSteps, Units, UpdatesFound
from subchain.engines.cpu.fused import tables_in
from subchain.engines.cpu.kernels import MANY_STATES
from subchain.engines.cpu.partition import LINE
from subchain.engines.cpu.update_kernels import Minibatch, Progress
from subchain.engines.cpu.update_kernels import run_updates as kernel
from subchain.engines.cpu.workspace import Workers, Workspace, empty_table
from subchain.numerics.subnormals import subnormals_after_errors
from subchain.propagation.lanes.groups import Ways
from subchain.propagation.lanes.subchains import Subchains
from subchain.propagation.lanes.surroundings import Places
from subchain.propagation.underflow import steps_of
from subchain.propagation.verbs import kernel_for

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Observations times states of data that are worth it: such kernels take half a minute to compile, once on a machine.
LARGE = 1 << 19
#: Bytes of the largest table of a tile.
MOST_BYTES = 64 << 20
#: Observations times states of a minibatch that threads share, the tiles that it then has, and their fewest columns.
SHARED, TILES, LEAST_COLUMNS = 1 << 16, 32, 512
#: Columns that a tile has room for: so many times as many as it has on the average.
RAGGED = 8
#: Seconds that a helper sleeps when it has looked for tiles for some time and none was opened.
NAP = 5e-5


def can_fuse(n_states: int, n_observations: int, length: int) -> bool:
    """Whether updates are worth it; see `FusesUpdates`."""
    is_large = n_observations * n_states >= LARGE
    return is_large and n_states < MANY_STATES and 8 * n_states * LINE * length <= MOST_BYTES


def run_updates(
    workers: Workers, kind: int, emission: Any, chain: ChainSteps, units: Units, boundary: BoundarySteps,
    found: UpdatesFound,
) -> None:  # fmt: skip
    """Do one update after the other; see `FusesUpdates.run_updates`."""
    n_states, size = len(chain.pairs), units.pieces.shape[1]
    typical = min(float(units.length), (units.offsets[-1] - units.offsets[0]) / max(int(units.firsts[-1]), 1))
    wide = _tile_lanes(size, typical if units.stride > 1 else units.length, n_states)
    tiles = np.append(np.arange(0, size, wide), size)
    room = max(int(min(wide * units.length, max(RAGGED * wide * typical, LINE * units.length))), LEAST_COLUMNS)
    emission.share(len(tiles) - 1)
    n, done = len(units.pieces), 0
    while True:
        columns = max(room, wide * int(boundary.state[1]))
        rows = empty_table(len(tiles) - 1, n_states * (1 + n_states) + emission.row_size(columns))
        batch = _minibatch(tiles, units, boundary, chain, rows, room)
        left = units._replace(pieces=units.pieces[done:], rates=units.rates[done:])
        _run(workers, kind, emission, chain, left, batch, columns, found._replace(growths=found.growths[done:]))
        done += int(found.done[0])
        if done == n or wide * int(boundary.state[1]) <= columns:
            break  # otherwise growing buffers need more room
    found.done[0] = done


def _run(
    workers: Workers, kind: int, emission: Any, chain: ChainSteps, units: Units, batch: Minibatch, columns: int,
    found: UpdatesFound,
) -> None:  # fmt: skip
    """Do updates as far as they need no more than so many columns of room."""
    n_states, n_tiles = len(chain.pairs), len(batch.rows)
    counters = np.zeros((len(Progress._fields), 16), dtype=np.int64)  # a cache line and the next for each
    progress = Progress(*(row[:1] for row in counters))
    numbers, run = count(), kernel_for(kernel, emission.of_thread(0))

    def work() -> None:
        try:
            learned, space = emission.of_thread(next(numbers)), Workspace()
            tables = tables_in(space, n_states, columns)
            with subnormals_after_errors():
                run(kind, learned, chain, units, batch, progress, tables, found)
                while not progress.over[0]:  # a helper: the leader has been busy alone for some time
                    time.sleep(NAP)
                    run(kind, learned, chain, units, batch, progress, tables, found)
        except BaseException:
            progress.broken[0] = progress.over[0] = 1  # the others do not wait for this thread
            raise

    workers.share(work, n_tiles)


def _tile_lanes(size: int, typical: float, n_states: int) -> int:
    """Lanes of a tile: all subchains of a small minibatch; those of a large one are shared by threads."""
    total = size * typical
    if total * n_states < SHARED:
        return size
    lanes = int(max(total / TILES, LEAST_COLUMNS) / typical) // LINE * LINE
    return min(max(lanes, LINE), size)


def _minibatch(
    tiles: Index, units: Units, boundary: BoundarySteps, chain: ChainSteps, rows: Array, room: int
) -> Minibatch:
    """Room for the minibatch of an update."""
    size, n_states = units.pieces.shape[1], len(chain.pairs)
    starts, lengths, pieces, begins, ends = np.zeros((5, size), dtype=np.int64)
    start, stop = np.empty((2, n_states * size))
    weights, pair_weights = (np.empty(size if len(own) else 0) for own in (units.each, units.each_move))
    lanes = Subchains(tiles, starts, lengths, start, stop, np.empty(size), weights, pair_weights)
    around = Places(pieces, begins, ends, np.zeros((size, 2), dtype=np.int64), room)
    matrix, nowhere = np.empty((n_states, n_states)), np.empty(0, dtype=np.bool_)
    steps = steps_of((chain.prior_rows > 0.0) | (chain.fixed > 0.0))
    ways = Ways(np.empty(n_states), matrix, np.empty_like(matrix), steps, nowhere)
    guards = np.empty((size if len(rows) > 1 else 0, 2 * n_states), dtype=np.float32)
    outside, totals, blend = np.empty(n_states), np.empty(size), np.empty(2)
    return Minibatch(lanes, around, boundary, ways, outside, rows, totals, guards, blend)
