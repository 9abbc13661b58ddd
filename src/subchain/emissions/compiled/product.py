"""Products of families for compiled passes: pairs of a family and the others."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from subchain.emissions.scaling import STRIP, doubles_like, exponentiate_strip
from subchain.propagation.lanes.observing import (
    add_observations,
    likelihoods,
    log_likelihoods,
    observation_room,
    observe,
)
from subchain.propagation.verbs import implements


class FamilyPair(NamedTuple):
    """A family and another, or further pairs. Both give log likelihoods: products of likelihoods would underflow.

    Attributes
    ----------
    first, others : families with verbs
    size : number of entries of the first one's sums
    """

    first: Any
    others: Any
    size: int


class SeenByBoth(NamedTuple):
    """The rooms of both."""

    first: Any
    others: Any


@implements(observation_room, FamilyPair)
def _room(family, columns):
    return SeenByBoth(observation_room(family.first, columns), observation_room(family.others, columns))


@implements(observe, FamilyPair)
def _observe(family, positions, seen):
    return observe(family.first, positions, seen.first) and observe(family.others, positions, seen.others)


@implements(log_likelihoods, FamilyPair)
def _logs(family, seen, out):
    log_likelihoods(family.first, seen.first, out)
    others = np.empty_like(out)
    log_likelihoods(family.others, seen.others, others)
    for k in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[k, i] += others[k, i]


@implements(likelihoods, FamilyPair)
def _likelihoods(family, seen, out, shift):
    logs, n = doubles_like(out), shift.shape[0]
    log_likelihoods(family, seen, logs)
    for start in range(0, n, STRIP):
        exponentiate_strip(logs, start, out, start, min(start + STRIP, n), shift.reshape(1, n))


@implements(add_observations, FamilyPair)
def _add(family, seen, marginals, sums):
    add_observations(family.first, seen.first, marginals, sums[: family.size])
    add_observations(family.others, seen.others, marginals, sums[family.size :])
