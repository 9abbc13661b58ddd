"""What the memory of a fit is made of."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class MemoryEstimate:
    """Bytes that a fit needs besides the data.

    Attributes
    ----------
    tables : likelihoods and messages of the tiles, minibatches or chains that are processed at the same time
    sums : statistics of the groups of tiles, before they are added
    model : prior, posterior and surrogate
    borders : messages at the boundaries of divided sequences, and the list of pieces
    start : sample for the initialisation, which is freed before the first pass; for word aligners what is kept, and
        what it takes to make weights of the counts of all word pairs
    kept : what a run keeps of every position or subchain: marginals (`CVI`, less with fewer legal states, and
        `VI(cluster="state")`), counts of draws (`Gibbs`), states (`Beam`), guards
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
        return self.model + max(self.kept + self.tables + self.sums + self.borders, self.start)

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {value / 1e6:.1f}" for name, value in dataclasses.asdict(self).items())
        return f"{self.total / 1e6:.1f} MB besides the data ({parts})"
