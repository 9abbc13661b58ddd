"""What a run will take, told before it begins.

The engine's tables have a fixed size, its sums that of the model; only the messages at the borders of cut chains grow
with the data, up to a limit. All of it follows from the way the data are cut, so the estimate cuts them the same way
and counts.
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

#: Tables of the model's size that an iteration holds at once: statistics old and new, prior, posterior, the point and
#: the tables that likelihoods are looked up in; where the surrogate is not the point, also what it is made from.
POINT_TABLES, OTHER_TABLES = 6, 10


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
    of_pass = resolve_engine(model.engine, model.n_jobs).pass_memory(data, n_states, sums_bytes)
    has_features = emission.features(data, np.arange(1)) is not None
    return MemoryEstimate(
        **of_pass._asdict(),
        model=(POINT_TABLES if resolve_inference(model.inference).flat else OTHER_TABLES) * sums_bytes
        + copies * transition.held_bytes(n_states),
        kept=copies * resolve_inference(model.inference).kept_bytes(data.lengths, n_states),
        start=2 * 8 * n_states * min(data.n_observations, SAMPLE) if has_features else 0,
    )
