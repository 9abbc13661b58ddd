"""Collapsed visits of many sentence pairs side by side: rounds of pairs that see the counts of the round's beginning.

Every pair of a round is updated under the counts without its own share, which is subtracted where counts are read. Its
new share takes the place of the old one at once; the counts change when the round is over. A pair therefore sees the
shares of the pass before of the few pairs of its own round, and new shares of all that were visited earlier. Counts of
a word pair are changed by one thread, in the order of the text, so that results do not depend on the number of threads.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.claiming import claim
from subchain.numerics.vectors import fetch
from subchain.propagation.alignment.pair import rooms, run_pair
from subchain.propagation.alignment.sentence import room_in
from subchain.propagation.alignment.views import table_at
from subchain.propagation.compiled import bare_kernel, bare_part, kernel

Array = NDArray[np.float64]

#: Sentence pairs that a thread claims at a time, and whose changes of jumps are added up before they are kept.
CLAIMED = 4


class Changes(NamedTuple):
    """What the pairs of a round change in the counts.

    Attributes
    ----------
    places : (n + 1,) first cell of each pair in `links`
    tokens : (n + 1,) first token of each pair in `totals` and `nulls`: its target words, then its source words
    links : (cells · sides,) changes of the counts of word pairs: of both directions, or with agreement one for both
    totals, nulls : (tokens,) changes of the total of each word, and of its count given NULL
    jumps : (n / `CLAIMED`, 2, B) changes of the counts of jumps
    logs : (n,) log normalisers
    """

    places: NDArray[np.int64]
    tokens: NDArray[np.int64]
    links: Array
    totals: Array
    nulls: Array
    jumps: Array
    logs: Array


class Own(NamedTuple):
    """What one sentence pair has put into the counts.

    Attributes
    ----------
    links : (sides · target words · source words,) word pairs; a repeated word has the sum in all its places
    totals, nulls : (words,) of target words, then of source words, in the same manner
    token_totals, token_nulls : (words,) those of every token by itself
    places : (words,) where the word of each token occurs first in its sentence
    """

    links: Array
    totals: Array
    nulls: Array
    token_totals: Array
    token_nulls: Array
    places: NDArray[np.int64]


class How(NamedTuple):
    """Whether pairs are updated under the counts without their own share, and whether they have no share yet."""

    excludes: bool
    begins: bool


class Desk(NamedTuple):
    """Room of a thread.

    Attributes
    ----------
    own, nothing : share of a pair, and a share that is always zero
    both : room of both directions, see `pair.rooms`
    jumps, expected : (2, B) weights of jumps, and their expected numbers
    exposures : (2, 0) none
    """

    own: Own
    nothing: Own
    both: tuple[Array, Array]
    jumps: Array
    expected: Array
    exposures: Array


@kernel
def _make_desk(sizes, n_buckets):
    """Return room for the longest sentence pairs."""
    jumps, expected = np.zeros((2, n_buckets)), np.zeros((2, n_buckets))
    own, nothing, both = _make_own(sizes), _make_own(sizes), rooms(sizes[0], sizes[1], sizes[2])
    return Desk(own, nothing, both, jumps, expected, np.zeros((2, 0)))


@kernel
def _make_own(sizes):
    """Return a share that is all zero."""
    tokens = np.zeros((4, sizes[0] + sizes[1]))
    places = np.zeros(sizes[0] + sizes[1], dtype=np.int64)
    return Own(np.zeros(2 * sizes[2]), tokens[0], tokens[1], tokens[2], tokens[3], places)


@bare_part
def _take_share(cells, pair, links, n_sides, own):
    """Write what a sentence pair has put into the counts; see `pair.add_share`."""
    first_source, first_target, first = cells.source_starts[pair], cells.target_starts[pair], cells.starts[pair]
    n_source, n_target = cells.source_starts[pair + 1] - first_source, cells.target_starts[pair + 1] - first_target
    totals, nulls, size = own.token_totals, own.token_nulls, n_source * n_target
    of_sources, left_sources = totals[n_target : n_target + n_source], nulls[n_target : n_target + n_source]
    of_sources[:] = 0.0
    left_sources[:] = 1.0
    for j in range(n_target):
        left, of_target, at = 1.0, 0.0, j * n_source
        row, out = links[2 * (first + at) : 2 * (first + at + n_source)], own.links[at : at + n_source]
        out_other = own.links[size + at : size + at + n_source]
        for i in range(n_source):
            one, other = np.float64(row[2 * i]), np.float64(row[2 * i + 1])
            left -= one
            left_sources[i] -= other
            if n_sides == 1:
                one *= other
                other = one
            else:
                out_other[i] = other
            out[i] = one
            of_sources[i] += one
            of_target += other
        totals[j] = of_target
        nulls[j] = left
    for at in range(n_target + n_source):
        nulls[at] = max(nulls[at], 0.0)
        own.totals[at] = totals[at]
        own.nulls[at] = nulls[at]
    of_target = _first_places(cells.target[first_target : first_target + n_target], own.places)
    of_source = _first_places(cells.source[first_source : first_source + n_source], own.places[n_target:])
    if of_target or of_source:
        _add_repeats(n_source, n_target, n_sides, own)


@bare_kernel
def _first_places(words, out):
    """Write where the word of each position occurs first in its sentence; return whether a word occurs twice."""
    repeats = False
    for at in range(words.shape[0]):
        out[at] = at
        for earlier in range(at):
            if words[earlier] == words[at]:
                out[at] = earlier
                repeats = True
                break
    return repeats


@bare_kernel
def _add_repeats(n_source, n_target, n_sides, own):
    """Let all places of a word have the sum over them, in totals, NULL counts and links."""
    of_target, of_source = own.places[:n_target], own.places[n_target : n_target + n_source]
    for values in (own.totals, own.nulls):
        _add_words(of_target, values[:n_target])
        _add_words(of_source, values[n_target : n_target + n_source])
    for side in range(n_sides):
        _add_cells(of_target, of_source, table_at(own.links, side * n_source * n_target, n_target, n_source))


@bare_part
def _add_words(places, values):
    for at in range(places.shape[0]):
        if places[at] != at:
            values[places[at]] += values[at]
    for at in range(places.shape[0]):
        values[at] = values[places[at]]


@bare_part
def _add_cells(of_row, of_column, table):
    """Add up the rows, then the columns of each word at its first place, and copy them to its other places."""
    n_rows, n_columns = table.shape
    for j in range(n_rows):
        for i in range(n_columns if of_row[j] != j else 0):
            table[of_row[j], i] += table[j, i]
    for i in range(n_columns):
        for j in range(n_rows if of_column[i] != i else 0):
            table[j, of_column[i]] += table[j, i]
    for i in range(n_columns):
        for j in range(n_rows if of_column[i] != i else 0):
            table[j, i] = table[j, of_column[i]]
    for j in range(n_rows):
        for i in range(n_columns if of_row[j] != j else 0):
            table[j, i] = table[of_row[j], i]


@bare_kernel
def _fetch_counts(cells, pair, counts):
    """Have the counts of a sentence pair on their way from memory before they are read."""
    for cell in range(cells.starts[pair], cells.starts[pair + 1]):
        fetch(counts.pairs, cells.entries[cell], 0)


@bare_part
def _predict_without(cells, pair, counts, totals, concentration, n_sides, own, both):
    """Fill the weights of both directions from counts without the pair's own share; see `pair.predict`."""
    first_source, first_target = cells.source_starts[pair], cells.target_starts[pair]
    n_source, n_target = cells.source_starts[pair + 1] - first_source, cells.target_starts[pair + 1] - first_target
    one, two = room_in(both[0], n_target, n_source), room_in(both[1], n_source, n_target)
    forward, backward = one.weights, two.weights
    of_targets, of_sources = counts.null_target.shape[0] * concentration, counts.null_source.shape[0] * concentration
    null_source, null_target = totals.source[-1], totals.target[-1]
    for j in range(n_target):
        null_source -= own.token_nulls[j]
    for i in range(n_source):
        null_target -= own.token_nulls[n_target + i]
    null_source, null_target = 1.0 / (max(null_source, 0.0) + of_targets), 1.0 / (max(null_target, 0.0) + of_sources)
    scales = one.vectors[0]
    for i in range(n_source):
        word, at = cells.source[first_source + i], n_target + i
        scales[i] = 1.0 / (max(totals.source[word] - own.totals[at], 0.0) + of_targets)
        two.null[i] = (max(counts.null_source[word] - own.nulls[at], 0.0) + concentration) * null_target
        backward[i, n_target:] = 0.0
    cell, at, last = cells.starts[pair], 0, (n_sides - 1) * n_source * n_target
    for j in range(n_target):
        word = cells.target[first_target + j]
        one.null[j] = (max(counts.null_target[word] - own.nulls[j], 0.0) + concentration) * null_source
        scale = 1.0 / (max(totals.target[word] - own.totals[j], 0.0) + of_sources)
        row, mine, others = forward[j], own.links[at : at + n_source], own.links[last + at : last + at + n_source]
        entries = cells.entries[cell : cell + n_source]
        for i in range(n_source):
            entry = entries[i]
            row[i] = (max(counts.pairs[entry, 0] - mine[i], 0.0) + concentration) * scales[i]
            backward[i, j] = (max(counts.pairs[entry, 1] - others[i], 0.0) + concentration) * scale
        row[n_source:] = 0.0
        cell += n_source
        at += n_source


@bare_part
def _keep_links(first, n_source, n_target, n_sides, own, links, k, changes, both):
    """Write the new links of a sentence pair over the old ones, and what that changes in the counts."""
    forward, backward = room_in(both[0], n_target, n_source).links, room_in(both[1], n_source, n_target).links
    place, token = n_sides * changes.places[k], changes.tokens[k]
    totals, nulls = changes.totals[token:], changes.nulls[token:]
    of_sources, left_sources = totals[n_target : n_target + n_source], nulls[n_target : n_target + n_source]
    of_sources[:] = 0.0
    left_sources[:] = 1.0
    for j in range(n_target):
        left, of_target, at = 1.0, 0.0, j * n_source
        row, new = links[2 * (first + at) : 2 * (first + at + n_source)], forward[j]
        change = changes.links[place + n_sides * at : place + n_sides * (at + n_source)]
        for i in range(n_source):
            old, old_other = np.float64(row[2 * i]), np.float64(row[2 * i + 1])
            row[2 * i] = new[i]
            row[2 * i + 1] = backward[i, j]
            one, other = np.float64(row[2 * i]), np.float64(row[2 * i + 1])
            left -= one
            left_sources[i] -= other
            if n_sides == 1:
                one *= other
                other = one
                change[i] = one - old * old_other
            else:
                change[2 * i] = one - old
                change[2 * i + 1] = other - old_other
            of_sources[i] += one
            of_target += other
        totals[j] = of_target
        nulls[j] = left
    for at in range(n_target + n_source):
        totals[at] -= own.token_totals[at]
        nulls[at] = max(nulls[at], 0.0) - own.token_nulls[at]


@bare_part
def _others_jumps(counts, kept, taken, concentration, out):
    """Write the weights of jump widths, from counts without those `kept` of the pair itself if `taken` is 1."""
    for direction in range(2):
        for bucket in range(out.shape[1]):
            others = counts[direction, bucket] - taken * np.float64(kept[direction, bucket])
            out[direction, bucket] = max(others, 0.0) + concentration


@bare_part
def _keep_jumps(expected, kept, changes):
    """Write the new jumps of a sentence pair over the old ones, and add what that changes in the counts."""
    for direction in range(2):
        for bucket in range(expected.shape[1]):
            old = np.float64(kept[direction, bucket])
            kept[direction, bucket] = expected[direction, bucket]
            changes[direction, bucket] += np.float64(kept[direction, bucket]) - old


@bare_kernel
def _visit_pair(cells, pair, counts, totals, prior, model, shares, changes, k, how, desk):
    """Update the k-th sentence pair of a round."""
    n_source = cells.source_starts[pair + 1] - cells.source_starts[pair]
    n_target = cells.target_starts[pair + 1] - cells.target_starts[pair]
    n_sides, has_jumps, both = 1 if model.agrees else 2, model.is_chain or model.is_diagonal, desk.both
    if not how.begins:
        _take_share(cells, pair, shares.links, n_sides, desk.own)
    if has_jumps:
        _others_jumps(counts.jumps, shares.jumps[pair], 1.0 if how.excludes else 0.0, prior[1], desk.jumps)
    _predict_without(cells, pair, counts, totals, prior[0], n_sides, desk.own if how.excludes else desk.nothing, both)
    changes.logs[k] = run_pair(model, desk.jumps, n_source, n_target, both, desk.expected, desk.exposures)
    before = desk.nothing if how.begins else desk.own
    _keep_links(cells.starts[pair], n_source, n_target, n_sides, before, shares.links, k, changes, both)
    if has_jumps:
        _keep_jumps(desk.expected, shares.jumps[pair], changes.jumps[k // CLAIMED])


@kernel
def visit_round(cells, pairs, counts, totals, prior, model, shares, changes, how, sizes, counter):
    """Write new shares of sentence pairs, and what they change; several threads may run this at once.

    The links of `shares` are flat, (cells · 2,), and those of all pairs; all are zero if `how.begins`. `prior` is the
    concentration of words, and that of jump widths.
    """
    desk = _make_desk(sizes, counts.jumps.shape[1])
    while True:
        block = claim(counter)
        if block * CLAIMED >= pairs.shape[0]:
            return
        changes.jumps[block] = 0.0
        for k in range(block * CLAIMED, min((block + 1) * CLAIMED, pairs.shape[0])):
            if k + 1 < pairs.shape[0]:
                _fetch_counts(cells, pairs[k + 1], counts)
            changes.logs[k] = 0.0
            if cells.starts[pairs[k]] < cells.starts[pairs[k] + 1]:
                _visit_pair(cells, pairs[k], counts, totals, prior, model, shares, changes, k, how, desk)


@kernel
def apply_changes(cells, pairs, changes, agrees, counts, totals, cuts, sizes, counter):
    """Put the changes of a round into the counts; several threads may run this, each with parts of the table.

    Part k of the table has the source words `cuts[k − 1]` … `cuts[k]` − 1; totals, NULL and jumps are part 0.
    """
    chosen = np.empty(sizes[0], dtype=np.int64)
    while True:
        part = claim(counter)
        if part >= cuts.shape[0]:
            return
        if part == 0:
            _apply_words(cells, pairs, changes, counts, totals)
            continue
        for k in range(pairs.shape[0]):
            if cells.starts[pairs[k]] < cells.starts[pairs[k] + 1]:
                begin, first, last = changes.places[k], cuts[part - 1], cuts[part]
                _apply_links(cells, pairs[k], changes.links, begin, agrees, counts.pairs, first, last, chosen)


@bare_kernel
def _apply_links(cells, pair, links, place, agrees, counts, first, last, chosen):
    """Put the changes of a sentence pair into the counts of the source words `first` … `last` − 1."""
    cell, begin, n_chosen = cells.starts[pair], cells.source_starts[pair], 0
    n_source, n_target = (
        cells.source_starts[pair + 1] - begin,
        cells.target_starts[pair + 1] - cells.target_starts[pair],
    )
    for i in range(n_source):
        if first <= cells.source[begin + i] < last:
            chosen[n_chosen] = i
            n_chosen += 1
    end = cells.entries.shape[0]
    for _ in range(n_target):
        entries, coming = (
            cells.entries[cell : cell + n_source],
            cells.entries[min(cell + n_source, end - n_source) : end],
        )
        one = links[place : place + n_source] if agrees else links[2 * place : 2 * (place + n_source)]
        for i in chosen[:n_chosen]:
            fetch(counts, coming[i], 0)
            entry = entries[i]
            counts[entry, 0] += one[i] if agrees else one[2 * i]
            counts[entry, 1] += one[i] if agrees else one[2 * i + 1]
        cell += n_source
        place += n_source


@bare_kernel
def _apply_words(cells, pairs, changes, counts, totals):
    """Put the changes of the totals of words, of NULL and of jumps into the counts."""
    of_source, of_target = 0.0, 0.0
    for k in range(pairs.shape[0]):
        pair, row = pairs[k], changes.tokens[k]
        if cells.starts[pair] == cells.starts[pair + 1]:
            continue
        for at in range(cells.target_starts[pair], cells.target_starts[pair + 1]):
            totals.target[cells.target[at]] += changes.totals[row]
            counts.null_target[cells.target[at]] += changes.nulls[row]
            of_source += changes.nulls[row]
            row += 1
        for at in range(cells.source_starts[pair], cells.source_starts[pair + 1]):
            totals.source[cells.source[at]] += changes.totals[row]
            counts.null_source[cells.source[at]] += changes.nulls[row]
            of_target += changes.nulls[row]
            row += 1
    totals.source[-1] += of_source
    totals.target[-1] += of_target
    for block in range((pairs.shape[0] + CLAIMED - 1) // CLAIMED):
        for direction in range(2):
            for bucket in range(counts.jumps.shape[1]):
                counts.jumps[direction, bucket] += changes.jumps[block, direction, bucket]
