"""Links of sentence pairs from the posteriors of their cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.data.links import Links
from subchain.propagation.alignment.cooccurrence import Cells
from subchain.propagation.alignment.decoding import mark_best, mark_products
from subchain.tasks.symmetrization import symmetrize

#: Methods that keep links whose posteriors have a geometric mean above a threshold, and add some beside these, or not.
GROWN_PRODUCT, PRODUCT = "grow-product", "product"
PRODUCTS = (GROWN_PRODUCT, PRODUCT)


def links_of(cells: Cells, posteriors: NDArray[np.float32], method: str, threshold: float) -> Links:
    """Return the links of all sentence pairs, given posteriors (n_cells, 2) of both directions.

    `method` is one of `PRODUCTS`, or of `symmetrize`, which combines the most probable positions of each word.
    """
    if method in PRODUCTS:
        kept = np.zeros(len(posteriors), dtype=np.int8)
        mark_products(cells, posteriors, float(threshold), method == GROWN_PRODUCT, kept)
        return _marked(cells, kept)
    sides = []
    for direction in range(2):
        marked = np.zeros(len(posteriors), dtype=np.bool_)
        mark_best(cells, posteriors, direction, marked)
        sides.append(_marked(cells, marked))
    found: Links = symmetrize(sides[0], sides[1], method)
    return found


def _marked(cells: Cells, marked: NDArray[np.bool_] | NDArray[np.int8]) -> Links:
    """Return the cells that are marked as links."""
    places = np.flatnonzero(marked)
    pairs = np.searchsorted(cells.starts, places, side="right") - 1
    n_source = np.diff(cells.source_starts)[pairs]
    target, source = np.divmod(places - cells.starts[pairs], np.maximum(n_source, 1))
    return Links.from_flat(pairs, source, target, len(cells.starts) - 1)
