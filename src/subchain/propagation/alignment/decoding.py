"""Which cells are links: the most probable position of every word, unless NULL is more probable."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.propagation.compiled import kernel


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
