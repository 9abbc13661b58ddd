"""How chains are cut for a pass: by their mixing time, and not anew for every pass.

Pieces must start early enough for the chain to forget where it started. How early is measured for every pass, since the
parameters change; it is rounded up, so that the cut stays the same for many passes. A cut is a function of the data and
the parameters alone: a run that is resumed cuts as the one that was interrupted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.data.sequences import Sequences
from subchain.engines.cpu.kernels import has_wide_steps
from subchain.engines.cpu.partition import Index, Partition, partition
from subchain.engines.cpu.precision import Precision
from subchain.engines.results import PassMemory
from subchain.transitions.operators import TransitionOperator

if TYPE_CHECKING:
    from subchain.engines.cpu.messages import Messages

Array = NDArray[np.float64]

#: Sequences up to this length are never cut.
WHOLE = 1024
#: A piece is so many times as long as what it runs beyond its borders.
LEAD_SHARE = 16
#: Pieces that are worth having side by side even if they are short.
FEW_PIECES = 32
#: Most pieces of a chain, which bounds the memory for its borders.
MOST_PIECES = 1 << 18
#: Places where a chain's mixing time is measured.
PROBES = 16

#: How early pieces of a chain start, if nothing is known of it.
TYPICAL_LEAD = 64
#: Vectors over a tile's columns beside its tables.
TILE_VECTORS = 12


class _Kept(NamedTuple):
    """A cut and what it was made for."""

    offsets: Index
    settings: tuple[int, ...]
    cut: Partition


class Cuts:
    """The cut of the last pass over all sequences, for the next one, and the room for its groups' sums.

    There is one cut for each precision.
    """

    def __init__(self) -> None:
        self._kept: dict[Precision, _Kept] = {}
        self._rows: Array | None = None

    def take_rows(self, n_groups: int, size: int) -> Array:
        """Return a table (n_groups, size), undefined; that of the last pass if there is one that fits."""
        rows, self._rows = self._rows, None
        return rows if rows is not None and rows.shape == (n_groups, size) else np.empty((n_groups, size))

    def keep_rows(self, rows: Array) -> None:
        """Keep a table for the next pass: memory that was used before is faster than fresh one."""
        self._rows = rows

    def choose(self, messages: Messages, chosen: Index, precision: Precision) -> tuple[Partition, int | None]:
        """Choose the length of pieces by the chain's mixing time; return the cut and how early pieces must start.

        The latter is None where starting early does not help.
        """
        lengths = messages.data.lengths
        lengths = lengths if len(chosen) == len(lengths) else lengths[chosen]
        longest = int(lengths.max(initial=0))
        if longest <= WHOLE:
            return self._cut(messages, chosen, max(longest, 1), precision), 0
        lead = _lead(messages, chosen[lengths > WHOLE], precision.rounding)
        piece = 2 * WHOLE + 1 if lead is None else piece_length(lead, int(lengths.sum()))
        return self._cut(messages, chosen, piece, precision), lead

    def _cut(self, messages: Messages, chosen: Index, piece: int, precision: Precision) -> Partition:
        offsets, n_states, is_wide = messages.data.offsets, messages.surrogate.n_states, messages.kernels.is_wide
        sums_bytes = sum(array.nbytes for array in messages.surrogate.emission.zeros().arrays().values())
        settings, kept = (len(chosen), piece, n_states, sums_bytes, is_wide), self._kept.get(precision)
        if kept is not None and kept.offsets is offsets and kept.settings == settings:
            return kept.cut
        cut = partition(offsets, chosen, piece, n_states, sums_bytes, is_wide=is_wide, size=precision.size)
        if len(chosen) == len(offsets) - 1:
            self._kept[precision] = _Kept(offsets, settings, cut)
        return cut


def piece_length(lead: int, total: int) -> int:
    """Length of the pieces of chains with so many positions in all, if pieces start `lead` positions early."""
    piece = max(LEAD_SHARE * lead, 128, total // MOST_PIECES) + 1
    few = total < FEW_PIECES * piece
    return max(total // FEW_PIECES, 2 * lead, 64) + 1 if few else piece


def _lead(messages: Messages, long: Index, rounding: float) -> int | None:
    """How many steps early a piece has to start, by probes spread over the long sequences; None: never enough."""
    offsets = messages.data.offsets
    steps = WHOLE // 16
    while steps < WHOLE:
        room = offsets[long + 1] - offsets[long] - steps
        ends = np.cumsum(room)
        at = np.linspace(0, ends[-1] - 1, PROBES).astype(np.int64)
        which = np.searchsorted(ends, at, side="right")
        starts = offsets[long[which]] + at - (ends[which] - room[which])
        time = messages.mixing_time(starts, steps, rounding)
        if time is not None:
            return min(_rounded(time + time // 2 + 16), WHOLE // 2)
        steps *= 2
    return None


def _rounded(lead: int) -> int:
    """Return the next number that is one of few: at most a quarter larger."""
    unit = 1 << max(lead.bit_length() - 3, 3)
    return -(-lead // unit) * unit


def pass_memory(data: Sequences, transition: TransitionOperator, sums_bytes: int, n_jobs: int) -> PassMemory:
    """Bytes of a pass over data that are cut as a chain with a typical mixing time would be."""
    longest = int(data.lengths.max(initial=0))
    piece = max(longest, 1) if longest <= WHOLE else piece_length(TYPICAL_LEAD, data.n_observations)
    n_states = transition.n_states
    is_wide = has_wide_steps(transition)
    cut = partition(data.offsets, np.arange(data.n_sequences), piece, n_states, sums_bytes, is_wide=is_wide)
    columns = cut.most_columns(0)
    value_bytes = 8 * data.n_features
    tile_bytes = columns * (3 * 8 * n_states + TILE_VECTORS * 8 + 2 * value_bytes)
    per_piece = 3 * 26 + 5 * 8 + 8 + (9 * 8 * n_states if cut.is_cut else 0)
    return PassMemory(
        tables=tile_bytes * min(n_jobs, max(cut.n_groups, 1)),
        sums=sums_bytes * (cut.n_groups + 1),
        borders=len(cut.start) * per_piece,
        n_jobs=n_jobs,
    )
