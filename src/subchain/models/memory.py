"""Estimate of the memory that a fit needs.

The engine's tables have a fixed size and its sums the size of the model; only the messages at the boundaries of divided
sequences grow with the data, up to a limit. The estimate partitions the data in the same way as the engine and counts.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from subchain.data import as_sequences
from subchain.emissions import resolve_emission
from subchain.engines import resolve_engine
from subchain.inference import resolve_inference
from subchain.inference.start.starts import SAMPLE
from subchain.models.hmm import HMM
from subchain.transitions import resolve_transition

#: Number of tables of the model's size that an iteration holds at once: old and new statistics, prior, posterior,
#: parameters and look-up tables of likelihoods; OTHER_TABLES if the surrogate is not the point estimate.
POINT_TABLES, OTHER_TABLES = 6, 10


@dataclasses.dataclass(frozen=True)
class MemoryEstimate:
    """Bytes that a fit needs besides the data.

    Attributes
    ----------
    tables : likelihoods and messages of the tiles that are processed at the same time
    sums : statistics of the groups of tiles, before they are added
    model : prior, posterior and surrogate
    borders : messages at the boundaries of divided sequences, and the list of pieces
    start : sample for the initialisation, which is freed before the first pass
    kept : marginals of every position, kept by `CVI` (less with fewer legal states) and `VI(cluster="state")`
    """

    tables: int
    sums: int
    model: int
    borders: int
    start: int
    kept: int = 0

    @property
    def total(self) -> int:
        """Maximum number of bytes in use at the same time."""
        return self.model + self.kept + max(self.tables + self.sums + self.borders, self.start)

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {value / 1e6:.1f}" for name, value in dataclasses.asdict(self).items())
        return f"{self.total / 1e6:.1f} MB besides the data ({parts})"


def memory_estimate(model: HMM, x: Any) -> MemoryEstimate:
    """Return the bytes that `model.fit(x)` needs besides the data.

    Parameters
    ----------
    model : HMM
        Fitted or not; only its settings matter.
    x : as in `HMM.fit`
        Files are not read, except to count the symbols if their number was not given.

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
    transition = resolve_transition(model.transition)
    moves = transition.prior(n_states, flat=False).mean().operator
    sums_bytes = sum(array.nbytes for array in zeros.arrays().values()) + moves.weights.nbytes
    copies = 2 if transition.searches else 1  # a search over numbers of states keeps a copy to return to
    of_pass = resolve_engine(model.engine, model.n_jobs).pass_memory(data, moves, sums_bytes)
    has_features = emission.features(data, np.arange(1)) is not None
    return MemoryEstimate(
        **of_pass._asdict(),
        model=(POINT_TABLES if resolve_inference(model.inference).flat else OTHER_TABLES) * sums_bytes
        + copies * transition.held_bytes(n_states),
        kept=copies * resolve_inference(model.inference).kept_bytes(data.lengths, n_states),
        start=2 * 8 * n_states * min(data.n_observations, SAMPLE) if has_features else 0,
    )
