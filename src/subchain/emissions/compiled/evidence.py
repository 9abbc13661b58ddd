"""Evidence about the hidden states for compiled passes: log weights, paired with a family's (`FamilyPair`)."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.data.evidence_arrays import EvidenceArrays
from subchain.emissions.compiled.product import FamilyPair
from subchain.propagation.lanes.observing import add_observations, log_likelihoods, observation_room, observe
from subchain.propagation.verbs import implements


def with_evidence(known: EvidenceArrays, family: Any) -> FamilyPair:
    """Return a family that gives log likelihoods, together with evidence, which has no sums."""
    return FamilyPair(known, family, 0)


class Positions(NamedTuple):
    """The positions of a tile, and how many of the room are in use."""

    positions: NDArray[np.int64]
    n: NDArray[np.int64]


@implements(observation_room, EvidenceArrays)
def _room(family, columns):
    return Positions(np.empty(columns, dtype=np.int64), np.zeros(1, dtype=np.int64))


@implements(observe, EvidenceArrays)
def _observe(family, positions, seen):
    seen.n[0] = positions.shape[0]
    for i in range(positions.shape[0]):
        seen.positions[i] = positions[i]
    return True


@implements(log_likelihoods, EvidenceArrays)
def _logs(family, seen, out):
    n_symbols = family.legal_of_symbols.shape[1] - 1
    for i in range(seen.n[0]):
        position, state, symbol = seen.positions[i], np.int64(-1), np.int64(-1)
        if family.states.shape[0] > 0:
            state = np.int64(family.states[position])
        if family.symbols.shape[0] > 0:
            symbol = np.int64(family.symbols[position])
            symbol = symbol if 0 <= symbol < n_symbols else np.int64(n_symbols)
        for k in range(out.shape[0]):
            own, weight = family.order[k], 0.0
            if family.log_weights.shape[0] > 0:
                weight = np.float64(family.log_weights[position, own])
            is_legal = state < 0 or state == own
            if family.legal.shape[0] > 0:
                is_legal = is_legal and family.legal[position, own]
            if symbol >= 0:
                is_legal = is_legal and family.legal_of_symbols[own, symbol]
            out[k, i] = weight if is_legal else -np.inf


@implements(add_observations, EvidenceArrays)
def _add(family, seen, marginals, sums):
    return
