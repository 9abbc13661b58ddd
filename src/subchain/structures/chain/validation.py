"""What held-out data say of a model: whole sequences, or single positions inside the training data."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.evidence import Evidence
from subchain.data.sequences import Sequences
from subchain.emissions.base import Likelihood
from subchain.engines.base import Engine
from subchain.engines.part import Part
from subchain.engines.results import MarginalBlock
from subchain.errors import InputError
from subchain.structures.chain.model import HMMPoint

#: Positions that are looked at together.
BLOCK = 1 << 14


@dataclasses.dataclass
class HeldOutSequences:
    """Sequences of their own; the score is their log likelihood per observation."""

    engine: Engine
    data: Sequences

    def score(self, point: HMMPoint) -> float:
        scores, _ = self.engine.scores(point.surrogate(), Part(self.data, point.evidence(self.data, None)))
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

    engine: Engine
    data: Sequences
    evidence: Evidence | None
    positions: NDArray[np.int64]
    values: NDArray[Any]

    def score(self, point: HMMPoint) -> float:
        found = np.full(len(self.positions), -np.inf)

        def predict(block: MarginalBlock) -> None:
            at = np.searchsorted(self.positions, block.positions)
            at[at == len(self.positions)] = 0
            columns = np.flatnonzero(self.positions[at] == block.positions)
            chosen = at[columns]
            if len(chosen):
                with np.errstate(divide="ignore"):
                    logs = point.emission.log_likelihood(self.values[chosen]) + np.log(block.table[:, columns])
                found[chosen] = np.logaddexp.reduce(logs, axis=0)

        self.engine.smooth(point.surrogate(), Part(self.data, point.evidence(self.data, self.evidence)), predict)
        return float(found.mean())

    def contents(self) -> Any:
        """What the score depends on, for telling fits apart."""
        return [self.positions, self.values]


def require_seen(reference: Likelihood, values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which of n held-out positions were observed, (n,); raise an `InputError` if none was."""
    blocks = np.split(values, range(BLOCK, len(values), BLOCK))
    seen = np.concatenate([(reference.log_likelihood(block) != 0.0).any(axis=0) for block in blocks])
    if not seen.any():
        raise InputError("HoldOut holds out only positions with missing observations; hold out others.")
    return seen
