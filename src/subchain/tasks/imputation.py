"""Imputation: missing entries replaced by their posterior expectation given all observations of the sequence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data import is_missing
from subchain.engines.results import MarginalBlock
from subchain.tasks.question import Question


def impute(question: Question) -> NDArray[Any]:
    """Return the values with missing entries replaced; observed entries are unchanged."""
    values, emission = question.data.values, question.point.emission
    kind = emission.fill(values[:1], np.full((question.n_states, 1), 1.0 / question.n_states)).dtype
    out = values.astype(kind)

    def fill(block: MarginalBlock) -> None:
        missing = is_missing(values[block.positions])
        rows = np.flatnonzero(missing if missing.ndim == 1 else missing.any(axis=1))
        if len(rows):
            at = block.positions[rows]
            out[at] = emission.fill(values[at], block.table[:, rows])

    question.engine.smooth(question.surrogate, question.part, fill).checked()
    return out
