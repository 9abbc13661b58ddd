"""Visits of single words: collapsed inference by mean field (CVI 1; Wang 2016, algorithm 1 and section 3.8.3).

The words of a sentence are taken to be independent, each with a distribution q over its positions and NULL. A word's
share is taken out of the counts, its q is computed from the counts and from the q of the other words, and its new share
is put back before the next word is visited. With m the position that is remembered before the word, and n the next
position after it, both random under the q of the others, and t the predictive probability of a jump,

    q(i)    ∝  (1 − p0) p(word | i) E[t(m → i)] E[t(i → n)]
    q(NULL) ∝  p0 p(word | NULL) E[t(m → n)].

In model 1 and in the diagonal model words are independent anyway, and only exclusion distinguishes these visits from
those of whole sentences.

The jumps that a word takes part in are those from m and to n. Both are products of distributions, so expected jumps of
a sentence are exact under independent words: `expect_jumps_of`. A sentence's jumps are kept beside its links, as for
visits of whole sentences.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.alignment.chain import bucket_of, fill_transition, reach_of
from subchain.propagation.alignment.sentence import distance_of, make_room, room_in
from subchain.propagation.compiled import bare_kernel, kernel, part

Array = NDArray[np.float64]


class Side(NamedTuple):
    """One direction of one sentence pair.

    Attributes
    ----------
    direction : 0 where target words choose source positions
    words, positions : codes of the words that choose, and of the words at the positions
    first, word_step, position_step : cell of word j and position i is `first + j · word_step + i · position_step`
    """

    direction: int
    words: NDArray[np.int32]
    positions: NDArray[np.int32]
    first: int
    word_step: int
    position_step: int


class How(NamedTuple):
    """Whether a word's share is taken out before it is visited, and whether its new share takes its place."""

    excludes: bool
    puts_back: bool


class Around(NamedTuple):
    """Distributions of the positions around a word, and jumps.

    Attributes
    ----------
    before : (positions + 1,) of the remembered position, the last entry that of the start
    after : (words, positions + 1) of the next position after each word, the last entry that of none
    own, weights : (positions + 1,) the word's q, the last entry NULL, and its weights
    onward : (positions + 1,) expected probability of what comes next, by the position that is then remembered
    mine, jumps : (B,) expected jumps of the sentence, and weights of the widths
    """

    before: Array
    after: Array
    own: Array
    weights: Array
    onward: Array
    mine: Array
    jumps: Array


@part
def side_of(cells, pair, direction):
    """Return one direction of a sentence pair."""
    source = cells.source[cells.source_starts[pair] : cells.source_starts[pair + 1]]
    target = cells.target[cells.target_starts[pair] : cells.target_starts[pair + 1]]
    if direction == 0:
        return Side(0, target, source, cells.starts[pair], source.shape[0], 1)
    return Side(1, source, target, cells.starts[pair], 1, source.shape[0])


@bare_kernel
def read_links(side, word, links, out):
    """Write the q of a word to `out` (positions + 1,), NULL last."""
    left, cell = 1.0, side.first + word * side.word_step
    n_positions = side.positions.shape[0]
    for position in range(n_positions):
        out[position] = np.float64(links[cell, side.direction])
        left -= out[position]
        cell += side.position_step
    out[n_positions] = max(left, 0.0)


@bare_kernel
def add_word(cells, side, word, links, sign, agrees, counts, totals):
    """Add `sign` times the share of a word to the counts of links; with agreement to those of both directions."""
    left, of_word, cell = 1.0, 0.0, side.first + word * side.word_step
    mine, other = side.direction, 1 - side.direction
    by_position = totals.source if mine == 0 else totals.target
    by_word = totals.target if mine == 0 else totals.source
    for code in side.positions:
        share, entry = np.float64(links[cell, mine]), cells.entries[cell]
        left -= share
        if agrees:
            share *= np.float64(links[cell, other])
            counts.pairs[entry, other] += sign * share
            of_word += share
        counts.pairs[entry, mine] += sign * share
        by_position[code] += sign * share
        cell += side.position_step
    left = sign * max(left, 0.0)
    nulls = counts.null_target if mine == 0 else counts.null_source
    nulls[side.words[word]] += left
    by_position[-1] += left
    if agrees:
        by_word[side.words[word]] += sign * of_word


@bare_kernel
def weigh_word(cells, side, word, counts, totals, concentration, out):
    """Write the predictive probability of a word given each position, and given NULL, to `out` (positions + 1,)."""
    direction, code = side.direction, side.words[word]
    nulls = counts.null_target if direction == 0 else counts.null_source
    by_position = totals.source if direction == 0 else totals.target
    of_all, cell = nulls.shape[0] * concentration, side.first + word * side.word_step
    n_positions = side.positions.shape[0]
    for position in range(n_positions):
        total = max(by_position[side.positions[position]], 0.0) + of_all
        out[position] = (max(counts.pairs[cells.entries[cell], direction], 0.0) + concentration) / total
        cell += side.position_step
    out[n_positions] = (max(nulls[code], 0.0) + concentration) / (by_position[-1] + of_all)


@bare_kernel
def look_ahead(side, links, around):
    """Fill `around.after` for all words, and let `around.before` be the start."""
    n_words, n_positions = side.words.shape[0], side.positions.shape[0]
    around.before[:n_positions] = 0.0
    around.before[n_positions] = 1.0
    around.after[n_words - 1, :n_positions] = 0.0
    around.after[n_words - 1, n_positions] = 1.0
    for word in range(n_words - 1, 0, -1):
        read_links(side, word, links, around.own)
        null = around.own[n_positions]
        for position in range(n_positions):
            around.after[word - 1, position] = around.own[position] + null * around.after[word, position]
        around.after[word - 1, n_positions] = null * around.after[word, n_positions]


@bare_kernel
def step_over(n_positions, around):
    """Let `around.before` be the position that is remembered after the word."""
    null = around.own[n_positions]
    for position in range(n_positions):
        around.before[position] = around.own[position] + null * around.before[position]
    around.before[n_positions] *= null


@bare_kernel
def add_jumps_of(n_positions, has_ends, around, after, sign, jumps):
    """Add `sign` times the expected jumps to a word, and from it or past it to the next position, to `jumps` (B,)."""
    reach, null = reach_of(jumps.shape[0], has_ends), around.own[n_positions]
    for m in range(n_positions + 1):
        origin, into = (m if m < n_positions else -1), sign * around.before[m]
        onward = sign * ((around.own[m] if m < n_positions else 0.0) + null * around.before[m])
        for i in range(n_positions):
            bucket = bucket_of(origin, i, n_positions, reach, has_ends)
            jumps[bucket] += into * around.own[i] + onward * after[i]
        if has_ends:
            jumps[bucket_of(origin, n_positions, n_positions, reach, has_ends)] += onward * after[n_positions]


@bare_kernel
def expect_jumps_of(side, has_ends, links, around, jumps):
    """Write the expected jumps of independent words to `jumps` (B,)."""
    n_words, n_positions = side.words.shape[0], side.positions.shape[0]
    reach = reach_of(jumps.shape[0], has_ends)
    jumps[:] = 0.0
    around.before[:n_positions] = 0.0
    around.before[n_positions] = 1.0
    for word in range(n_words):
        read_links(side, word, links, around.own)
        for m in range(n_positions + 1):
            origin, weight = (m if m < n_positions else -1), around.before[m]
            for i in range(n_positions):
                jumps[bucket_of(origin, i, n_positions, reach, has_ends)] += weight * around.own[i]
        step_over(n_positions, around)
    for m in range(n_positions + 1 if has_ends else 0):
        bucket = bucket_of(m if m < n_positions else -1, n_positions, n_positions, reach, has_ends)
        jumps[bucket] += around.before[m]


@bare_kernel
def weigh_jumps(counts, concentration, excludes, model, n_positions, around, after, flat):
    """Multiply the weights of a word by the expected probabilities of the jumps to it, and from it or past it.

    `counts` are those of all other sentences if `excludes`, and else those of all.
    """
    for bucket in range(around.mine.shape[0]):
        others = around.mine[bucket] if excludes else 0.0
        around.jumps[bucket] = max(counts[bucket] + others, 0.0) + concentration
    room = room_in(flat, 0, n_positions)
    transition = room.transition
    fill_transition(around.jumps, model, n_positions, room)
    into = room.vectors[0]
    into[:] = 0.0
    past = 0.0
    for m in range(n_positions + 1):
        onward, weight = after[n_positions] * room.ends[m], around.before[m]
        for i in range(n_positions):
            onward += after[i] * transition[m, i]
            into[i] += weight * transition[m, i]
        around.onward[m] = onward
        past += weight * onward
    for i in range(n_positions):
        around.weights[i] *= into[i] * around.onward[i]
    around.weights[n_positions] *= model.null_probability * past


@bare_kernel
def renew_word(side, word, weights, links):
    """Write the normalised weights of a word as its q; return the log normaliser."""
    n_positions, cell = side.positions.shape[0], side.first + word * side.word_step
    total = weights[: n_positions + 1].sum()
    for position in range(n_positions):
        links[cell, side.direction] = weights[position] / total
        cell += side.position_step
    return math.log(total)


@bare_kernel
def add_distances_of(side, word, links, sign, mine):
    """Add `sign` times the links of one word to the distances of its sentence."""
    n_words, n_positions = side.words.shape[0], side.positions.shape[0]
    cell = side.first + word * side.word_step
    for position in range(n_positions):
        mine[distance_of(word, position, n_words, n_positions)] += sign * np.float64(links[cell, side.direction])
        cell += side.position_step


@bare_kernel
def weigh_distances_of(counts, concentration, excludes, null_probability, side, word, around):
    """Multiply the weights of a word by the probabilities of its positions in the diagonal model."""
    n_words, n_positions, total = side.words.shape[0], side.positions.shape[0], 0.0
    for bucket in range(around.mine.shape[0]):
        others = around.mine[bucket] if excludes else 0.0
        around.jumps[bucket] = max(counts[bucket] + others, 0.0) + concentration
    for position in range(n_positions):
        total += around.jumps[distance_of(word, position, n_words, n_positions)]
    for position in range(n_positions):
        of_distance = around.jumps[distance_of(word, position, n_words, n_positions)]
        around.weights[position] *= (1.0 - null_probability) * of_distance / total
    around.weights[n_positions] *= null_probability


@bare_kernel
def keep_jumps(mine, kept, counts, how):
    """Write the jumps of a sentence over those that were kept; exchange them in the counts, too, if they go back."""
    for bucket in range(mine.shape[0]):
        old = np.float64(kept[bucket])
        kept[bucket] = max(mine[bucket], 0.0)
        if how.puts_back:
            counts[bucket] += np.float64(kept[bucket]) - (0.0 if how.excludes else old)
        elif how.excludes:
            counts[bucket] += old


@bare_kernel
def sum_jumps(side, model, links, around):
    """Write the expected jumps, or distances, of a sentence to `around.mine`."""
    if model.is_chain:
        expect_jumps_of(side, model.has_ends, links, around, around.mine)
        look_ahead(side, links, around)
    else:
        around.mine[:] = 0.0
        for word in range(side.words.shape[0] if model.is_diagonal else 0):
            add_distances_of(side, word, links, 1.0, around.mine)


@bare_kernel
def add_part(side, word, model, links, sign, around):
    """Add `sign` times the jumps, or distances, that a word takes part in to `around.mine`."""
    if model.is_chain:
        read_links(side, word, links, around.own)
        add_jumps_of(side.positions.shape[0], model.has_ends, around, around.after[word], sign, around.mine)
    elif model.is_diagonal:
        add_distances_of(side, word, links, sign, around.mine)


@bare_kernel
def visit_side(cells, side, counts, totals, prior, model, links, kept, how, around, room):
    """Update the words of one direction of a sentence pair; `kept` (B,) are its jumps. Return the log normaliser."""
    n_positions, of_sides, found = side.positions.shape[0], counts.jumps[side.direction], 0.0
    sum_jumps(side, model, links, around)
    for bucket in range(kept.shape[0] if how.excludes else 0):
        of_sides[bucket] -= kept[bucket]
    for word in range(side.words.shape[0]):
        if how.excludes:
            add_word(cells, side, word, links, -1.0, model.agrees, counts, totals)
        weigh_word(cells, side, word, counts, totals, prior[0], around.weights)
        add_part(side, word, model, links, -1.0, around)
        if model.is_chain:
            weigh_jumps(of_sides, prior[1], how.excludes, model, n_positions, around, around.after[word], room)
        elif model.is_diagonal:
            weigh_distances_of(of_sides, prior[1], how.excludes, model.null_probability, side, word, around)
        if how.excludes != how.puts_back:
            add_word(cells, side, word, links, 1.0 if how.excludes else -1.0, model.agrees, counts, totals)
        found += renew_word(side, word, around.weights, links)
        if how.puts_back:
            add_word(cells, side, word, links, 1.0, model.agrees, counts, totals)
        add_part(side, word, model, links, 1.0, around)
        if model.is_chain:
            step_over(n_positions, around)
    keep_jumps(around.mine, kept, of_sides, how)
    return found


@kernel
def visit_words(cells, pairs, counts, totals, prior, model, shares, excludes, puts_back, sizes):
    """Update the words of sentence pairs one after the other; arguments and result are those of `visit_pairs`.

    With `puts_back` false counts stay as they are, and neighbours are seen with their new q all the same.
    """
    longest, n_buckets = max(sizes[0], sizes[1]), counts.jumps.shape[1]
    room, places, widths = make_room(longest, longest, 0), np.zeros((4, longest + 1)), np.zeros((2, n_buckets))
    after = np.zeros((longest, longest + 1))
    around = Around(places[0], after, places[1], places[2], places[3], widths[0], widths[1])
    how, found = How(excludes, puts_back), 0.0
    for pair in pairs:
        for direction in range(2 if cells.starts[pair] < cells.starts[pair + 1] else 0):
            side, kept = side_of(cells, pair, direction), shares.jumps[pair, direction]
            found += visit_side(cells, side, counts, totals, prior, model, shares.links, kept, how, around, room)
    return found
