"""Passes in single precision: how their error is found, and when they are made in double precision instead.

Log likelihoods of observations are computed in doubles, likelihoods and messages in singles, sums in doubles. Messages
are positive and never cancel: rounding errors stay small unless a chain mixes slowly, when they add up along it. In
every pass a few lanes are therefore run in both precisions. Which ones is a function of the data and the parameters, so
that results are the same for any number of threads and for runs that are resumed; other parameters choose other lanes.
If any of them deviates by more than `OF_SAMPLES`, the whole pass is made in double precision. Tiles in which
numbers come near the ends of the range of singles are found by the pass itself and run in double precision.
"""

from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.borders import Borders, edges_of
from subchain.engines.cpu.consumers import Collect, Collected, TileRun
from subchain.engines.cpu.groups import Group, run_group
from subchain.engines.cpu.partition import Index, Partition
from subchain.propagation.compiled import kernel
from subchain.propagation.lanes.groups import Claims, TiledPieces
from subchain.propagation.lanes.outcomes import NO_OUTPUTS, Outputs
from subchain.propagation.precision import SAFE_TRANSITION

if TYPE_CHECKING:
    from subchain.engines.cpu.fused import Fused
    from subchain.transitions.operators import Dense

Array = NDArray[np.float64]

LOGGER = logging.getLogger("subchain")

#: Largest relative deviation of statistics, log likelihoods and marginals from those of double precision; and the
#: largest of the lanes that are checked, since others may deviate more.
LARGEST_DEVIATION, OF_SAMPLES = 1e-5, 2e-6
#: One tile of so many is checked, and no more than so many tiles; of each, so many lanes and so many of their steps.
SHARE, MOST, LANES, STEPS = 128, 4, 16, 256
#: Entries are compared with the largest of their row, or with this share of the largest of all; with the second share
#: if any are negative, since sums of both signs may cancel.
FAINT, FAINT_OF_BOTH_SIGNS = 1e-6, 1e-2


@dataclasses.dataclass
class Checks:
    """What an engine has found out about its single precision.

    Attributes
    ----------
    n_checked : how often something was run in both precisions
    deviation : the largest relative difference that was found
    n_in_double : how often it was too large, so that a pass was made in double precision
    """

    n_checked: int = 0
    deviation: float = 0.0
    n_in_double: int = 0

    def add(self, deviation: float) -> bool:
        """Take what was found; return whether single precision is good enough."""
        is_good = deviation <= OF_SAMPLES
        self.n_checked += 1
        self.deviation = max(self.deviation, deviation)
        if not is_good:
            self.n_in_double += 1
            LOGGER.info("a pass is made in double precision: single precision deviates by %.2g", deviation)
        return is_good


def has_safe_ways(operator: Dense) -> bool:
    """Whether transitions are such that nothing that underflows in single precision can matter."""
    return bool(operator.weights.min() >= SAFE_TRANSITION[1])


def tiles_to_check(cut: Partition, transition: NDArray[Any]) -> list[int]:
    """Return the tiles of which some lanes are run in both precisions, spread over all tiles."""
    n_tiles = cut.n_tiles
    count = min(1 + n_tiles // SHARE, MOST)
    first = crc32(transition.tobytes()) % n_tiles
    return [(first + number * n_tiles // count) % n_tiles for number in range(count)]


def deviation(fused: Fused, cut: Partition, borders: Borders | None, lead: int, tile: int, outputs: Outputs) -> float:
    """Run lanes of a tile in both precisions; return the largest difference, zero if they need doubles anyway.

    Differences of statistics and log likelihoods are relative. Those of marginals, which count if marginals are wanted,
    are not.
    """
    messages, weights, n_states = fused.messages, fused.wants.weights, fused.messages.surrogate.n_states
    first, end = cut.lanes.tiles[tile : tile + 2]
    pieces = cut.order[first : min(end, first + LANES)]
    sample = _sample(cut, pieces, None if borders is None else lead)
    if borders is not None:  # those of the pass may be changing
        borders = borders.of(pieces) if lead == 0 else Borders.unknown(len(pieces), n_states)
    collect = _Checked(messages.surrogate, weights)
    exact = run_group(messages, sample, Group(0, [0]), borders, lead if lead > 0 else None, collect)
    parts, columns = list(exact.result.statistics.summed_parts()), sample.tiles[0].columns
    rows, done, totals = np.empty((1, sum(part.size for part in parts))), np.zeros(1, np.bool_), np.empty(len(pieces))
    claims = Claims(sample.group_bounds, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    tables = fused.tables(messages.workspace(), sample, lead)
    own, edges = NO_OUTPUTS._replace(totals=totals), edges_of(borders, n_states)
    fused.run(sample.weighed_lanes(weights), claims, edges, lead, tables, own, rows, done)
    if not done[0]:
        return 0.0
    log_totals = exact.tiles[0].log_totals
    found, at = [float((np.abs(totals - log_totals) / np.maximum(np.abs(log_totals), sample.length)).max())], 0
    for part in parts:
        table = part.reshape(len(part), -1)
        single = rows[0, at : at + part.size].reshape(table.shape)
        found.append(largest_difference(single, table))
        at += part.size
    if len(outputs.marginals):
        marginals = tables.marginals[: n_states * columns].reshape(n_states, columns)
        found.append(float(np.abs(marginals - collect.marginals).max()))
    return float(np.max(np.where(np.isnan(found), np.inf, found)))


def _sample(cut: Partition, pieces: Index, lead: int | None) -> Partition:
    """Return one tile of some pieces, as few of their steps as can be run alone.

    With `lead` there are messages at borders: they are to be estimated from so many positions beyond, or known if it is
    zero.
    """
    lengths, is_last = cut.length[pieces], cut.is_last[pieces]
    if lead is None:
        lengths = np.minimum(lengths, STEPS)
    elif lead > 0 and lengths.min() > STEPS + lead:
        lengths, is_last = np.full_like(lengths, STEPS), np.zeros_like(is_last)
    order, starts, is_first = np.arange(len(pieces)), cut.start[pieces], cut.is_first[pieces]
    lanes = TiledPieces(np.array([0, len(order)]), order, starts, lengths, is_first, is_last, np.empty(0))
    return Partition(cut.sequence[pieces], starts, lengths, is_first, is_last, order, lanes, np.array([0, 1]))


@kernel
def largest_difference(found, exact):  # type: ignore[no-untyped-def]
    """Return the largest |found − exact|, relative to the largest |exact| of its row; see `FAINT`.

    Where anything is not a number, neither is the result.
    """
    out, low, high = 0.0, 0.0, 0.0
    for i in range(exact.shape[0]):
        for j in range(exact.shape[1]):
            low, high = min(low, exact[i, j]), max(high, exact[i, j])
    least = max(FAINT * high, 1e-300) if low >= 0.0 else FAINT_OF_BOTH_SIGNS * max(high, -low)
    for i in range(exact.shape[0]):
        size, difference = least, 0.0
        for j in range(exact.shape[1]):
            own = abs(found[i, j] - exact[i, j])
            difference = own if not own <= difference else difference
            size = max(size, abs(exact[i, j]))
        if not difference <= out * size:
            out = difference / size
    return out


class _Checked(Collect):
    """Sums expected statistics, and keeps the marginals of the last tile, (K, n)."""

    marginals: Array

    def tile(self, result: Collected, run: TileRun) -> None:
        self.marginals = run.marginals.copy()
        super().tile(result, run)
