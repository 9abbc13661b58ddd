"""Which source and target words occur in the same sentence pair, and which of these word pairs each cell is.

A *cell* is a source position and a target position of one sentence pair; cells lie one sentence pair after the other,
target position by target position. All cells of one source word are found from the list of its occurrences, so that a
table over the target vocabulary tells which of its word pairs are known already. Source words are treated in blocks,
which threads share and which bound the room that is needed. Word pairs are sorted by source word, then by target word.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.claiming import claim
from subchain.propagation.alignment.sentence import padded
from subchain.propagation.compiled import bare_kernel, kernel

#: Sentence pairs that a thread claims at a time.
CLAIMED = 64


class Cells(NamedTuple):
    """Sentence pairs as kernels read them.

    Attributes
    ----------
    source, target : (N,) int32 codes of words, one sentence after the other
    source_starts, target_starts : (S + 1,) first token of each sentence
    starts : (S + 1,) first cell of each sentence pair; a pair that is left out has none
    entries : (n_cells,) int32 word pair of each cell; (0,) where they are looked up when they are needed
    """

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    source_starts: NDArray[np.int64]
    target_starts: NDArray[np.int64]
    starts: NDArray[np.int64]
    entries: NDArray[np.int32]


class Occurrences(NamedTuple):
    """Where some source words occur: those of the k-th are `starts[k]` … `starts[k + 1] − 1`, token and sentence."""

    starts: NDArray[np.int64]
    order: NDArray[np.int64]
    sentences: NDArray[np.int32]


@kernel
def measure_pairs(source_starts, target_starts, most_words, starts, sizes):
    """Write the first cell of each sentence pair, and the number of all cells, to `starts`.

    Pairs with a sentence of more than `most_words` words have none. `sizes` (3,) are the longest source and target
    sentence, and the cells of the largest pair, with padded rows.
    """
    for pair in range(starts.shape[0] - 1):
        width, height = source_starts[pair + 1] - source_starts[pair], target_starts[pair + 1] - target_starts[pair]
        starts[pair + 1] = starts[pair]
        if width and height and max(width, height) <= most_words:
            starts[pair + 1] += width * height
            sizes[0], sizes[1] = max(sizes[0], width), max(sizes[1], height)
            sizes[2] = max(sizes[2], height * padded(width), width * padded(height))


@kernel
def count_cells(cells, counts):
    """Add the number of cells of each source word to `counts` (n_words,)."""
    for pair in range(cells.starts.shape[0] - 1):
        if cells.starts[pair] < cells.starts[pair + 1]:
            height = cells.target_starts[pair + 1] - cells.target_starts[pair]
            for at in range(cells.source_starts[pair], cells.source_starts[pair + 1]):
                counts[cells.source[at]] += height


@kernel
def occurrences(cells, first, last):
    """Return the `Occurrences` of the source words `first` … `last` − 1 in pairs with cells, in order."""
    starts = np.zeros(last - first + 1, dtype=np.int64)
    for pair in range(cells.starts.shape[0] - 1):
        if cells.starts[pair] < cells.starts[pair + 1]:
            for at in range(cells.source_starts[pair], cells.source_starts[pair + 1]):
                if first <= cells.source[at] < last:
                    starts[cells.source[at] - first + 1] += 1
    for word in range(last - first):
        starts[word + 1] += starts[word]
    following = starts[:-1].copy()
    order = np.empty(starts[-1], dtype=np.int64)
    sentences = np.empty(starts[-1], dtype=np.int32)
    for pair in range(cells.starts.shape[0] - 1):
        if cells.starts[pair] < cells.starts[pair + 1]:
            for at in range(cells.source_starts[pair], cells.source_starts[pair + 1]):
                if first <= cells.source[at] < last:
                    word = cells.source[at] - first
                    order[following[word]] = at
                    sentences[following[word]] = pair
                    following[word] += 1
    return Occurrences(starts, order, sentences)


@kernel
def sum_cells(cells, where):
    """Return the number of cells of some source words."""
    found = 0
    for sentence in where.sentences:
        found += cells.target_starts[sentence + 1] - cells.target_starts[sentence]
    return found


@kernel
def list_pairs(cells, where, n_targets, counts, out):
    """Write the distinct target words of some source words to `out`, word by word and in order; return their number.

    `counts` (words,) are set to the numbers of each word.
    """
    seen = np.full(n_targets, -1, dtype=np.int32)
    of_target = np.zeros(n_targets + 1, dtype=np.int64)
    found = 0
    for word in range(counts.shape[0]):
        last, begin = -1, found
        for sentence in where.sentences[where.starts[word] : where.starts[word + 1]]:
            if sentence == last:
                continue
            last = sentence
            for token in cells.target[cells.target_starts[sentence] : cells.target_starts[sentence + 1]]:
                if seen[token] != word:
                    seen[token] = word
                    out[found] = token
                    of_target[token + 1] += 1
                    found += 1
        counts[word] = found - begin
    rows, words = np.empty(counts.shape[0], dtype=np.int64), np.empty(found, dtype=np.int32)
    _sort_rows(counts, of_target, rows, words, out)
    return found


@bare_kernel
def _sort_rows(counts, of_target, rows, words, out):
    """Sort the target words of each source word: list the source words of each target word, and turn that round.

    `of_target` (n_targets + 1,) has the number of source words of each target word, one place behind it; `rows`
    (source words,) and `words`, as long as the list, are room.
    """
    for target in range(of_target.shape[0] - 1):
        of_target[target + 1] += of_target[target]
    at = 0
    for word in range(counts.shape[0]):
        rows[word] = at
        for token in out[at : at + counts[word]]:
            words[of_target[token]] = word
            of_target[token] += 1
        at += counts[word]
    begin = 0
    for target in range(of_target.shape[0] - 1):
        for word in words[begin : of_target[target]]:
            out[rows[word]] = target
            rows[word] += 1
        begin = of_target[target]


@kernel
def number_cells(cells, where, first, rows, targets, n_targets):
    """Write the number of its word pair to the entry of every cell of the source words `first` and after it."""
    place = np.empty(n_targets, dtype=np.int32)
    for word in range(where.starts.shape[0] - 1):
        for entry in range(rows[first + word], rows[first + word + 1]):
            place[targets[entry]] = entry
        for k in range(where.starts[word], where.starts[word + 1]):
            at, sentence = where.order[k], where.sentences[k]
            cell = cells.starts[sentence] + at - cells.source_starts[sentence]
            width = cells.source_starts[sentence + 1] - cells.source_starts[sentence]
            for token in cells.target[cells.target_starts[sentence] : cells.target_starts[sentence + 1]]:
                cells.entries[cell] = place[token]
                cell += width


@kernel
def copy_sentences(tokens, starts, pairs, out):
    """Write the tokens of some sentences to `out`, one after the other."""
    following = 0
    for pair in pairs:
        for at in range(starts[pair], starts[pair + 1]):
            out[following] = tokens[at]
            following += 1


@kernel
def look_up(cells, rows, targets, counter):
    """Find the word pair of every cell in the sorted rows; several threads may run this at once."""
    n_pairs = cells.starts.shape[0] - 1
    while True:
        first = claim(counter) * CLAIMED
        if first >= n_pairs:
            return
        for pair in range(first, min(first + CLAIMED, n_pairs)):
            begin, end = cells.target_starts[pair], cells.target_starts[pair + 1]
            width = cells.source_starts[pair + 1] - cells.source_starts[pair]
            if cells.starts[pair] == cells.starts[pair + 1]:
                continue
            for i in range(width):
                word = cells.source[cells.source_starts[pair] + i]
                cell = cells.starts[pair] + i
                for token in cells.target[begin:end]:
                    low, size = rows[word], rows[word + 1] - rows[word]
                    while size > 1:
                        half = size >> 1
                        low += half if targets[low + half] <= token else 0
                        size -= half
                    cells.entries[cell] = low
                    cell += width


@kernel
def find_pairs(rows, targets, known_rows, known_targets, n_targets, found):
    """Write the number that each word pair has in another list of pairs to `found`; −1 if it is not in that list."""
    place = np.full(n_targets, -1, dtype=np.int64)
    for word in range(rows.shape[0] - 1):
        if word >= known_rows.shape[0] - 1:
            found[rows[word] : rows[word + 1]] = -1
            continue
        for entry in range(known_rows[word], known_rows[word + 1]):
            place[known_targets[entry]] = entry
        for entry in range(rows[word], rows[word + 1]):
            known = place[targets[entry]]
            found[entry] = known if known_rows[word] <= known < known_rows[word + 1] else -1
