"""The most probable paths of many pieces in one call that does not hold Python's lock.

Pieces and their leads are as in `engines.cpu.decode`. Every thread makes one such call, and claims tile after tile.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.claiming import claim
from subchain.propagation.compiled import family_rare, kernel
from subchain.propagation.lanes.observing import log_likelihoods, observation_room, observe
from subchain.propagation.layout import column_positions, step_offsets
from subchain.propagation.viterbi import sweep_lanes, trace_lanes

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class LedPieces(NamedTuple):
    """All pieces with their leads, tile after tile, those of a tile by falling length.

    Attributes
    ----------
    tiles : (T + 1,) where the lanes of each tile begin
    pieces : (n,) number of each piece in the order of the data
    starts, lengths : (n,) first position and number of positions, leads included
    first, stop : (n,) range of the positions of the piece itself
    is_first : (n,) whether the piece begins its sequence
    """

    tiles: Index
    pieces: Index
    starts: Index
    lengths: Index
    first: Index
    stop: Index
    is_first: NDArray[np.bool_]


class LogWays(NamedTuple):
    """Log weights of first states (K,) and of transitions, as `viterbi.sweep_lanes` and `trace_lanes` take them."""

    initial: Array
    transition: Any
    into: Any


class Paths(NamedTuple):
    """What is found: δ before and at the end of each piece (P, K), states of all positions (N,), tiles done (T,)."""

    before: Array
    last: Array
    states: NDArray[np.int32]
    done: NDArray[np.bool_]


@family_rare
def _decode_tile(family, seen, lanes, a, b, ways, positions, table, paths):
    """Decode the lanes `a` to `b` of a tile; return whether that could be done."""
    n_states, starts, offsets = ways.initial.shape[0], lanes.starts[a:b], step_offsets(lanes.lengths[a:b])
    columns = offsets[-1]
    column_positions(starts, offsets, positions)
    if not observe(family, positions[:columns], seen):
        return False
    delta, start = table[: n_states * columns].reshape(n_states, columns), np.zeros((n_states, b - a))
    log_likelihoods(family, seen, delta)
    for lane in range(a, b):
        if lanes.is_first[lane]:
            start[:, lane - a] = ways.initial
    sweep_lanes(delta, ways.transition, start, offsets)
    for lane in range(a, b):
        piece, begin = lanes.pieces[lane], lanes.starts[lane]
        paths.last[piece] = delta[:, offsets[lanes.stop[lane] - begin - 1] + lane - a]
        if not lanes.is_first[lane]:
            paths.before[piece] = delta[:, offsets[lanes.first[lane] - begin - 1] + lane - a]
    trace_lanes(delta, ways.into, offsets, starts, lanes.first[a:b], lanes.stop[a:b], paths.states)
    return True


@kernel
def decode_tiles(family, lanes, claimed, ways, table, paths):
    """Claim tiles and decode their pieces as if nothing beyond the leads existed.

    Parameters
    ----------
    family : observations and log likelihoods of the emissions; see `observing.py`
    lanes, ways : as above
    claimed : (1,) number of tiles that have been claimed
    table : room for K numbers for each column of the largest tile
    paths : output; tiles that are not done need another method
    """
    largest = table.shape[0] // ways.initial.shape[0]
    positions, seen = np.empty(largest, dtype=np.int64), observation_room(family, largest)
    while True:
        tile = claim(claimed)
        if tile >= paths.done.shape[0]:
            return
        a, b = lanes.tiles[tile], lanes.tiles[tile + 1]
        paths.done[tile] = _decode_tile(family, seen, lanes, a, b, ways, positions, table, paths)
