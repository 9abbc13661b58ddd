"""Annotations split in two, merged and smoothed (Petrov et al. 2006): changes of statistics between two runs.

Since all of this is done to expected counts, every algorithm can be what runs between.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.latent.merging import merge_losses
from subchain.propagation.latent.trees import WORD
from subchain.structures.latent.grammar import TreebankGrammar
from subchain.structures.latent.layout import Layout, entries_of
from subchain.structures.latent.model import AnnotatedPoint
from subchain.structures.latent.structure import AnnotatedTrees

Index = NDArray[np.int64]
Array = NDArray[np.float64]

#: Weight of smoothing for words in units of that for other rules: 0.1 and 0.01 in the paper.
OF_WORDS = 10.0


def split_sizes(sizes: Index) -> Index:
    """Return the numbers of annotations when each is split in two; the root, the first symbol, has one."""
    found = 2 * sizes
    found[0] = 1
    return found


def annotations_of(layout: Layout) -> tuple[Index, Index, list[Index]]:
    """Return rule, entry, and annotations of parent, left and right child, of every split version of every rule."""
    shapes = layout.rules.sizes.astype(np.int64)
    versions = shapes.prod(axis=1)
    rule = np.repeat(np.arange(len(versions)), versions)
    within = np.arange(len(rule)) - np.repeat(np.cumsum(versions) - versions, versions)
    right, rest = within % shapes[rule, 2], within // shapes[rule, 2]
    return rule, entries_of(layout), [rest // shapes[rule, 1], rest % shapes[rule, 1], right]


def _children(grammar: TreebankGrammar) -> Index:
    """Return the symbols of each rule's parent and children, 0, the root, for what is none: it has one annotation."""
    found = grammar.rules.astype(np.int64)
    for place in (1, 2):
        found[grammar.arity < place, place] = 0
    return found


def _places(grammar: TreebankGrammar, fine: Layout, coarse: Layout, maps: list[Index]) -> Index:
    """Return, for every version of the fine layout, the entry of the coarse one that annotations are mapped to."""
    rule, _, annotations = annotations_of(fine)
    symbols = _children(grammar)
    first = np.cumsum([0, *map(len, maps)])
    flat = np.concatenate(maps)
    x, y, z = (flat[first[symbols[rule, place]] + annotations[place]] for place in range(3))
    shapes = coarse.rules.sizes.astype(np.int64)
    return coarse.rules.places[rule] + x * coarse.rules.strides[rule] + y * shapes[rule, 2] + z


def split_counts(
    grammar: TreebankGrammar, counts: Array, before: Layout, after: Layout, noise: float, rng: np.random.Generator
) -> Array:
    """Return counts spread over twice as many annotations, 2 x and 2 x + 1 for x, with noise 1 + U(−ε, ε)."""
    maps = [np.arange(size) * old // size for size, old in zip(after.sizes, before.sizes, strict=True)]
    places = _places(grammar, after, before, maps)
    versions = np.bincount(places, minlength=before.n_entries)
    found = np.empty(after.n_entries)
    found[entries_of(after)] = counts[places] / versions[places]
    return found * (1.0 + rng.uniform(-noise, noise, len(found)))


def merge_maps(structure: AnnotatedTrees, grammar: TreebankGrammar, point: AnnotatedPoint, share: float) -> list[Index]:
    """Return, for each symbol, the new annotation of each, when a share of the pairs that were split is merged."""
    layout, parents = structure.layout, grammar.rules[:, 0].astype(np.int64)
    counts = structure.expected(point, np.arange(structure.n_clusters)).rules.counts
    frequencies = np.add.reduceat(counts, np.cumsum(layout.widths) - layout.widths)
    losses = np.zeros((len(layout.sizes), max(int(layout.sizes.max()) // 2, 1)))
    for some in structure.blocks(np.arange(structure.n_clusters)):
        forest = structure.take(some)
        found = structure.run(point.rules.weights, forest, with_slopes=True)
        merge_losses(
            forest, parents, layout.rows, layout.rules, found.inside, found.slopes, frequencies, losses
        )  # fmt: skip
    pairs = [(losses[a, pair], a, pair) for a, size in enumerate(layout.sizes.tolist()) for pair in range(size // 2)]
    merged = {(a, pair) for _, a, pair in sorted(pairs)[: round(share * len(pairs))]}
    return [_map_of(a, size, merged) for a, size in enumerate(layout.sizes.tolist())]


def _map_of(symbol: int, size: int, merged: set[tuple[int, int]]) -> Index:
    """Return the new annotations of one symbol."""
    begins = np.ones(size, dtype=np.int64)
    begins[[2 * pair + 1 for pair in range(size // 2) if (symbol, pair) in merged]] = 0
    return np.cumsum(begins) - 1


def merge_counts(grammar: TreebankGrammar, counts: Array, before: Layout, after: Layout, maps: list[Index]) -> Array:
    """Return counts of merged annotations, which are added."""
    places = _places(grammar, before, after, maps)
    return np.bincount(places, counts[entries_of(before)], after.n_entries).astype(np.float64)


def smooth_counts(grammar: TreebankGrammar, counts: Array, layout: Layout, weight: float) -> Array:
    """Return counts whose shares of a row are drawn towards the mean over the annotations of the symbol.

    Each row keeps its total. Words are drawn ten times as much as other rules.
    """
    found = np.empty_like(counts)
    weights = np.where(grammar.arity == WORD, min(OF_WORDS * weight, 1.0), weight)
    parents, place, first_row = grammar.rules[:, 0], 0, 0
    for symbol, size in enumerate(layout.sizes.tolist()):
        width = int(layout.widths[first_row])
        table = counts[place : place + size * width].reshape(size, width)
        totals = table.sum(axis=1, keepdims=True)
        shares = table / np.where(totals > 0.0, totals, 1.0)
        own = np.flatnonzero(parents == symbol)
        entries = layout.rules.sizes[own, 1].astype(np.int64) * layout.rules.sizes[own, 2]
        drawn = np.repeat(weights[own], entries)
        mixed = (1.0 - drawn) * shares + drawn * shares.mean(axis=0)
        kept = mixed.sum(axis=1, keepdims=True)
        found[place : place + size * width] = (totals * mixed / np.where(kept > 0.0, kept, 1.0)).ravel()
        place, first_row = place + size * width, first_row + size
    return found
