"""Clusters: the parts of the data that collapsed inference visits one after the other.

A cluster is one or several *pieces*: whole sequences, stretches of them, or single positions. Pieces that are visited
together lie far from each other, so that they say little about one another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.categorical import DirichletTable
from subchain.engines.subchains import Grid, Minibatch
from subchain.inference.run.chains import ChainProblem
from subchain.transitions.dirichlet import DirichletChain
from subchain.transitions.initial import GivenInitial, LearnedInitial

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Clusters:
    """All clusters of some sequences.

    Parameters
    ----------
    offsets : (n_sequences + 1,) where the sequences begin
    length : positions of a piece; None for whole sequences
    together : pieces of a cluster
    weights : (n_sequences,) how often each sequence counts, or None

    Attributes
    ----------
    size : number of clusters
    starts, lengths, is_first, is_last : (G,) first position and number of positions of each piece, and whether it
        begins or ends its sequence
    share_of : (G,) row of the table of expected moves that belongs to each piece's cluster; row 0 is for clusters
        without inner moves and stays zero
    n_shares : rows of that table
    """

    def __init__(self, offsets: Index, length: int | None, together: int, weights: Array | None) -> None:
        self.grid = Grid(offsets, length)
        self.weights = weights
        self.size = -(-self.grid.size // together)
        pieces = self.grid.batch(np.arange(self.grid.size))
        order = np.argsort(pieces.pieces)
        self.starts, self.lengths = pieces.starts[order], pieces.lengths[order]
        self.sequences = pieces.sequences[order]
        self.is_first, self.is_last = pieces.is_first[order], pieces.is_last[order]
        cluster = np.arange(self.grid.size) % max(self.size, 1)
        moves = np.zeros(self.size, dtype=np.bool_)
        moves[cluster[self.lengths > 1]] = True
        rows = np.where(moves, np.cumsum(moves), 0)
        self.share_of = rows[cluster]
        self.n_shares = int(moves.sum()) + 1

    def pieces(self, cluster: int) -> Index:
        """Numbers of a cluster's pieces."""
        return np.arange(cluster, self.grid.size, self.size)

    def batch(self, pieces: Index) -> Minibatch:
        """Pieces as what an engine runs, the longest first; every one counts as often as its sequence does."""
        batch = self.grid.batch(pieces, self.weights)
        return batch._replace(weights=batch.user_weights, pair_weights=batch.user_weights)

    def borders(self, pieces: Index) -> Index:
        """Pieces whose beginning is a border inside a sequence and at which one of the given pieces begins or ends."""
        begins = pieces[~self.is_first[pieces]]
        ends = pieces[~self.is_last[pieces]] + 1
        return np.union1d(begins, ends)

    def order(self, seed: int, iteration: int, shuffled: bool) -> Index:
        """In which order clusters are visited in an iteration."""
        if not shuffled:
            return np.arange(self.size)
        return np.random.default_rng([seed, iteration]).permutation(self.size)


def has_plain_codes(problem: ChainProblem) -> bool:
    """Whether observations are one column of codes that compiled visitors can read."""
    values = problem.structure.data.values
    return values.ndim == 1 and values.dtype.kind in "iu" and np.can_cast(values.dtype, np.int64)


def has_plain_words(problem: ChainProblem) -> bool:
    """Whether observations are words, all moves can happen, and all sequences count once."""
    prior = problem.prior
    if not isinstance(prior.emission, DirichletTable) or not isinstance(prior.chain, DirichletChain):
        return False
    begins = prior.chain.initial
    given = isinstance(begins, GivenInitial) and bool((begins.probabilities > 0.0).all())
    return (
        (given or isinstance(begins, LearnedInitial))
        and bool(prior.chain.rows.free.all())
        and problem.structure.weights is None
        and has_plain_codes(problem)
    )


def positions_of(starts: Index, lengths: Index) -> Index:
    """Flat positions of stretches, one stretch after the other."""
    before = np.repeat(starts - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
    return np.asarray(before + np.arange(len(before)))
