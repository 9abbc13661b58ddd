"""Draws of whole trees of phrases: there is as much room as their rules take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError
from subchain.propagation.phrases.passes import DRAW

if TYPE_CHECKING:
    from subchain.structures.phrases.structure import PhraseTrees

Index = NDArray[np.int64]
Array = NDArray[np.float64]

#: Rules of a drawn tree that goes round cycles of unary rules.
MOST_RULES = 1 << 20


def drawn_trees(structure: PhraseTrees, weights: Array, clusters: Index, rng: np.random.Generator) -> list[Index]:
    """Draw the trees of sentences as lists of rules, empty where there is no tree.

    A tree that has no room, since it goes round cycles of unary rules, is drawn again by the same random numbers with
    twice the room: it is the same tree, and long ones are as frequent as they are probable.
    """
    trees: list[Index] = [np.zeros(0, dtype=np.int64)] * len(clusters)
    key = rng.integers(1 << 63, size=2).astype(np.uint64)
    left, sizes = np.arange(len(clusters)), structure.tree_sizes(clusters)
    while len(left):
        unfinished = [left[:0]]
        for some in structure.blocks(left, 1 + sizes[left]):
            found = structure.run(DRAW, weights, clusters[some], key, sizes[some])
            assert found.trees is not None
            for place, tree in zip(some.tolist(), found.trees, strict=True):
                trees[place] = tree
            is_possible = (structure.lengths[clusters[some]] > 0) & ~np.isneginf(found.logs)
            rest = some[is_possible & np.array([not len(tree) for tree in found.trees], dtype=bool)]
            _check_room(clusters[rest], sizes[rest])
            unfinished.append(rest)
        left = np.concatenate(unfinished)
        sizes[left] = np.minimum(2 * sizes[left], MOST_RULES)
    return trees


def _check_room(clusters: Index, sizes: Index) -> None:
    """Raise an `InputError` if trees of these sentences went beyond all the room that there can be."""
    full = np.flatnonzero(sizes >= MOST_RULES)
    if len(full):
        raise InputError(
            f"the tree that was drawn for sentence {clusters[full[0]]} has more than {sizes[full[0]]:,} rules: cycles "
            "of unary rules have nearly all the weight; give the other rules more."
        )
