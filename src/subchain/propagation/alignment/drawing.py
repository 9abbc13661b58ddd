"""Draws of alignments: every word's position given weights, in both directions of sentence pairs."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from subchain.propagation.alignment.pair import rooms, weigh
from subchain.propagation.alignment.sentence import fill_transition, padded, run_forward
from subchain.propagation.compiled import kernel


@kernel
def draw_model1(room, n_words, n_positions, uniforms, out):
    """Draw each word's position from model 1, −1 for NULL; `uniforms` is (words, 2)."""
    width = padded(n_positions)
    weights = room.weights[: n_words * width].reshape(n_words, width)
    for j in range(n_words):
        left = uniforms[j, 0] * (room.null[j] + weights[j].sum()) - room.null[j]
        out[j] = -1
        for i in range(n_positions):
            if left < 0.0:
                break
            out[j] = i
            left -= weights[j, i]


@kernel
def _draw_memory(weights, of_start, transition, following, n_positions, uniform):
    """Draw the position remembered before a jump to `following`, or at the end if it is −1; n is the start."""
    total = of_start * (transition[n_positions, following] if following >= 0 else 1.0)
    left = -total
    for m in range(n_positions):
        total += weights[m] * (transition[m, following] if following >= 0 else 1.0)
    left += uniform * total
    chosen = n_positions
    for m in range(n_positions):
        if left < 0.0:
            break
        weight = weights[m] * (transition[m, following] if following >= 0 else 1.0)
        if weight > 0.0:
            chosen = m
        left -= weight
    return chosen


@kernel
def draw_chain(room, n_words, n_positions, uniforms, out):
    """Draw all positions given forward weights, from the last word to the first; see `draw_model1`."""
    width = padded(n_positions)
    links = room.links[: n_words * width].reshape(n_words, width)
    forward = room.forward[: (n_words + 1) * width].reshape(n_words + 1, width)
    transition = room.transition[: (n_positions + 1) * width].reshape(n_positions + 1, width)
    starts = room.scalars[1]
    memory = _draw_memory(forward[n_words], starts[n_words], transition, -1, n_positions, uniforms[n_words - 1, 0])
    for j in range(n_words - 1, -1, -1):
        out[j] = -1
        if memory < n_positions and uniforms[j, 1] * forward[j + 1, memory] < links[j, memory]:
            out[j] = memory
            if j > 0:
                uniform = uniforms[j - 1, 0]
                memory = _draw_memory(forward[j], starts[j], transition, memory, n_positions, uniform)


@kernel
def draw_pairs(cells, pairs, table, model, uniforms, hidden, counts, sizes):
    """Draw the positions of all words of sentence pairs, and add their links and jumps to `counts`.

    `hidden` (tokens,) has the source position of every target token of the text, then the target position of every
    source token, −1 for NULL; `uniforms` is (tokens, 2).
    """
    both = rooms(sizes[0], sizes[1], sizes[2])
    reach, n_targets = (counts.jumps.shape[1] - 1) // 2, cells.target.shape[0]
    for pair in pairs:
        if cells.starts[pair] == cells.starts[pair + 1]:
            continue
        first_source, first_target = cells.source_starts[pair], cells.target_starts[pair]
        n_source, n_target = cells.source_starts[pair + 1] - first_source, cells.target_starts[pair + 1] - first_target
        weigh(cells, pair, table, both)
        for direction in range(2):
            room = both[direction]
            n_words, n_positions = (n_target, n_source) if direction == 0 else (n_source, n_target)
            first = first_target if direction == 0 else n_targets + first_source
            drawn, random = hidden[first : first + n_words], uniforms[first : first + n_words]
            if model.is_chain:
                width = padded(n_positions)
                rows = room.transition[: (n_positions + 1) * width].reshape(n_positions + 1, width)
                fill_transition(table.jumps[direction], 1.0 - model.null_probability, n_positions, rows)
                run_forward(room, model.null_probability, n_words, n_positions)
                draw_chain(room, n_words, n_positions, random, drawn)
            else:
                draw_model1(room, n_words, n_positions, random, drawn)
            last = -1
            for at in range(n_words):
                if drawn[at] < 0:
                    if direction == 0:
                        counts.null_target[cells.target[first_target + at]] += 1.0
                    else:
                        counts.null_source[cells.source[first_source + at]] += 1.0
                    continue
                j, i = (at, drawn[at]) if direction == 0 else (drawn[at], at)
                counts.pairs[cells.entries[cells.starts[pair] + j * n_source + i], direction] += 1.0
                if model.is_chain:
                    counts.jumps[direction, min(max(drawn[at] - last, -reach), reach) + reach] += 1.0
                    last = drawn[at]
