"""Word alignment by enumeration: sums over all alignments of one sentence pair in one direction."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np


def enumerate_alignments(
    weights: Any, null: Any, jumps: Any = None, null_probability: float = 0.0
) -> tuple[float, Any, Any]:
    """Return the log likelihood, the posterior of each link (words, positions), and the expected jumps of each width.

    `weights` (words, positions) and `null` (words,) are probabilities of the words. Without `jumps` the model is IBM
    model 1; with them, (2 D + 1,), the hidden Markov model.
    """
    n_words, n_positions = weights.shape
    links, counts, total = np.zeros(weights.shape), np.zeros(0 if jumps is None else len(jumps)), 0.0
    for alignment in itertools.product(range(-1, n_positions), repeat=n_words):
        joint, last, seen = 1.0, -1, np.zeros_like(counts)
        for word, position in enumerate(alignment):
            joint *= null[word] if position < 0 else weights[word, position]
            if jumps is None:
                joint /= n_positions + 1
            elif position < 0:
                joint *= null_probability
            else:
                reach = len(jumps) // 2
                of_all = [jumps[int(np.clip(i - last, -reach, reach)) + reach] for i in range(n_positions)]
                joint *= (1.0 - null_probability) * of_all[position] / sum(of_all)
                seen[int(np.clip(position - last, -reach, reach)) + reach] += 1
                last = position
        total += joint
        counts += joint * seen
        for word, position in enumerate(alignment):
            if position >= 0:
                links[word, position] += joint
    return float(np.log(total)), links / total, counts / total
