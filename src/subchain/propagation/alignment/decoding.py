"""Which cells are links: the most probable position of every word, or those that both directions think probable."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.propagation.compiled import bare_kernel, kernel


@kernel
def mark_best(cells, links, direction, out):
    """Mark the best cell of each word in one direction: target words in direction 0, source words in direction 1."""
    for pair in range(cells.starts.shape[0] - 1):
        first = cells.starts[pair]
        n_source = cells.source_starts[pair + 1] - cells.source_starts[pair]
        n_target = cells.target_starts[pair + 1] - cells.target_starts[pair]
        if first == cells.starts[pair + 1]:
            continue
        n_words, n_positions = (n_target, n_source) if direction == 0 else (n_source, n_target)
        for word in range(n_words):
            best, left, most = -1, 1.0, 0.0
            for position in range(n_positions):
                j, i = (word, position) if direction == 0 else (position, word)
                cell = first + j * n_source + i
                probability = np.float64(links[cell, direction])
                left -= probability
                if probability > most:
                    best, most = cell, probability
            if most > left:
                out[best] = True


#: Marks of links: probable by themselves, or as the further link of a word beside one.
KEPT, ADDED = 1, 2


@kernel
def mark_products(cells, links, threshold, grows, out):
    """Mark the cells whose posteriors have a geometric mean above `threshold`; `out` (cells,) is zero.

    With `grows` a word that is left without a link takes one over half the threshold, the most probable one, from the
    words that a neighbour of it is linked to: words that are translated by two, or two by one, divide the posterior.
    """
    least = threshold * threshold
    for pair in range(cells.starts.shape[0] - 1):
        first, last = cells.starts[pair], cells.starts[pair + 1]
        for cell in range(first, last):
            if np.float64(links[cell, 0]) * np.float64(links[cell, 1]) > least:
                out[cell] = KEPT
        if grows and first < last:
            n_source = cells.source_starts[pair + 1] - cells.source_starts[pair]
            n_target = cells.target_starts[pair + 1] - cells.target_starts[pair]
            _grow(links, first, n_target, n_source, n_source, 1, least / 4.0, out)
            _grow(links, first, n_source, n_target, 1, n_source, least / 4.0, out)


@bare_kernel
def _grow(links, first, n_words, n_positions, of_word, of_position, least, out):
    """Add links of words that have none that was kept; cells of a word are `of_position` apart, words `of_word`."""
    for word in range(n_words):
        begin, best, most = first + word * of_word, -1, least
        for position in range(n_positions):
            cell = begin + position * of_position
            if out[cell] == KEPT:
                best = -1
                break
            before, behind = (
                word > 0 and out[cell - of_word] == KEPT,
                word + 1 < n_words and out[cell + of_word] == KEPT,
            )
            product = np.float64(links[cell, 0]) * np.float64(links[cell, 1])
            if (before or behind) and product > most:
                best, most = cell, product
        if best >= 0:
            out[best] = ADDED
