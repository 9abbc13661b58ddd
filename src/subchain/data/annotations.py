"""What `HMM.fit` is told about the sequences: evidence about their hidden states, and their weights.

Some of the sequences take their annotations with them: evidence per position is divided like the sequences; evidence
per symbol (a tag dictionary) holds for all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from subchain.data.sequences import Sequences
from subchain.errors import InputError


class AnnotationOptions(TypedDict, total=False):
    """The fields of `Annotations` as keyword arguments."""

    allowed: Any
    states: Any
    evidence: Any
    sample_weight: Any


class Annotations(NamedTuple):
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
        """Return the checked weight of each sequence, (n_sequences,)."""
        given, n_sequences = self.sample_weight, data.n_sequences
        try:
            weights = np.ones(n_sequences) if given is None else np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"sample_weight must hold numbers, one for each sequence, not {given!r}.") from None
        if weights.shape != (n_sequences,):
            raise InputError(
                f"sample_weight has shape {weights.shape}; expected one for each of {n_sequences} sequences."
            )
        if not np.isfinite(weights).all() or (weights < 0.0).any() or not weights.any():
            raise InputError("sample_weight must be finite, not negative, and not all zero.")
        return weights

    def take(self, data: Sequences, chosen: NDArray[np.bool_]) -> Annotations:
        """Return evidence and weights of the chosen sequences, (n_sequences,), of `data`."""
        return Annotations(
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
    return isinstance(given, (list, tuple, Sequences)) and (not len(given) or given[0] is None or np.ndim(given[0]) > 0)


def _cut(data: Sequences, given: Any, chosen: NDArray[np.bool_]) -> Any:
    """Return evidence per position as a list with one item for each chosen sequence."""
    if given is None:
        return None
    if _is_list(given):
        items = list(given)
        if len(items) != data.n_sequences:
            raise InputError(f"evidence is given for {len(items)} sequences, but there are {data.n_sequences}.")
    else:
        rows = np.asarray(given)
        if rows.shape[:1] != (data.n_observations,):
            raise InputError(
                f"evidence about the states has shape {rows.shape}; give one row for each of the "
                f"{data.n_observations} positions, or a list with one array per sequence."
            )
        items = data.split(rows)
    return [items[sequence] for sequence in np.flatnonzero(chosen)]
