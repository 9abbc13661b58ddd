"""What a run is about: the data, what is known of the hidden states, the prior, and who computes."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from subchain.data.evidence import Evidence
from subchain.data.sequences import Sequences
from subchain.engines.cpu import CpuEngine
from subchain.engines.surrogate import Surrogate
from subchain.inference.posterior import ModelPosterior, Point
from subchain.statistics import Statistics


@dataclasses.dataclass
class Part:
    """Sequences that are visited together, with what is known of their states and how often each counts."""

    data: Sequences
    evidence: Evidence | None = None
    weights: NDArray[np.float64] | None = None


@dataclasses.dataclass
class Problem:
    """Everything an algorithm may look at.

    Attributes
    ----------
    whole : all the training data
    prior : distribution over HMMs before the data
    exact : whether the components' updates maximise the bound
    validation : held-out data, or None
    """

    whole: Part
    prior: ModelPosterior
    engine: CpuEngine
    exact: bool = True
    validation: Part | None = None

    def statistics(self, surrogate: Surrogate, part: Part) -> Statistics:
        """Expected statistics of a part of the data."""
        return self.engine.statistics(surrogate, part.data, part.evidence, part.weights)

    def held_out_score(self, point: Point) -> float:
        """Log likelihood per observation of the validation data."""
        assert self.validation is not None
        data = self.validation.data
        scores, _ = self.engine.scores(point.surrogate(), data, self.validation.evidence)
        return float(scores.sum()) / max(data.n_observations, 1)
