"""Both directions of one sentence pair: weights in, posterior links and jumps out, and shares added to counts.

Direction 0 lets every target word choose a source position, p(target | source); direction 1 is the reverse.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.alignment.chain import add_jumps, fill_transition, run_backward, run_forward
from subchain.propagation.alignment.sentence import (
    LEAST,
    add_distances,
    expect_model1,
    make_room,
    room_in,
    weigh_distances,
)
from subchain.propagation.compiled import bare_kernel, kernel

Array = NDArray[np.float64]


class Model(NamedTuple):
    """What distinguishes models and ways to train them.

    Attributes
    ----------
    is_chain : whether positions depend on the last one (hidden Markov model) or not (model 1)
    null_probability : probability of NULL in the hidden Markov model
    agrees : whether a link counts as the product of both directions' posteriors, in both of them (Liang et al. 2006)
    has_ends : whether the jump to the first word has widths of its own, and the sentence ends by a jump
    is_diagonal : whether positions depend on their distance from the diagonal; jumps are then distances
    """

    is_chain: bool
    null_probability: float
    agrees: bool
    has_ends: bool = False
    is_diagonal: bool = False


class Table(NamedTuple):
    """Counts or weights of both directions.

    Attributes
    ----------
    pairs : (E, 2) of word pairs
    null_target, null_source : (T,), (S,) of words given NULL in direction 0, and in direction 1
    jumps : (2, B) of jump widths, by their buckets (`chain.bucket_of`)
    """

    pairs: Array
    null_target: Array
    null_source: Array
    jumps: Array


class Totals(NamedTuple):
    """Sums of counts over all words: (S + 1,) for each source word and NULL in direction 0, (T + 1,) in direction 1."""

    source: Array
    target: Array


class Shares(NamedTuple):
    """What sentence pairs have put into the counts: posterior links (cells, 2) and expected jumps (pairs, 2, B).

    Links are those of each direction, not multiplied; NULL has the rest of each word.
    """

    links: NDArray[np.floating]
    jumps: NDArray[np.floating]


@kernel
def rooms(longest_source, longest_target, n_cells):
    """Return room for both directions of the longest sentence pairs, as `make_room` does."""
    return make_room(longest_target, longest_source, n_cells), make_room(longest_source, longest_target, n_cells)


@bare_kernel
def weigh(cells, pair, table, both):
    """Fill the weights of both directions from a table of weights."""
    first_source, first_target = cells.source_starts[pair], cells.target_starts[pair]
    n_source, n_target = cells.source_starts[pair + 1] - first_source, cells.target_starts[pair + 1] - first_target
    one, other = room_in(both[0], n_target, n_source), room_in(both[1], n_source, n_target)
    forward, backward = one.weights, other.weights
    cell = cells.starts[pair]
    for j in range(n_target):
        one.null[j] = max(table.null_target[cells.target[first_target + j]], LEAST)
        for i in range(n_source):
            entry = cells.entries[cell + i]
            forward[j, i] = max(table.pairs[entry, 0], LEAST)
            backward[i, j] = max(table.pairs[entry, 1], LEAST)
        forward[j, n_source:] = 0.0
        cell += n_source
    for i in range(n_source):
        other.null[i] = max(table.null_source[cells.source[first_source + i]], LEAST)
        backward[i, n_target:] = 0.0


@bare_kernel
def predict(cells, pair, counts, totals, concentration, both):
    """Fill the weights of both directions from counts: (C + β) / (C of all words + V β)."""
    first_source, first_target = cells.source_starts[pair], cells.target_starts[pair]
    n_source, n_target = cells.source_starts[pair + 1] - first_source, cells.target_starts[pair + 1] - first_target
    one, other = room_in(both[0], n_target, n_source), room_in(both[1], n_source, n_target)
    forward, backward = one.weights, other.weights
    of_targets, of_sources = counts.null_target.shape[0] * concentration, counts.null_source.shape[0] * concentration
    scales = one.vectors[0]
    for i in range(n_source):
        word = cells.source[first_source + i]
        scales[i] = 1.0 / (max(totals.source[word], 0.0) + of_targets)
        other.null[i] = (max(counts.null_source[word], 0.0) + concentration) / (totals.target[-1] + of_sources)
        backward[i, n_target:] = 0.0
    cell = cells.starts[pair]
    for j in range(n_target):
        word = cells.target[first_target + j]
        one.null[j] = (max(counts.null_target[word], 0.0) + concentration) / (totals.source[-1] + of_targets)
        scale = 1.0 / (max(totals.target[word], 0.0) + of_sources)
        for i in range(n_source):
            entry = cells.entries[cell + i]
            forward[j, i] = (max(counts.pairs[entry, 0], 0.0) + concentration) * scales[i]
            backward[i, j] = (max(counts.pairs[entry, 1], 0.0) + concentration) * scale
        forward[j, n_source:] = 0.0
        cell += n_source


@bare_kernel
def run_pair(model, jumps, n_source, n_target, both, expected, exposures):
    """Compute the posterior links of both directions; write expected jumps, add exposures; return the log likelihood.

    `jumps` (2, B) are weights; `expected` has the same shape, `exposures` too, or (2, 0) if they are not wanted.
    """
    expected[:] = 0.0
    found = _run_side(model, jumps[0], n_target, n_source, both[0], expected[0], exposures[0])
    return found + _run_side(model, jumps[1], n_source, n_target, both[1], expected[1], exposures[1])


@bare_kernel
def _run_side(model, jumps, n_words, n_positions, flat, expected, exposures):
    """Do this for one direction."""
    room, found = room_in(flat, n_words, n_positions), 0.0
    if model.is_diagonal:
        found += weigh_distances(room, jumps, model.null_probability, n_words, n_positions)
    if not model.is_chain:
        found += expect_model1(room, n_words, n_positions)
    if model.is_diagonal:
        add_distances(room, n_words, n_positions, expected, exposures)
    if model.is_chain:
        fill_transition(jumps, model, n_positions, room)
        found += run_forward(room, model.null_probability, n_words, n_positions)
        run_backward(room, model.null_probability, n_words, n_positions)
        add_jumps(room, jumps, model.has_ends, n_positions, expected, exposures)
    return found


@bare_kernel
def keep(both, expected, n_source, n_target, cell, row, shares):
    """Write the posterior links and jumps of one sentence pair to its shares, from cell `cell` on and at row `row`."""
    forward, backward = room_in(both[0], n_target, n_source).links, room_in(both[1], n_source, n_target).links
    for j in range(n_target):
        for i in range(n_source):
            shares.links[cell, 0] = forward[j, i]
            shares.links[cell, 1] = backward[i, j]
            cell += 1
    for direction in range(2):
        for bucket in range(expected.shape[1]):
            shares.jumps[row, direction, bucket] = expected[direction, bucket]


@bare_kernel
def add_share(cells, pair, cell, row, shares, sign, agrees, counts, totals, both):
    """Add `sign` times what one sentence pair has put into the counts; its share is at cell `cell` and row `row`.

    NULL has what the links of a word leave, which is computed from them, so that what is taken out is what was put in.
    """
    first_source, first_target = cells.source_starts[pair], cells.target_starts[pair]
    n_source, n_target = cells.source_starts[pair + 1] - first_source, cells.target_starts[pair + 1] - first_target
    vectors = room_in(both[0], n_target, n_source).vectors
    of_source, left_source = vectors[0], vectors[1]
    of_source[:n_source] = 0.0
    left_source[:n_source] = 1.0
    at = cells.starts[pair]
    for j in range(n_target):
        word, of_target, left = cells.target[first_target + j], 0.0, 1.0
        for i in range(n_source):
            one, other = np.float64(shares.links[cell, 0]), np.float64(shares.links[cell, 1])
            left -= one
            left_source[i] -= other
            if agrees:
                one *= other
                other = one
            entry = cells.entries[at]
            counts.pairs[entry, 0] += sign * one
            counts.pairs[entry, 1] += sign * other
            of_source[i] += one
            of_target += other
            cell += 1
            at += 1
        totals.target[word] += sign * of_target
        left = sign * max(left, 0.0)
        counts.null_target[word] += left
        totals.source[-1] += left
    for i in range(n_source):
        word = cells.source[first_source + i]
        totals.source[word] += sign * of_source[i]
        left = sign * max(left_source[i], 0.0)
        counts.null_source[word] += left
        totals.target[-1] += left
    for direction in range(2):
        for bucket in range(counts.jumps.shape[1]):
            counts.jumps[direction, bucket] += sign * shares.jumps[row, direction, bucket]
