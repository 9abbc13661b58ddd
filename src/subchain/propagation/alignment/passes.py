"""Passes over many sentence pairs, on threads that claim them, and collapsed visits of one after the other."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.claiming import claim
from subchain.propagation.alignment.drawing import draw_pair
from subchain.propagation.alignment.pair import Totals, add_share, keep, predict, rooms, run_pair, weigh
from subchain.propagation.compiled import kernel

#: No sums of counts: the table has weights.
NO_TOTALS = Totals(np.zeros(0), np.zeros(0))
#: Sentence pairs that a thread claims at a time.
CLAIMED = 16


class Drawing(NamedTuple):
    """Random numbers (tokens, 2) for draws, and what is drawn (tokens,), as in `draw_pairs`; none for expectations."""

    uniforms: NDArray[np.float64]
    hidden: NDArray[np.int64]


NO_DRAWING = Drawing(np.zeros((0, 2)), np.zeros(0, dtype=np.int64))


@kernel
def expect_pairs(cells, pairs, places, table, totals, concentration, model, shares, exposures, logs, sizes, counter):
    """Compute the shares of sentence pairs under a table of weights; several threads may run this at once.

    With `totals` the table has counts, of which weights are made where they are read: nothing is kept of them.

    Parameters
    ----------
    pairs, places : (n,) numbers of sentence pairs, and the first cell of each in `shares`
    shares : `Shares`; the k-th pair has row k of the jumps
    exposures : (n, 2, 2 D + 1), or (n, 2, 0) if they are not wanted
    logs : (n,) log likelihoods
    sizes : longest source and target sentence, and cells of the largest pair
    counter : (1,) from which threads claim pairs
    """
    both = rooms(sizes[0], sizes[1], sizes[2])
    expected = np.zeros((2, table.jumps.shape[1]))
    n_claims = (pairs.shape[0] + CLAIMED - 1) // CLAIMED
    while True:
        block = claim(counter)
        if block >= n_claims:
            return
        for k in range(block * CLAIMED, min((block + 1) * CLAIMED, pairs.shape[0])):
            pair = pairs[k]
            if cells.starts[pair] == cells.starts[pair + 1]:
                shares.jumps[k] = 0.0
                logs[k] = 0.0
                continue
            n_source = cells.source_starts[pair + 1] - cells.source_starts[pair]
            n_target = cells.target_starts[pair + 1] - cells.target_starts[pair]
            if totals.source.shape[0]:
                predict(cells, pair, table, totals, concentration, both)
            else:
                weigh(cells, pair, table, both)
            exposures[k] = 0.0
            logs[k] = run_pair(model, table.jumps, n_source, n_target, both, expected, exposures[k])
            keep(both, expected, n_source, n_target, places[k], k, shares)


@kernel
def add_shares(cells, pairs, places, rows, shares, agrees, counts, totals, sizes):
    """Add the shares of sentence pairs to counts, one after the other."""
    both = rooms(sizes[0], sizes[1], sizes[2])
    for k in range(pairs.shape[0]):
        if cells.starts[pairs[k]] < cells.starts[pairs[k] + 1]:
            add_share(cells, pairs[k], places[k], rows[k], shares, 1.0, agrees, counts, totals, both)


@kernel
def visit_pairs(cells, pairs, counts, totals, prior, model, shares, excludes, puts_back, sizes, drawing):
    """Update sentence pairs one after the other under the counts, without their own shares if `excludes`.

    Their new shares take the place of the old ones in the counts if `puts_back`. Row and cells of a pair's share are
    its own. `prior` is the concentration of words, and that of jump widths. Return the sum of log normalisers.

    `drawing` is a `Drawing`: where it has random numbers, alignments are drawn instead of expected.
    """
    both = rooms(sizes[0], sizes[1], sizes[2])
    expected, no_exposures = np.zeros((2, counts.jumps.shape[1])), np.zeros((2, 0))
    jumps = np.zeros_like(counts.jumps)
    agrees, found = model.agrees, 0.0
    for pair in pairs:
        cell = cells.starts[pair]
        if cell == cells.starts[pair + 1]:
            continue
        n_source = cells.source_starts[pair + 1] - cells.source_starts[pair]
        n_target = cells.target_starts[pair + 1] - cells.target_starts[pair]
        if excludes:
            add_share(cells, pair, cell, pair, shares, -1.0, agrees, counts, totals, both)
        for direction in range(2):
            for bucket in range(jumps.shape[1]):
                jumps[direction, bucket] = max(counts.jumps[direction, bucket], 0.0) + prior[1]
        predict(cells, pair, counts, totals, prior[0], both)
        if drawing.uniforms.shape[0]:
            first = cells.source_starts[pair] + cells.target_starts[pair]
            last = cells.source_starts[pair + 1] + cells.target_starts[pair + 1]
            uniforms, hidden = drawing.uniforms[first:last], drawing.hidden[first:last]
            draw_pair(model, jumps, n_source, n_target, both, uniforms, hidden, expected)
        else:
            found += run_pair(model, jumps, n_source, n_target, both, expected, no_exposures)
        if excludes != puts_back:
            add_share(cells, pair, cell, pair, shares, 1.0 if excludes else -1.0, agrees, counts, totals, both)
        keep(both, expected, n_source, n_target, cell, pair, shares)
        if puts_back:
            add_share(cells, pair, cell, pair, shares, 1.0, agrees, counts, totals, both)
    return found
