"""What a fit is told beside the data: knowledge of the hidden states and weights of the sequences, cut along with them.

Knowledge per symbol (a tag dictionary) holds for every part of the data; knowledge per position belongs to its
sequence, and goes where that goes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.data import Sequences


class Known(NamedTuple):
    """Arguments of `HMM.fit` of the same names."""

    allowed: Any = None
    states: Any = None
    evidence: Any = None
    sample_weight: Any = None

    @property
    def of_states(self) -> dict[str, Any]:
        """What is known of the states, as arguments of `HMM.score`."""
        return {"allowed": self.allowed, "states": self.states, "evidence": self.evidence}

    def weights(self, data: Sequences) -> NDArray[np.float64]:
        """How often each sequence counts, (n_sequences,)."""
        return np.ones(data.n_sequences) if self.sample_weight is None else np.asarray(self.sample_weight, np.float64)

    def take(self, data: Sequences, chosen: NDArray[np.bool_]) -> Known:
        """What is known of some of the sequences of `data`."""
        return Known(
            _cut(data, self.allowed, chosen) if _has_rows(data, self.allowed) else self.allowed,
            _cut(data, self.states, chosen),
            _cut(data, self.evidence, chosen),
            None if self.sample_weight is None else np.asarray(self.sample_weight)[chosen],
        )


def _has_rows(data: Sequences, given: Any) -> bool:
    """Whether legal states are said of positions, not of symbols."""
    return _is_list(given) or getattr(given, "shape", ())[:1] == (data.n_observations,)


def _is_list(given: Any) -> bool:
    """Whether there is an item, or None, for each sequence; a list of numbers stands for a flat array."""
    return isinstance(given, (list, tuple, Sequences)) and (given[0] is None or np.ndim(given[0]) > 0)


def _cut(data: Sequences, given: Any, chosen: NDArray[np.bool_]) -> Any:
    """Knowledge per position, as a list with an item for each of the chosen sequences."""
    if given is None:
        return None
    items = list(given) if _is_list(given) else data.split(np.asarray(given))
    return [items[sequence] for sequence in np.flatnonzero(chosen)]
