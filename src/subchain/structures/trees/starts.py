"""Statistics to begin with: every word picks its head by distance, at random, or with equal weights.

The harmonic start (Klein & Manning 2004) gives a head at distance d the weight 1 / d; a word of n is the root with
probability 1 / n. Words pick independently, so a head has no dependent on a side with the product of the probabilities
that none of the words there picks it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.trees.charts import LEFT, RIGHT
from subchain.propagation.trees.passes import Shares
from subchain.structures.trees.model import TreeStatistics
from subchain.structures.trees.structure import DependencyTrees, Trees

Array = NDArray[np.float64]

STARTS = ("harmonic", "random", "uniform")


def start_statistics(structure: DependencyTrees, kind: str, rng: np.random.Generator) -> TreeStatistics:
    """Return the expected counts when words pick their heads; "random" weighs each pair of tags at random besides."""
    preferences = rng.standard_exponential((2, structure.n_tags, structure.n_tags)) if kind == "random" else None

    def weigh(tags: NDArray[np.int32]) -> Array:
        places = np.arange(len(tags))
        distances = np.abs(places[:, None] - places)
        weights = np.ones(distances.shape) if kind == "uniform" else 1.0 / np.maximum(distances, 1)
        if preferences is not None:
            side = np.where(places > places[:, None], RIGHT, LEFT)
            weights = weights * preferences[side, tags[:, None], tags]
        np.fill_diagonal(weights, 0.0)
        return weights

    return _picked(structure, weigh)


def _picked(structure: DependencyTrees, weigh: Callable[[NDArray[np.int32]], Array]) -> TreeStatistics:
    """Return the expected counts when words pick heads (rows) in proportion to the weights of each sentence."""
    tags, everything = structure.tags, np.arange(structure.n_clusters)
    shares = Shares(np.zeros(structure.places[-1]), np.ones((len(tags.codes), 2)))
    for sentence in np.flatnonzero(structure.lengths).tolist():
        first, last = tags.starts[sentence : sentence + 2]
        n = int(last - first)
        arcs = np.ones((1, 1))
        if n > 1:
            weights = weigh(tags.codes[first:last])
            arcs = weights / weights.sum(axis=0) * (1.0 - 1.0 / n)
            free = 1.0 - arcs
            shares.childless[first:last, LEFT] = [free[h, :h].prod() for h in range(n)]
            shares.childless[first:last, RIGHT] = [free[h, h + 1 :].prod() for h in range(n)]
            np.fill_diagonal(arcs, 1.0 / n)
        shares.arcs[structure.places[sentence] : structure.places[sentence + 1]] = arcs.ravel()
    counts, totals = structure.nothing()
    nothing = np.zeros(0), np.zeros(0, dtype=np.int64)
    found = Trees(shares, structure.places[:-1], tags.starts[:-1], *nothing)
    structure.add(found, everything, counts, totals)
    return structure.record(counts, 0.0, structure.total_weight)
