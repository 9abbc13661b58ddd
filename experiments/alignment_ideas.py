"""Ideas for word alignment that `WordAligner` does not offer, built from what it does offer, to see whether they pay.

`alignment_settings` compares each with the defaults.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from subchain.alignment import ParallelText, WordAligner

Fit = Callable[[ParallelText], WordAligner]

#: Fits by which a learned probability of NULL settles.
SETTLED = 3


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
    "null_probability learned": learned_null,
    **{f"frequency prior of weight {weight:g}": frequency_prior(weight) for weight in (0.1, 1.0, 10.0)},
}
