"""What held-out data say of a model: whole sequences, or single positions inside the training data."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.evidence import Evidence
from subchain.data.sequences import Sequences
from subchain.emissions.base import Likelihood
from subchain.engines.cpu.consumers import Consumer, TileRun
from subchain.engines.cpu.engine import CpuEngine
from subchain.engines.cpu.log_space import LogBlock
from subchain.engines.cpu.messages import Messages
from subchain.structures.chain.model import HMMPoint

Array = NDArray[np.float64]


@dataclasses.dataclass
class HeldOutSequences:
    """Sequences of their own; the score is their log likelihood per observation."""

    engine: CpuEngine
    data: Sequences

    def score(self, point: HMMPoint) -> float:
        scores, _ = self.engine.scores(point.surrogate(), self.data)
        return float(scores.sum()) / max(self.data.n_observations, 1)

    def contents(self) -> Any:
        """What the score depends on, for telling fits apart."""
        return self.data


@dataclasses.dataclass
class HeldOutPositions:
    """Positions inside the training data, which miss them; the score is the mean log probability of what was observed
    there, given everything that is not held out.

    Attributes
    ----------
    data : the training data, without what is held out
    evidence : what is known of their states
    positions : (n,) flat positions, rising
    values : (n,) or (n, D), what was observed there
    """

    engine: CpuEngine
    data: Sequences
    evidence: Evidence | None
    positions: NDArray[np.int64]
    values: NDArray[Any]

    def score(self, point: HMMPoint) -> float:
        consumer = _Predict(point.emission, self.positions, self.values)
        messages = Messages(point.surrogate(), self.data, self.evidence)
        self.engine.run(messages, consumer)
        return float(consumer.logs.mean())

    def contents(self) -> Any:
        """What the score depends on, for telling fits apart."""
        return [self.positions, self.values]


class _Predict(Consumer[None]):
    """Log probabilities of what was held out, under the marginals that the rest gives."""

    def __init__(self, emission: Likelihood, positions: NDArray[np.int64], values: NDArray[Any]) -> None:
        self.emission = emission
        self.positions = positions
        self.values = values
        self.logs = np.full(len(positions), -np.inf)

    def begin(self) -> None:
        return None

    def tile(self, result: None, run: TileRun) -> None:
        self._predict(run.filtered.positions, run.marginals)

    def hard(self, result: None, sequence: int, block: LogBlock) -> None:
        self._predict(block.positions, block.marginals)

    def _predict(self, positions: NDArray[np.int64], marginals: Array) -> None:
        at = np.searchsorted(self.positions, positions)
        at[at == len(self.positions)] = 0
        columns = np.flatnonzero(self.positions[at] == positions)
        chosen = at[columns]
        if len(chosen):
            with np.errstate(divide="ignore"):
                logs = self.emission.log_likelihood(self.values[chosen]) + np.log(marginals[:, columns])
            self.logs[chosen] = np.logaddexp.reduce(logs, axis=0)
