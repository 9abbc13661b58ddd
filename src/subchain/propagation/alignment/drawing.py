"""Draws of alignments: every word's position given weights, in both directions of sentence pairs."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from subchain.propagation.alignment.chain import bucket_of, fill_transition, reach_of, run_forward
from subchain.propagation.alignment.pair import Shares, add_share, keep, rooms, weigh
from subchain.propagation.alignment.sentence import distance_of, room_in, weigh_distances
from subchain.propagation.compiled import bare_kernel, kernel


@bare_kernel
def draw_model1(room, n_words, n_positions, uniforms, out):
    """Draw each word's position from model 1, −1 for NULL; `uniforms` is (words, 2)."""
    weights = room.weights
    for j in range(n_words):
        left = uniforms[j, 0] * (room.null[j] + weights[j].sum()) - room.null[j]
        out[j] = -1
        for i in range(n_positions):
            if left < 0.0:
                break
            out[j] = i
            left -= weights[j, i]


@bare_kernel
def _draw_memory(weights, of_start, transition, ends, following, n_positions, uniform):
    """Draw the position remembered before a jump to `following`, or at the end if it is −1; n is the start."""
    total = of_start * (transition[n_positions, following] if following >= 0 else ends[n_positions])
    left = -total
    for m in range(n_positions):
        total += weights[m] * (transition[m, following] if following >= 0 else ends[m])
    left += uniform * total
    chosen = n_positions
    for m in range(n_positions):
        if left < 0.0:
            break
        weight = weights[m] * (transition[m, following] if following >= 0 else ends[m])
        if weight > 0.0:
            chosen = m
        left -= weight
    return chosen


@bare_kernel
def draw_chain(room, n_words, n_positions, uniforms, out):
    """Draw all positions given forward weights, from the last word to the first; see `draw_model1`."""
    links, forward, transition, ends = room.links, room.forward, room.transition, room.ends
    starts, uniform = room.scalars[1], uniforms[n_words - 1, 0]
    memory = _draw_memory(forward[n_words], starts[n_words], transition, ends, -1, n_positions, uniform)
    for j in range(n_words - 1, -1, -1):
        out[j] = -1
        if memory < n_positions and uniforms[j, 1] * forward[j + 1, memory] < links[j, memory]:
            out[j] = memory
            if j > 0:
                uniform = uniforms[j - 1, 0]
                memory = _draw_memory(forward[j], starts[j], transition, ends, memory, n_positions, uniform)


@bare_kernel
def draw_pair(model, jumps, n_source, n_target, both, uniforms, positions, expected):
    """Draw an alignment in each direction; write it as links, which are 0 or 1, and as numbers of jumps.

    `positions` has the source position of every target word, then the target position of every source word, −1 for
    NULL; `uniforms` (n_target + n_source, 2) are random numbers.
    """
    expected[:] = 0.0
    has_ends = model.has_ends
    reach = reach_of(expected.shape[1], has_ends)
    for direction in range(2):
        n_words, n_positions = (n_target, n_source) if direction == 0 else (n_source, n_target)
        room, first = room_in(both[direction], n_words, n_positions), 0 if direction == 0 else n_target
        drawn, random = positions[first : first + n_words], uniforms[first : first + n_words]
        if model.is_chain:
            fill_transition(jumps[direction], model, n_positions, room)
            run_forward(room, model.null_probability, n_words, n_positions)
            draw_chain(room, n_words, n_positions, random, drawn)
        else:
            if model.is_diagonal:
                weigh_distances(room, jumps[direction], model.null_probability, n_words, n_positions)
            draw_model1(room, n_words, n_positions, random, drawn)
        room.links[:] = 0.0
        last = -1
        for word in range(n_words):
            if drawn[word] < 0:
                continue
            room.links[word, drawn[word]] = 1.0
            if model.is_diagonal:
                expected[direction, distance_of(word, drawn[word], n_words, n_positions)] += 1.0
            if model.is_chain:
                expected[direction, bucket_of(last, drawn[word], n_positions, reach, has_ends)] += 1.0
                last = drawn[word]
        if model.is_chain and has_ends:
            expected[direction, bucket_of(last, n_positions, n_positions, reach, has_ends)] += 1.0


@kernel
def draw_pairs(cells, pairs, table, model, uniforms, hidden, counts, totals, sizes):
    """Draw alignments of sentence pairs under a table of weights, and add their links and jumps to `counts`.

    `hidden` (tokens,) and `uniforms` (tokens, 2) have the target words of each pair, then its source words.
    """
    both, expected = rooms(sizes[0], sizes[1], sizes[2]), np.zeros((2, counts.jumps.shape[1]))
    share = Shares(np.zeros((sizes[0] * sizes[1], 2)), np.zeros((1, 2, counts.jumps.shape[1])))
    for pair in pairs:
        if cells.starts[pair] == cells.starts[pair + 1]:
            continue
        first = cells.source_starts[pair] + cells.target_starts[pair]
        last = cells.source_starts[pair + 1] + cells.target_starts[pair + 1]
        n_source = cells.source_starts[pair + 1] - cells.source_starts[pair]
        n_target = cells.target_starts[pair + 1] - cells.target_starts[pair]
        weigh(cells, pair, table, both)
        draw_pair(model, table.jumps, n_source, n_target, both, uniforms[first:last], hidden[first:last], expected)
        keep(both, expected, n_source, n_target, 0, 0, share)
        add_share(cells, pair, 0, 0, share, 1.0, False, counts, totals, both)
