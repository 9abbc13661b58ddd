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
from subchain.propagation.alignment.pair import Shares, keep, rooms, run_pair
from subchain.propagation.alignment.sentence import padded
from subchain.propagation.compiled import bare_kernel, kernel

#: Sentence pairs that a thread claims at a time.
CLAIMED = 4
#: Binary logarithm of the number of neighbouring word pairs whose counts the same thread changes, and how many cells
#: ahead counts are fetched from memory.
STRETCH, AHEAD = 11, 16


class Changes(NamedTuple):
    """What the pairs of a round change in the counts.

    Attributes
    ----------
    old : shares of the pairs before the round, cells one after the other, jumps by row
    places : (n + 1,) first cell of each pair in `old`
    tokens : (n + 1,) first row of each pair in `sums`: its target words, then its source words
    sums : (tokens, 2) change of the total of a word, and of its count given NULL
    logs : (n,) log normalisers
    """

    old: Shares
    places: NDArray[np.int64]
    tokens: NDArray[np.int64]
    sums: NDArray[np.float64]
    logs: NDArray[np.float64]


@bare_kernel
def _first_places(words, out):
    """Write where the word of each position occurs first in its sentence."""
    for at in range(words.shape[0]):
        out[at] = at
        for earlier in range(at):
            if words[earlier] == words[at]:
                out[at] = earlier
                break


@bare_kernel
def _sum_tokens(links, first, n_source, n_target, agrees, sums):
    """Write the totals of target words, then of source words, and their NULL counts, to `sums` (words, 2)."""
    sums[n_target : n_target + n_source, 0] = 0.0
    sums[n_target : n_target + n_source, 1] = 1.0
    for j in range(n_target):
        left, of_target = 1.0, 0.0
        for i in range(n_source):
            one, other = np.float64(links[first, 0]), np.float64(links[first, 1])
            left -= one
            sums[n_target + i, 1] -= other
            if agrees:
                one *= other
                other = one
            sums[n_target + i, 0] += one
            of_target += other
            first += 1
        sums[j, 0] = of_target
        sums[j, 1] = left
    for at in range(n_target + n_source):
        sums[at, 1] = max(sums[at, 1], 0.0)


@bare_kernel
def _own_share(links, first, places, n_source, n_target, agrees, pairs, sums, tokens):
    """Write what a sentence pair has put into the counts, repeated words added up at their first place.

    `pairs` (target words, source words, 2) are links, `tokens` and `sums` (words, 2) those of `_sum_tokens`, one by one
    and added up. Where a word comes first, its row and column are right, and those are the ones that are read.
    """
    _sum_tokens(links, first, n_source, n_target, agrees, tokens)
    for j in range(n_target):
        for i in range(n_source):
            one, other = np.float64(links[first, 0]), np.float64(links[first, 1])
            if agrees:
                one *= other
                other = one
            pairs[j, i, 0] = one
            pairs[j, i, 1] = other
            first += 1
    _add_repeats(places, n_source, n_target, pairs, sums, tokens)


@bare_kernel
def _add_repeats(places, n_source, n_target, pairs, sums, tokens):
    """Write `tokens` to `sums`, those of repeated words at their first place, and add up their rows and columns."""
    for at in range(n_target + n_source):
        sums[at, 0] = 0.0
        sums[at, 1] = 0.0
        to = places[at] if at < n_target else n_target + places[at]
        sums[to, 0] += tokens[at, 0]
        sums[to, 1] += tokens[at, 1]
    for j in range(n_target):
        for i in range(n_source if places[j] != j else 0):
            pairs[places[j], i, 0] += pairs[j, i, 0]
            pairs[places[j], i, 1] += pairs[j, i, 1]
    for i in range(n_source):
        to = places[n_target + i]
        for j in range(n_target if to != i else 0):
            pairs[j, to, 0] += pairs[j, i, 0]
            pairs[j, to, 1] += pairs[j, i, 1]


@bare_kernel
def _keep_old(shares, pair, first, last, old, place, row):
    """Copy the share of a sentence pair, cells `first` … `last` − 1, to `old`."""
    for cell in range(last - first):
        old.links[place + cell, 0] = shares.links[first + cell, 0]
        old.links[place + cell, 1] = shares.links[first + cell, 1]
    for direction in range(2):
        for bucket in range(old.jumps.shape[2]):
            old.jumps[row, direction, bucket] = shares.jumps[pair, direction, bucket]


@bare_kernel
def _fetch_counts(cells, pair, counts):
    """Have the counts of a sentence pair on their way from memory before they are read."""
    for cell in range(cells.starts[pair], cells.starts[pair + 1]):
        fetch(counts.pairs, cells.entries[cell], 0)


@bare_kernel
def _predict_without(cells, pair, counts, totals, concentration, places, pairs, sums, both):
    """Fill the weights of both directions from counts without the pair's own share; see `pair.predict`."""
    first_source, first_target = cells.source_starts[pair], cells.target_starts[pair]
    n_source, n_target = cells.source_starts[pair + 1] - first_source, cells.target_starts[pair + 1] - first_target
    wide, high = padded(n_source), padded(n_target)
    forward = both[0].weights[: n_target * wide].reshape(n_target, wide)
    backward = both[1].weights[: n_source * high].reshape(n_source, high)
    of_targets, of_sources = counts.null_target.shape[0] * concentration, counts.null_source.shape[0] * concentration
    null_source, null_target = totals.source[-1], totals.target[-1]
    for j in range(n_target):
        null_source -= sums[j, 1]
    for i in range(n_source):
        null_target -= sums[n_target + i, 1]
    null_source, null_target = max(null_source, 0.0) + of_targets, max(null_target, 0.0) + of_sources
    scales = both[0].vectors[0]
    for i in range(n_source):
        word, own = cells.source[first_source + i], n_target + places[n_target + i]
        scales[i] = 1.0 / (max(totals.source[word] - sums[own, 0], 0.0) + of_targets)
        both[1].null[i] = (max(counts.null_source[word] - sums[own, 1], 0.0) + concentration) / null_target
        backward[i, n_target:] = 0.0
    cell = cells.starts[pair]
    for j in range(n_target):
        word, own = cells.target[first_target + j], places[j]
        both[0].null[j] = (max(counts.null_target[word] - sums[own, 1], 0.0) + concentration) / null_source
        scale = 1.0 / (max(totals.target[word] - sums[own, 0], 0.0) + of_sources)
        for i in range(n_source):
            entry, at = cells.entries[cell + i], places[n_target + i]
            forward[j, i] = (max(counts.pairs[entry, 0] - pairs[own, at, 0], 0.0) + concentration) * scales[i]
            backward[i, j] = (max(counts.pairs[entry, 1] - pairs[own, at, 1], 0.0) + concentration) * scale
        forward[j, n_source:] = 0.0
        cell += n_source


@kernel
def visit_round(cells, pairs, counts, totals, prior, model, shares, changes, excludes, sizes, counter):
    """Write new shares of sentence pairs under the counts, without their own if `excludes`, and what they change.

    Several threads may run this at once. `prior` is the concentration of words, and that of jump widths.
    """
    both = rooms(sizes[0], sizes[1], sizes[2])
    n_buckets = counts.jumps.shape[1]
    expected, no_exposures, jumps = np.zeros((2, n_buckets)), np.zeros((2, 0)), np.zeros((2, n_buckets))
    places, flat = np.empty(sizes[0] + sizes[1], dtype=np.int64), np.empty(2 * sizes[2])
    own_sums, own_tokens = np.empty((sizes[0] + sizes[1], 2)), np.empty((sizes[0] + sizes[1], 2))
    while True:
        begin = claim(counter) * CLAIMED
        if begin >= pairs.shape[0]:
            return
        for k in range(begin, min(begin + CLAIMED, pairs.shape[0])):
            pair, first = pairs[k], cells.starts[pairs[k]]
            if k + 1 < pairs.shape[0]:
                _fetch_counts(cells, pairs[k + 1], counts)
            changes.logs[k] = 0.0
            if first == cells.starts[pair + 1]:
                continue
            first_source, first_target = cells.source_starts[pair], cells.target_starts[pair]
            n_source = cells.source_starts[pair + 1] - first_source
            n_target = cells.target_starts[pair + 1] - first_target
            _first_places(cells.target[first_target : first_target + n_target], places)
            _first_places(cells.source[first_source : first_source + n_source], places[n_target:])
            own = flat[: 2 * n_source * n_target].reshape(n_target, n_source, 2)
            _own_share(shares.links, first, places, n_source, n_target, model.agrees, own, own_sums, own_tokens)
            taken = 1.0 if excludes else 0.0
            if not excludes:
                own[:] = 0.0
                own_sums[:] = 0.0
            for direction in range(2):
                for bucket in range(n_buckets):
                    others = counts.jumps[direction, bucket] - taken * shares.jumps[pair, direction, bucket]
                    jumps[direction, bucket] = max(others, 0.0) + prior[1]
            _predict_without(cells, pair, counts, totals, prior[0], places, own, own_sums, both)
            changes.logs[k] = run_pair(model, jumps, n_source, n_target, both, expected, no_exposures)
            _keep_old(shares, pair, first, cells.starts[pair + 1], changes.old, changes.places[k], k)
            keep(both, expected, n_source, n_target, first, pair, shares)
            found = changes.sums[changes.tokens[k] : changes.tokens[k + 1]]
            _sum_tokens(shares.links, first, n_source, n_target, model.agrees, found)
            for at in range(n_target + n_source):
                found[at, 0] -= own_tokens[at, 0]
                found[at, 1] -= own_tokens[at, 1]


@kernel
def apply_changes(cells, pairs, shares, changes, agrees, counts, totals, n_parts, counter):
    """Put the changes of a round into the counts; several threads may run this, each with parts of the table.

    `n_parts` is a power of two.
    """
    while True:
        part = claim(counter)
        if part >= n_parts:
            return
        for k in range(pairs.shape[0]):
            place = changes.places[k]
            _apply_links(cells, pairs[k], place, shares.links, changes.old.links, agrees, counts, part, n_parts)
            if part == 0 and cells.starts[pairs[k]] < cells.starts[pairs[k] + 1]:
                _apply_words(cells, pairs[k], k, shares, changes, counts, totals)


@bare_kernel
def _apply_links(cells, pair, place, links, before, agrees, counts, part, n_parts):
    """Put the changes of one part of the word pairs of a sentence pair into the counts."""
    last = cells.entries.shape[0] - 1
    for cell in range(cells.starts[pair], cells.starts[pair + 1]):
        coming = cells.entries[min(cell + AHEAD, last)]
        if coming >> STRETCH & n_parts - 1 == part:
            fetch(counts.pairs, coming, 0)
        entry = cells.entries[cell]
        if entry >> STRETCH & n_parts - 1 == part:
            one, other = np.float64(links[cell, 0]), np.float64(links[cell, 1])
            old, old_other = np.float64(before[place, 0]), np.float64(before[place, 1])
            if agrees:
                one *= other
                other = one
                old *= old_other
                old_other = old
            counts.pairs[entry, 0] += one - old
            counts.pairs[entry, 1] += other - old_other
        place += 1


@bare_kernel
def _apply_words(cells, pair, k, shares, changes, counts, totals):
    """Put the changes of the totals of words, of NULL and of jumps into the counts."""
    row = changes.tokens[k]
    for at in range(cells.target_starts[pair], cells.target_starts[pair + 1]):
        totals.target[cells.target[at]] += changes.sums[row, 0]
        counts.null_target[cells.target[at]] += changes.sums[row, 1]
        totals.source[-1] += changes.sums[row, 1]
        row += 1
    for at in range(cells.source_starts[pair], cells.source_starts[pair + 1]):
        totals.source[cells.source[at]] += changes.sums[row, 0]
        counts.null_source[cells.source[at]] += changes.sums[row, 1]
        totals.target[-1] += changes.sums[row, 1]
        row += 1
    for direction in range(2):
        for bucket in range(counts.jumps.shape[1]):
            new, old = shares.jumps[pair, direction, bucket], changes.old.jumps[k, direction, bucket]
            counts.jumps[direction, bucket] += np.float64(new) - np.float64(old)
