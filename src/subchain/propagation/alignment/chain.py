"""The hidden Markov aligner in one direction of one sentence pair: posterior links and expected jumps.

A word is NULL with probability p0; else its position depends on that of the last word that was not NULL, by the width
of the jump: c(i − m) / Σ over all positions (Vogel et al. 1996). Widths of D and more have one weight, of which
the k-th of them gets 1 / (k (k + 1)): these shares add up to one, so that long sentences do not make long jumps more
probable. NULL remembers the position (Och & Ney 2003), so the recursion has one number for each position, and one for
the start.

The first jump starts at position −1 and has the widths of all others. With *end jumps* it has widths of its own, and
the sentence ends by a jump that has widths of its own, too: the next jump leads to one of the I positions, or behind
the last word and to the end.

Sentences are short, so that loops are written with vectors (`numerics/vectors`): a recursion takes a few of them.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math

from subchain.numerics.vectors import first, load, spread, store, times, total, zeros
from subchain.propagation.alignment.sentence import VECTOR, padded
from subchain.propagation.compiled import bare_kernel, bare_part, part

#: The product of normalisers becomes part of the log likelihood when it leaves the numbers between these.
SMALL, LARGE = 1e-100, 1e100


@part
def reach_of(n_buckets, has_ends):
    """Return D, by the number of buckets: 2 D + 1, or 4 D + 2 with end jumps."""
    return (n_buckets - 2) // 4 if has_ends else (n_buckets - 1) // 2


@part
def bucket_of(origin, position, n_positions, reach, has_ends):
    """Return the bucket of a jump; −1 is the start, and `n_positions` the end, which only end jumps lead to.

    Widths −D … D come first, then the D of the start, the D of the end, and the jump from the start to the end.
    """
    if has_ends and position == n_positions:
        return 4 * reach + 1 if origin < 0 else 3 * reach + min(n_positions - origin, reach)
    if has_ends and origin < 0:
        return 2 * reach + 1 + min(position, reach - 1)
    return min(max(position - origin, -reach), reach) + reach


@part
def share_of(origin, position, n_positions, reach, has_ends):
    """Return the share of a jump in the weight of its bucket, which is 1 below a width of D."""
    beyond = abs(position - origin) - reach + 1
    if beyond < 1 or (has_ends and origin < 0 and position == n_positions):
        return 1.0
    return 1.0 / (beyond * (beyond + 1.0))


@part
def weight_of(jumps, origin, position, n_positions, reach, has_ends):
    """Return the weight of a jump."""
    share = share_of(origin, position, n_positions, reach, has_ends)
    return jumps[bucket_of(origin, position, n_positions, reach, has_ends)] * share


@bare_part
def fill_transition(jumps, model, n_positions, room):
    """Write (1 − p0) c(i − m) / Σ over i into `room.transition` (positions + 1, width); its last row is the start.

    The probability of the end goes to `room.ends` (positions + 1,); it is 1 without end jumps.
    """
    has_ends, width = model.has_ends, padded(n_positions)
    transition, reach = room.transition, reach_of(jumps.shape[0], has_ends)
    for at in range(n_positions + width):  # by width, from −I on: rows of the table are windows of this
        room.widths[0, at] = weight_of(jumps, 0, at - n_positions, n_positions + width, reach, has_ends)
    for i in range(n_positions):
        transition[n_positions, i] = weight_of(jumps, -1, i, n_positions, reach, has_ends)
    for m in range(n_positions + 1):
        origin = m if m < n_positions else -1
        room.ends[m] = weight_of(jumps, origin, n_positions, n_positions, reach, has_ends) if has_ends else 0.0
        summed = zeros()
        for i in range(0, width, VECTOR):
            inside = first(n_positions - i)
            if m < n_positions:
                row = load(room.widths, 0, n_positions - m + i, inside)
            else:
                row = load(transition, m, i, inside)
            store(transition, m, i, None, row)
            summed = summed + row
        scale = (1.0 - model.null_probability) / (total(summed) + room.ends[m])
        for i in range(0, width, VECTOR):
            store(transition, m, i, None, times(load(transition, m, i, None), scale))
        room.ends[m] = room.ends[m] * scale if has_ends else 1.0


@bare_part
def run_forward(room, null_probability, n_words, n_positions):
    """Write forward weights, and those of each link to `room.links`; return the log likelihood."""
    width, weights, links = padded(n_positions), room.weights, room.links
    forward, transition, norms, starts = room.forward, room.transition, room.scalars[0], room.scalars[1]
    forward[0] = 0.0
    starts[0] = 1.0
    product, found = 1.0, 0.0
    for j in range(n_words):
        of_null = null_probability * room.null[j]
        starts[j + 1] = of_null * starts[j]
        summed = zeros()
        for i in range(0, width, VECTOR):
            predicted = times(load(transition, n_positions, i, None), starts[j])
            for m in range(n_positions if j > 0 else 0):
                predicted = predicted + spread(forward, j, m) * load(transition, m, i, None)
            link = predicted * load(weights, j, i, None)
            store(links, j, i, None, link)
            reached = link + times(load(forward, j, i, None), of_null)
            store(forward, j + 1, i, None, reached)
            summed = summed + reached
        norm = starts[j + 1] + total(summed)
        norms[j] = norm
        product *= norm
        if not SMALL < product < LARGE:
            found += math.log(product)
            product = 1.0
        scale = 1.0 / norm
        starts[j + 1] *= scale
        for i in range(0, width, VECTOR):
            store(links, j, i, None, times(load(links, j, i, None), scale))
            store(forward, j + 1, i, None, times(load(forward, j + 1, i, None), scale))
    norm = starts[n_words] * room.ends[n_positions]
    for i in range(n_positions):
        norm += forward[n_words, i] * room.ends[i]
    room.scalars[2, 0] = norm
    return found + math.log(product) + math.log(norm)


@bare_part
def run_backward(room, null_probability, n_words, n_positions):
    """Turn `room.links` into posterior links, and write expected numbers of jumps, over their probabilities."""
    width, weights, links = padded(n_positions), room.weights, room.links
    forward, transition, pairs, vectors = room.forward, room.transition, room.pairs, room.vectors
    norms, starts = room.scalars[0], room.scalars[1]
    of_end = 1.0 / room.scalars[2, 0]
    vectors[1, :width] = 0.0
    for m in range(n_positions):
        vectors[1, m] = room.ends[m] * of_end
        room.ended[m] = forward[n_words, m] * vectors[1, m]
    room.ended[n_positions] = starts[n_words] * room.ends[n_positions] * of_end
    pairs[:] = 0.0
    for j in range(n_words - 1, -1, -1):
        scale = 1.0 / norms[j]
        for i in range(0, width, VECTOR):
            backward = load(vectors, 1, i, None)
            store(links, j, i, None, load(links, j, i, None) * backward)
            coming = times(load(weights, j, i, None) * backward, scale)
            store(vectors, 2, i, None, coming)
            store(pairs, n_positions, i, None, load(pairs, n_positions, i, None) + times(coming, starts[j]))
        of_null = null_probability * room.null[j] * scale
        for m in range(n_positions if j > 0 else 0):
            summed, weight = zeros(), spread(forward, j, m)
            for i in range(0, width, VECTOR):
                coming = load(vectors, 2, i, None)
                summed = summed + load(transition, m, i, None) * coming
                store(pairs, m, i, None, load(pairs, m, i, None) + weight * coming)
            vectors[1, m] = total(summed) + of_null * vectors[1, m]


@bare_part
def add_jumps(room, jumps, has_ends, n_positions, counts, exposures):
    """Add the expected number of jumps of each width to `counts`, and its exposure to `exposures`, if there is one.

    The exposure of a width is the sum, over all departures, of its shares in the positions that it leads to, divided by
    the sum of all weights: the slope of the log normaliser, which `JumpWidths.mode` needs.
    """
    width, reach, by_width = padded(n_positions), reach_of(counts.shape[0], has_ends), room.widths
    transition, pairs = room.transition, room.pairs
    by_width[1, : n_positions + width] = 0.0
    for m in range(n_positions + 1):
        for i in range(0, width, VECTOR):
            expected = load(pairs, m, i, None) * load(transition, m, i, None)
            store(pairs, m, i, None, expected)
            if m < n_positions:
                at = n_positions - m + i
                store(by_width, 1, at, None, load(by_width, 1, at, None) + expected)
    for at in range(1, 2 * n_positions):
        counts[min(max(at - n_positions, -reach), reach) + reach] += by_width[1, at]
    for i in range(n_positions):
        counts[bucket_of(-1, i, n_positions, reach, has_ends)] += pairs[n_positions, i]
    for m in range(n_positions + 1 if has_ends else 0):
        origin = m if m < n_positions else -1
        counts[bucket_of(origin, n_positions, n_positions, reach, has_ends)] += room.ended[m]
    if exposures.shape[0]:
        _add_exposures(room.ended, jumps, has_ends, n_positions, pairs, exposures)


@bare_kernel
def _add_exposures(ended, jumps, has_ends, n_positions, expected, exposures):
    """Add the exposure of each width, given expected numbers of jumps, those to the end and (positions + 1, width)."""
    reach = reach_of(jumps.shape[0], has_ends)
    n_goals = n_positions + 1 if has_ends else n_positions
    for m in range(n_positions + 1):
        origin = m if m < n_positions else -1
        departures, normalizer = (ended[m] if has_ends else 0.0), 0.0
        for i in range(n_goals):
            normalizer += weight_of(jumps, origin, i, n_positions, reach, has_ends)
            departures += expected[m, i] if i < n_positions else 0.0
        for i in range(n_goals):
            share = share_of(origin, i, n_positions, reach, has_ends)
            exposures[bucket_of(origin, i, n_positions, reach, has_ends)] += share * departures / normalizer
