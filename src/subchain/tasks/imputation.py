"""Missing entries replaced by what the model expects there, given everything that was observed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data import is_missing
from subchain.emissions import Parameters
from subchain.engines.cpu.consumers import Consumer, TileRun
from subchain.engines.cpu.log_space import LogBlock
from subchain.tasks.question import Question


def impute(question: Question) -> NDArray[Any]:
    """The values with missing entries replaced; observed entries are as they were."""
    values, emission = question.data.values, question.point.emission
    kind = emission.fill(values[:1], np.full((question.n_states, 1), 1.0 / question.n_states)).dtype
    out = values.astype(kind)
    question.run(question.messages(), _Fill(emission, out))
    return out


class _Fill(Consumer[None]):
    """Writes the rows that have missing entries."""

    def __init__(self, emission: Parameters, out: NDArray[Any]) -> None:
        self.emission = emission
        self.out = out

    def begin(self) -> None:
        return None

    def tile(self, result: None, run: TileRun) -> None:
        self._write(run.filtered.positions, run.filtered.values, run.marginals)

    def hard(self, result: None, sequence: int, block: LogBlock) -> None:
        self._write(block.positions, block.values, block.marginals)

    def _write(self, positions: NDArray[np.int64], values: NDArray[Any], marginals: NDArray[np.float64]) -> None:
        missing = is_missing(values)
        rows = np.flatnonzero(missing if missing.ndim == 1 else missing.any(axis=1))
        if len(rows):
            self.out[positions[rows]] = self.emission.fill(values[rows], marginals[:, rows])
