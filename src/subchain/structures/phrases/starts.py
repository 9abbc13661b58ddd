"""Statistics to begin with: under given, random, uniform or flat weights of the rules.

Under flat weights all trees of a sentence are equally likely. Under rules that are equally likely, by contrast, a tree
with few rules outweighs those with many by orders of magnitude, and no algorithm comes away from that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError
from subchain.structures.phrases.model import PhrasePoint, PhrasePosterior, PhraseStatistics
from subchain.structures.phrases.structure import PhraseTrees
from subchain.tables import GroupedWeights

Array = NDArray[np.float64]

STARTS = ("given", "random", "flat", "uniform")
#: Flat weights lie between these, so that symbols that are alike come to differ.
SPREAD = (0.5, 1.5)


def start_statistics(
    structure: PhraseTrees, kind: str, given: Array, prior: PhrasePosterior, rng: np.random.Generator
) -> PhraseStatistics:
    """Return the expected counts of all sentences that a run begins with."""
    allowed = prior.rules.concentration > 0.0
    if kind == "flat":
        components = structure.grammar.components
        if (components[:, 1] < components[:, 2]).any():
            raise InputError(
                "init='flat' takes all trees as equally likely, and a cycle of unary rules makes endlessly many; use "
                "init='random'."
            )
        weights = rng.uniform(*SPREAD, size=len(allowed))
    elif kind == "given":
        weights = given
    else:
        even = PhrasePosterior.of(structure.rules, allowed.astype(np.float64)).rules
        weights = (even.sample(rng) if kind == "random" else even.mean()).weights
    return begun(structure, weights, prior)


def begun(structure: PhraseTrees, weights: Array, prior: PhrasePosterior) -> PhraseStatistics:
    """Return the expected counts of all sentences under the weights of allowed rules that a run begins with."""
    point = PhrasePoint(GroupedWeights(np.where(prior.rules.concentration > 0.0, weights, 0.0)))
    found = structure.expected(point, np.arange(structure.n_clusters))
    found.origin = point
    return found
