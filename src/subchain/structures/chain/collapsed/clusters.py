"""Clusters: the parts of the data that collapsed inference visits one after the other.

A cluster is one or several *pieces*: whole sequences, stretches of them, or single positions. Pieces that are visited
together lie far from each other, so that they say little about one another.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from subchain.engines.subchains import Grid
from subchain.propagation.collapsed.pieces import Pieces

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Clusters:
    """All clusters of some sequences.

    Parameters
    ----------
    offsets : (n_sequences + 1,) where the sequences begin
    length : positions of a piece; None for whole sequences
    cluster_size : pieces of a cluster
    weights : (n_sequences,) how often each sequence counts, or None

    Attributes
    ----------
    size : number of clusters
    starts, lengths, is_first, is_last : (G,) first position and number of positions of each piece, and whether it
        begins or ends its sequence
    share_of : (G,) row of the table of expected transitions that belongs to each piece's cluster; row 0 is for clusters
        without inner transitions and stays zero
    n_shares : rows of that table
    """

    def __init__(self, offsets: Index, length: int | None, cluster_size: int, weights: Array | None) -> None:
        self.grid = Grid(offsets, length)
        self.weights = weights
        self.size = -(-self.grid.size // cluster_size)
        pieces = self.grid.batch(np.arange(self.grid.size))
        order = np.argsort(pieces.pieces)
        self.starts, self.lengths = pieces.starts[order], pieces.lengths[order]
        self.sequences = pieces.sequences[order]
        self.is_first, self.is_last = pieces.is_first[order], pieces.is_last[order]
        cluster = np.arange(self.grid.size) % max(self.size, 1)
        has_inner = np.zeros(self.size, dtype=np.bool_)
        has_inner[cluster[self.lengths > 1]] = True
        rows = np.where(has_inner, np.cumsum(has_inner), 0)
        self.share_of = rows[cluster]
        self.n_shares = int(has_inner.sum()) + 1

    def pieces(self, cluster: int) -> Index:
        """Numbers of a cluster's pieces."""
        return np.arange(cluster, self.grid.size, self.size)

    @cached_property
    def kernel(self) -> Pieces:
        """The pieces for kernels."""
        weights = np.empty(0) if self.weights is None else self.weights_of(self.sequences)
        stops = self.starts + self.lengths
        return Pieces(self.starts, stops, self.is_first, self.is_last, self.share_of, weights, self.size)

    def weights_of(self, sequences: Index) -> Array:
        """How often sequences count."""
        return np.ones(len(sequences)) if self.weights is None else self.weights[sequences]

    def positions(self, pieces: Index) -> Index:
        """Flat positions of pieces, one after the other."""
        starts, lengths = self.starts[pieces], self.lengths[pieces]
        before = np.repeat(starts - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
        return np.asarray(before + np.arange(len(before)))
