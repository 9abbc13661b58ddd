"""Which source and target words occur in the same sentence pair, and which of these word pairs each cell is.

A *cell* is a source position and a target position of one sentence pair; cells lie one sentence pair after the other,
target position by target position. All cells of one source word are found from the list of its occurrences, so that a
table over the target vocabulary tells which of its word pairs are known already: there is nothing to sort.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.compiled import kernel


class Cells(NamedTuple):
    """Sentence pairs as kernels read them.

    Attributes
    ----------
    source, target : (N,) int32 codes of words, one sentence after the other
    source_starts, target_starts : (S + 1,) first token of each sentence
    starts : (S + 1,) first cell of each sentence pair; a pair that is left out has none
    entries : (n_cells,) int32 word pair of each cell
    """

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    source_starts: NDArray[np.int64]
    target_starts: NDArray[np.int64]
    starts: NDArray[np.int64]
    entries: NDArray[np.int32]


class Occurrences(NamedTuple):
    """Where each source word occurs: tokens `order[starts[w]:starts[w + 1]]`, and the sentence of every token."""

    starts: NDArray[np.int64]
    order: NDArray[np.int64]
    sentences: NDArray[np.int32]


@kernel
def occurrences(tokens, sentence_starts, n_words):
    """Return the `Occurrences` of all words, in the order of the text."""
    starts = np.zeros(n_words + 1, dtype=np.int64)
    for token in tokens:
        starts[token + 1] += 1
    for word in range(n_words):
        starts[word + 1] += starts[word]
    following = starts[:-1].copy()
    order = np.empty(tokens.shape[0], dtype=np.int64)
    sentences = np.empty(tokens.shape[0], dtype=np.int32)
    for sentence in range(sentence_starts.shape[0] - 1):
        for at in range(sentence_starts[sentence], sentence_starts[sentence + 1]):
            order[following[tokens[at]]] = at
            following[tokens[at]] += 1
            sentences[at] = sentence
    return Occurrences(starts, order, sentences)


@kernel
def count_pairs(cells, where, n_targets, counts):
    """Write the number of distinct target words that each source word occurs with to `counts` (n_words,)."""
    seen = np.full(n_targets, -1, dtype=np.int64)
    for word in range(counts.shape[0]):
        found, last = 0, -1
        for at in where.order[where.starts[word] : where.starts[word + 1]]:
            sentence = where.sentences[at]
            if sentence == last or cells.starts[sentence] == cells.starts[sentence + 1]:
                continue
            last = sentence
            for token in cells.target[cells.target_starts[sentence] : cells.target_starts[sentence + 1]]:
                if seen[token] != word:
                    seen[token] = word
                    found += 1
        counts[word] = found


@kernel
def number_pairs(cells, where, rows, targets, n_targets):
    """Number the word pairs, and write the number of every cell's pair to `cells.entries`.

    The pairs of source word w are `rows[w]` … `rows[w + 1] − 1`; their target words go to `targets`.
    """
    place = np.full(n_targets, -1, dtype=np.int64)
    for word in range(rows.shape[0] - 1):
        first = following = rows[word]
        for at in where.order[where.starts[word] : where.starts[word + 1]]:
            sentence = where.sentences[at]
            begin, end = cells.target_starts[sentence], cells.target_starts[sentence + 1]
            cell = cells.starts[sentence] + at - cells.source_starts[sentence]
            width = cells.source_starts[sentence + 1] - cells.source_starts[sentence]
            if cells.starts[sentence] == cells.starts[sentence + 1]:
                continue
            for token in cells.target[begin:end]:
                if place[token] < first:
                    place[token] = following
                    targets[following] = token
                    following += 1
                cells.entries[cell] = place[token]
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
