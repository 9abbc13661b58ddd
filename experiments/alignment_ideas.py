"""Ideas for word alignment that `WordAligner` does not offer, built from what it does offer, to see whether they pay.

`alignment_settings` compares each with the defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from subchain.alignment import ParallelText, WordAligner

Fit = Callable[[ParallelText], WordAligner]

#: Fits by which a learned probability of NULL settles.
SETTLED = 3


def stems_of_rare_words(length: int, most: int) -> Fit:
    """Cut words that occur at most so often to their first letters; `prefix` cuts all words."""

    def spelled(tokens: np.ndarray, words: list[str]) -> list[str]:
        counts = np.bincount(tokens, minlength=len(words)).tolist()
        return [word if count > most else word[:length] for word, count in zip(words, counts, strict=True)]

    def sentences(tokens: np.ndarray, offsets: np.ndarray, words: list[str]) -> list[list[str]]:
        found = spelled(tokens, words)
        return [[found[code] for code in tokens[first:last].tolist()] for first, last in pairwise(offsets)]

    def fit(text: ParallelText) -> WordAligner:
        source = sentences(text.source_tokens, text.source_offsets, text.source_words)
        target = sentences(text.target_tokens, text.target_offsets, text.target_words)
        return _aligner().fit(source, target)

    return fit


def learned_null(text: ParallelText) -> WordAligner:
    """Let the probability of NULL be the expected share of words that are aligned to it, fit after fit."""
    aligner = _aligner().fit(text)
    n_words = len(text.source_tokens) + len(text.target_tokens)
    for _ in range(SETTLED):
        table = aligner.posterior_.translation
        share = float(table.null_source.sum() + table.null_target.sum()) / n_words
        aligner = _aligner(null_probability=share).fit(text)
    return aligner


def frequency_prior(weight: float) -> Fit:
    """Add a prior over translations that is proportional to how often words occur: `weight` counts a word.

    A hierarchical prior whose base measure is that of the text.
    """

    def fit(text: ParallelText) -> WordAligner:
        prior = WordAligner(stages=("ibm1",), iterations=1, random_state=0, progress=False).fit(text)
        table = prior.posterior_.translation
        source, target = (
            np.bincount(tokens, minlength=len(words)) / len(tokens)
            for tokens, words in ((text.source_tokens, text.source_words), (text.target_tokens, text.target_words))
        )
        table.pairs = weight * np.stack([target[table.targets], source[table.sources()]], axis=1)
        table.null_target, table.null_source = weight * target, weight * source
        table.totals_source[:], table.totals_target[:] = weight, weight
        return _aligner().fit(text, prior=prior)

    return fit


def _aligner(null_probability: float | None = None) -> WordAligner:
    return WordAligner(random_state=0, progress=False, null_probability=null_probability)


#: By name, what fits an aligner with the idea.
IDEAS: dict[str, Fit] = {
    "stems of 4 letters, words seen once": stems_of_rare_words(4, 1),
    "stems of 5 letters, words seen once": stems_of_rare_words(5, 1),
    "stems of 5 letters, words seen up to 5 times": stems_of_rare_words(5, 5),
    "null_probability learned": learned_null,
    **{f"frequency prior of weight {weight:g}": frequency_prior(weight) for weight in (0.1, 1.0, 10.0)},
}
