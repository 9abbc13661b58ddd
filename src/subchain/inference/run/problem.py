"""What a run is about: the data, what is known of the hidden states, the prior, and who computes."""

from __future__ import annotations

import dataclasses

from subchain.core.statistics import Statistics
from subchain.engines.base import Engine
from subchain.engines.part import Part
from subchain.engines.surrogate import Surrogate
from subchain.inference.run.posterior import ModelPosterior
from subchain.inference.run.validation import Validation


@dataclasses.dataclass
class Problem:
    """Everything an algorithm may look at.

    Attributes
    ----------
    whole : all the training data
    prior : distribution over HMMs before the data
    exact : whether the components' updates maximise the bound
    validation : what held-out data say of a model, or None
    subchain_length : how long subchains are if the algorithm leaves that open
    """

    whole: Part
    prior: ModelPosterior
    engine: Engine
    exact: bool = True
    validation: Validation | None = None
    subchain_length: int | None = None

    def statistics(self, surrogate: Surrogate, part: Part) -> Statistics:
        """Expected statistics of a part of the data."""
        return self.engine.statistics(surrogate, part)


__all__ = ["Part", "Problem"]
