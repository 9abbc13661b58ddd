"""Dependency trees of sentences under a grammar: the most probable ones, or those of minimum Bayes risk."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.trees.charts import Rules
from subchain.propagation.trees.passes import BEST, EXPECT, safest_trees
from subchain.structures.trees.model import TreePoint
from subchain.structures.trees.structure import DependencyTrees

Index = NDArray[np.int64]

MOST_PROBABLE, SAFEST = "viterbi", "mbr"
METHODS = (MOST_PROBABLE, SAFEST)
#: Weight of a rule that has none, for sentences that cannot be derived without.
LEAST = 1e-300


def trees_of(structure: DependencyTrees, point: TreePoint, method: str) -> tuple[Index, list[int]]:
    """Return the heads of all words, and the numbers of the sentences that the grammar cannot derive."""
    heads = np.full(len(structure.tags.codes), -2, dtype=np.int64)
    impossible: list[int] = []
    for some in structure.blocks(np.arange(structure.n_clusters)):
        if method == SAFEST:
            found = structure.run(EXPECT, point.rules(), some)
            lengths = structure.lengths[some]
            trees = np.empty(int(lengths.sum()), dtype=np.int64)
            safest_trees(structure.tags, some, found.places, found.rows, found.shares, trees, int(lengths.max()))
        else:
            found = structure.run(BEST, point.rules(), some)
            trees = found.heads
        underivable = some[np.isneginf(found.logs)]
        impossible += underivable.tolist()
        _take(structure, some, trees, heads)
        if len(underivable):
            floored = Rules(*(np.maximum(table, LEAST) for table in point.rules()))
            _take(structure, underivable, structure.run(BEST, floored, underivable).heads, heads)
    return heads, impossible


def _take(structure: DependencyTrees, sentences: Index, found: Index, heads: Index) -> None:
    """Copy the heads of some sentences, one after the other, to their places among those of all."""
    starts, row = structure.tags.starts, 0
    for sentence, n in zip(sentences.tolist(), structure.lengths[sentences].tolist(), strict=True):
        heads[starts[sentence] : starts[sentence + 1]] = found[row : row + n]
        row += n
