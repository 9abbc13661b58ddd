"""What a run will take, told before it begins.

The engine's tables have a fixed size, its sums that of the model; only the messages at the borders of cut chains grow
with the data, up to a limit. All of it follows from the way the data are cut, so the estimate cuts them the same way
and counts.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from subchain.data import Sequences, as_sequences
from subchain.emissions import resolve_emission
from subchain.engines import resolve_engine
from subchain.engines.cpu.engine import WHOLE, piece_length
from subchain.engines.cpu.partition import partition
from subchain.inference import resolve_inference
from subchain.inference.start.starts import SAMPLE
from subchain.models.hmm import HMM
from subchain.transitions import resolve_transition

#: How early pieces of a chain start, if nothing is known of it.
TYPICAL_LEAD = 64
#: Tables of the model's size that an iteration holds at once: statistics old and new, prior, posterior, the point and
#: the tables that likelihoods are looked up in; where the surrogate is not the point, also what it is made from.
POINT_TABLES, OTHER_TABLES = 6, 10
#: Vectors over a tile's columns beside its tables.
TILE_VECTORS = 9


@dataclasses.dataclass(frozen=True)
class MemoryEstimate:
    """Bytes that a fit takes beside the data.

    Attributes
    ----------
    tables : likelihoods and messages of the tiles that are worked on at once
    sums : statistics of the groups, before they are added
    model : prior, posterior and surrogate
    borders : messages at the borders of cut chains, and the list of their pieces
    start : the sample that a start is guessed from, which is gone when the first pass begins
    kept : what is kept of every position, by `CVI` (fewer legal states take less) and `VI(cluster="state")`
    """

    tables: int
    sums: int
    model: int
    borders: int
    start: int
    kept: int = 0

    @property
    def total(self) -> int:
        """The most that is held at once."""
        return self.model + self.kept + max(self.tables + self.sums + self.borders, self.start)

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {value / 1e6:.1f}" for name, value in dataclasses.asdict(self).items())
        return f"{self.total / 1e6:.1f} MB beside the data ({parts})"


def memory_estimate(model: HMM, x: Any) -> MemoryEstimate:
    """Bytes that `model.fit(x)` will take beside the data.

    Parameters
    ----------
    model : HMM
        Fitted or not; its settings count.
    x : as in `HMM.fit`
        Files are not read, except to learn the number of symbols if it was not given.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, memory_estimate
    >>> estimate = memory_estimate(HMM(12, "gaussian", n_jobs=2), np.zeros((100_000, 3)))
    >>> estimate.total < 50e6
    True
    """
    data = as_sequences(x)
    n_states = int(model.n_states)
    emission = resolve_emission(model.emission)
    zeros = emission.prior(data, n_states, flat=False).mean().zeros()
    sums_bytes = sum(array.nbytes for array in zeros.arrays().values()) + 8 * n_states**2
    transition = resolve_transition(model.transition)
    copies = 2 if transition.searches else 1  # one to return to from what does not help
    estimate = _pass(data, n_states, sums_bytes, resolve_engine(model.engine, model.n_jobs).n_jobs)
    has_features = emission.features(data, np.arange(1)) is not None
    return dataclasses.replace(
        estimate,
        model=(POINT_TABLES if resolve_inference(model.inference).flat else OTHER_TABLES) * sums_bytes
        + copies * transition.held_bytes(n_states),
        kept=copies * resolve_inference(model.inference).kept_bytes(data.lengths, n_states),
        start=2 * 8 * n_states * min(data.n_observations, SAMPLE) if has_features else 0,
    )


def _pass(data: Sequences, n_states: int, sums_bytes: int, workers: int) -> MemoryEstimate:
    longest = int(data.lengths.max(initial=0))
    piece = max(longest, 1) if longest <= WHOLE else piece_length(TYPICAL_LEAD, data.n_observations)
    cut = partition(data.offsets, np.arange(data.n_sequences), piece, n_states, sums_bytes)
    columns = max((tile.columns for tile in cut.tiles), default=0)
    value_bytes = 8 * data.n_features
    tile_bytes = columns * (3 * 8 * n_states + TILE_VECTORS * 8 + 2 * value_bytes)
    pieces = len(cut.start)
    per_piece = 2 * 26 + 4 * 8 + 8 + (9 * 8 * n_states if cut.is_cut else 0)
    return MemoryEstimate(
        tables=tile_bytes * min(workers, max(len(cut.groups), 1)),
        sums=sums_bytes * (len(cut.groups) + 1),
        model=0,
        borders=pieces * per_piece,
        start=0,
    )
