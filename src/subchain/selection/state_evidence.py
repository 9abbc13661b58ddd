"""Evidence about the hidden states and weights of the sequences, divided into folds like the data.

Evidence per symbol (a tag dictionary) holds for all folds; evidence per position is divided like the sequences.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from subchain.data import Sequences


class KnownOptions(TypedDict, total=False):
    """The fields of `Known` as keyword arguments."""

    allowed: Any
    states: Any
    evidence: Any
    sample_weight: Any


class Known(NamedTuple):
    """The arguments of `HMM.fit` with these names."""

    allowed: Any = None
    states: Any = None
    evidence: Any = None
    sample_weight: Any = None

    @property
    def of_states(self) -> dict[str, Any]:
        """Evidence about the states, as arguments of `HMM.score`."""
        return {"allowed": self.allowed, "states": self.states, "evidence": self.evidence}

    def weights(self, data: Sequences) -> NDArray[np.float64]:
        """Return the weight of each sequence, (n_sequences,)."""
        return np.ones(data.n_sequences) if self.sample_weight is None else np.asarray(self.sample_weight, np.float64)

    def take(self, data: Sequences, chosen: NDArray[np.bool_]) -> Known:
        """Return evidence and weights of the chosen sequences, (n_sequences,), of `data`."""
        return Known(
            _cut(data, self.allowed, chosen) if _has_rows(data, self.allowed) else self.allowed,
            _cut(data, self.states, chosen),
            _cut(data, self.evidence, chosen),
            None if self.sample_weight is None else np.asarray(self.sample_weight)[chosen],
        )


def _has_rows(data: Sequences, given: Any) -> bool:
    """Return whether legal states are given per position, not per symbol."""
    return _is_list(given) or getattr(given, "shape", ())[:1] == (data.n_observations,)


def _is_list(given: Any) -> bool:
    """Return whether `given` has one item, or None, per sequence; a list of numbers is a flat array."""
    return isinstance(given, (list, tuple, Sequences)) and (given[0] is None or np.ndim(given[0]) > 0)


def _cut(data: Sequences, given: Any, chosen: NDArray[np.bool_]) -> Any:
    """Return evidence per position as a list with one item for each chosen sequence."""
    if given is None:
        return None
    items = list(given) if _is_list(given) else data.split(np.asarray(given))
    return [items[sequence] for sequence in np.flatnonzero(chosen)]
