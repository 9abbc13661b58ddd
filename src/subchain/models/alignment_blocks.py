"""Posteriors and links of a text, block after block of sentence pairs, on all threads.

Room is needed for a few blocks at a time, so that a text may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from subchain.data.links import Links
from subchain.engines.threads import each
from subchain.propagation.alignment.cooccurrence import Cells
from subchain.propagation.alignment.pair import Shares
from subchain.structures.alignment.model import AlignmentPoint
from subchain.structures.alignment.structure import Alignments
from subchain.structures.alignment.text import AlignedText
from subchain.tasks.linking import links_of

Result = TypeVar("Result")

#: Cells of a block, and blocks that a thread does before links are handed on.
BLOCK_CELLS, BLOCKS = 1 << 18, 4


class Block(NamedTuple):
    """Posteriors (cells, 2) of neighbouring sentence pairs, and log likelihoods of the pairs, nan if not known."""

    cells: Cells
    links: NDArray[np.float32]
    logs: NDArray[np.float64]


class TextPosteriors:
    """The posteriors of all sentence pairs of a text, in blocks.

    Parameters
    ----------
    data : the text
    n_jobs : threads
    links : posteriors that a fit has kept, (n_cells, 2)
    structure, weights : what posteriors are computed from, if none were kept; the structure with a thread of its own
    """

    def __init__(
        self,
        data: AlignedText,
        n_jobs: int,
        links: NDArray[np.float32] | None = None,
        structure: Alignments | None = None,
        weights: AlignmentPoint | None = None,
    ) -> None:
        self.data = data
        self.n_jobs = n_jobs
        self._links, self._structure, self._weights = links, structure, weights
        n_blocks = data.n_cells // BLOCK_CELLS + 1
        cuts = np.searchsorted(data.cells.starts, np.arange(1, n_blocks) * BLOCK_CELLS)
        self._edges = np.unique(np.concatenate([[0], cuts, [data.n_pairs]])).tolist()

    def block(self, first: int, last: int) -> Block:
        """Return the posteriors of the sentence pairs `first` … `last` − 1."""
        cells = self.data.span(first, last)
        n_cells, start = int(cells.starts[-1]), int(self.data.cells.starts[first])
        if self._links is not None:
            return Block(cells, self._links[start : start + n_cells], np.full(last - first, np.nan))
        assert self._structure is not None
        assert self._weights is not None
        found = np.zeros((n_cells, 2), dtype=np.float32)
        n_buckets = self._weights.jumps.weights.shape[1]
        shares = Shares(found, np.zeros((last - first, 2, n_buckets), dtype=np.float32))
        _, logs = self._structure.posteriors(self._weights, np.arange(first, last), shares)
        return Block(cells, found, logs)

    def in_turn(self, task: Callable[[Block], Result]) -> Iterator[Result]:
        """Yield what a task gives for each block, in their order; several threads do blocks at the same time."""
        edges, at_once = self._edges, self.n_jobs * BLOCKS
        for begin in range(0, len(edges) - 1, at_once):
            some = edges[begin : begin + at_once + 1]
            results: list[Result | None] = [None] * (len(some) - 1)

            def do(number: int, some: list[int] = some, results: list[Result | None] = results) -> None:
                results[number] = task(self.block(some[number], some[number + 1]))

            each(do, len(results), self.n_jobs)
            for result in results:
                assert result is not None
                yield result

    def links(self, method: str, threshold: float) -> Iterator[Links]:
        """Yield the links of each block."""
        return self.in_turn(lambda block: self.links_of_block(block, method, threshold))

    def links_of_block(self, block: Block, method: str, threshold: float) -> Links:
        """Return the links of one block."""
        return links_of(block.cells, block.links, method, threshold)

    def tables(self, direction: int | None) -> Iterator[NDArray[np.float32]]:
        """Yield the posteriors of each pair, (I, J): of one direction, or the geometric mean of both."""
        number = 0
        for block in self.in_turn(lambda block: block):
            of = block.links
            flat = np.sqrt(of[:, 0] * of[:, 1]) if direction is None else of[:, direction]
            starts = block.cells.starts.tolist()
            for first, last in pairwise(starts):
                n_source = int(self.data.text.source_offsets[number + 1] - self.data.text.source_offsets[number])
                n_target = int(self.data.text.target_offsets[number + 1] - self.data.text.target_offsets[number])
                table = np.zeros((n_source, n_target), np.float32)
                yield flat[first:last].reshape(n_target, n_source).T if last > first else table
                number += 1

    def log_likelihood(self) -> float:
        """Return the sum of the log likelihoods of all pairs."""
        return float(sum(self.in_turn(lambda block: float(block.logs.sum()))))
