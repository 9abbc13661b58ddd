"""Statistics to begin with: every word picks its head by distance, at random, or with equal weights.

The harmonic start (Klein & Manning 2004) gives a head at distance d the weight 1 / d; a word of n is the root with
probability 1 / n. Words pick independently, so a head has no dependent on a side with the product of the probabilities
that none of the words there picks it.
"""

from __future__ import annotations

import numpy as np

from subchain.propagation.trees.passes import Shares
from subchain.propagation.trees.picking import pick_heads
from subchain.structures.trees.model import TreeStatistics
from subchain.structures.trees.structure import DependencyTrees, Trees

_NOTHING = np.zeros(0), np.zeros(0, dtype=np.int64)
STARTS = ("harmonic", "random", "uniform")


def start_statistics(structure: DependencyTrees, kind: str, rng: np.random.Generator) -> TreeStatistics:
    """Return the expected counts when words pick their heads; "random" weighs each pair of tags at random besides."""
    n_tags = structure.n_tags if kind == "random" else 0
    preferences = rng.standard_exponential((2, n_tags, n_tags))
    counts, totals = structure.nothing()
    for some in structure.blocks(np.arange(structure.n_clusters)):
        lengths = structure.lengths[some]
        places, rows = np.cumsum(lengths**2) - lengths**2, np.cumsum(lengths) - lengths
        shares = Shares(np.empty(int((lengths**2).sum())), np.empty((int(lengths.sum()), 2)))
        pick_heads(structure.tags, some, places, rows, kind != "uniform", preferences, shares)
        structure.add(Trees(shares, places, rows, *_NOTHING), some, counts, totals)
    return structure.record(counts, 0.0, structure.total_weight)
