"""Scores of word alignments against gold links (Och and Ney 2003).

Annotators mark some links S as sure and more of them P as possible, S ⊆ P. Of found links A

- precision is |A ∩ P| / |A|, recall is |A ∩ S| / |S|, F1 their harmonic mean;
- the alignment error rate is AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|).

All counts are sums over sentence pairs, so intervals come from resampling sentence pairs (bootstrap).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError

Array = NDArray[np.float64]


class AlignmentScores(NamedTuple):
    """Precision, recall, F1 and alignment error rate, from 0 to 1.

    Examples
    --------
    >>> from subchain.metrics import alignment_report
    >>> alignment_report([[(0, 0), (1, 1)]], [[(0, 0)]], [[(1, 2)]]).scores.precision
    0.5
    """

    precision: Any
    recall: Any
    f1: Any
    aer: Any


@dataclasses.dataclass(frozen=True)
class AlignmentReport:
    """Scores of links against gold links, as returned by :func:`alignment_report`.

    Attributes
    ----------
    scores : AlignmentScores
    low, high : AlignmentScores
        Ends of the bootstrap interval of each score.
    level : probability that the intervals are made for
    n_pairs : number of sentence pairs
    n_links, n_sure, n_possible : numbers of links found, sure links, and possible links (the sure included)

    Examples
    --------
    >>> from subchain.metrics import alignment_report
    >>> print(alignment_report([[(0, 0), (1, 1)]], [[(0, 0)]], [[(1, 1), (1, 2)]]))
    sentence pairs  1
    links           2 found, 1 sure, 3 sure or possible
    precision       100.00%   95% interval  100.00% to 100.00%
    recall          100.00%   95% interval  100.00% to 100.00%
    F1              100.00%   95% interval  100.00% to 100.00%
    AER               0.00%   95% interval    0.00% to   0.00%
    """

    scores: AlignmentScores
    low: AlignmentScores
    high: AlignmentScores
    level: float
    n_pairs: int
    n_links: int
    n_sure: int
    n_possible: int

    def __str__(self) -> str:
        lines = [
            f"sentence pairs  {self.n_pairs:,}",
            f"links           {self.n_links:,} found, {self.n_sure:,} sure, {self.n_possible:,} sure or possible",
        ]
        for name, score, low, high in zip(
            ("precision", "recall", "F1", "AER"), self.scores, self.low, self.high, strict=True
        ):
            interval = f"{self.level:.0%} interval  {low:7.2%} to {high:7.2%}"
            lines.append(f"{name:<14}  {score:7.2%}   {interval}")
        return "\n".join(lines)


def alignment_report(
    links: Iterable[Any],
    sure: Iterable[Any],
    possible: Iterable[Any] = (),
    level: float = 0.95,
    n_resamples: int = 10_000,
    random_state: int = 0,
) -> AlignmentReport:
    """Compute precision, recall, F1 and AER of links, with bootstrap intervals over sentence pairs.

    A ratio of no links is 0: of an empty alignment precision, recall and F1 are 0, and AER is 1.

    Parameters
    ----------
    links, sure, possible : iterables with one entry per sentence pair
        Found links, sure and possible gold links. An entry is an array of int, (n, 2), or a set of tuples: source
        position and target position of each link. Sure links count as possible, whether they are repeated among
        ``possible`` or not. Without ``possible`` all gold links are sure.
    level : float
        Probability that the intervals are made for.
    n_resamples : int
        Number of times that sentence pairs are drawn, with replacement.
    random_state : int
        Seed of the draws.

    Returns
    -------
    AlignmentReport

    Examples
    --------
    >>> from subchain.metrics import alignment_report
    >>> report = alignment_report([{(0, 0), (1, 1), (2, 0)}], sure=[{(0, 0), (2, 2)}], possible=[{(1, 1)}])
    >>> report.scores.recall, round(report.scores.aer, 2)
    (0.5, 0.4)
    """
    if not 0.0 < level < 1.0 or n_resamples < 1:
        raise InputError(f"level must be between 0 and 1 and n_resamples at least 1, not {level} and {n_resamples}.")
    counts = link_counts(links, sure, possible)
    resampled = bootstrap_scores(counts, n_resamples, random_state)
    ends = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    low, high = (AlignmentScores(*(float(np.quantile(score, end)) for score in resampled)) for end in ends)
    totals = counts.sum(axis=0)
    return AlignmentReport(
        scores=AlignmentScores(*map(float, scores_of(totals))), low=low, high=high, level=level, n_pairs=len(counts),
        n_links=int(totals[2]), n_sure=int(totals[3]), n_possible=int(totals[4]),
    )  # fmt: skip


def link_counts(links: Iterable[Any], sure: Iterable[Any], possible: Iterable[Any] = ()) -> Array:
    """Return |A ∩ S|, |A ∩ P|, |A|, |S| and |P| of each sentence pair, (n_pairs, 5).

    The arguments are those of :func:`alignment_report`. Use it to compare aligners on the same sentence pairs.

    Examples
    --------
    >>> from subchain.metrics.alignment import link_counts
    >>> link_counts([{(0, 0), (1, 1)}], [{(0, 0)}], [{(0, 1)}])
    array([[1., 1., 2., 1., 2.]])
    """
    found, certain = ([_link_set(entry) for entry in side] for side in (links, sure))
    maybe = [_link_set(entry) for entry in possible] or [set() for _ in certain]
    if not len(found) == len(certain) == len(maybe):
        raise InputError(
            f"there are links of {len(found):,} sentence pairs, but gold links of {len(certain):,} (sure) and "
            f"{len(maybe):,} (possible); give the same pairs."
        )
    if not any(certain):
        raise InputError("the gold has no sure links, without which there is no recall; check the gold links.")
    rows = [
        (len(a & s), len(a & (s | p)), len(a), len(s), len(s | p))
        for a, s, p in zip(found, certain, maybe, strict=True)
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 5)


def scores_of(counts: Array) -> AlignmentScores:
    """Return the scores of counts as in :func:`link_counts`, (..., 5), summed over sentence pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.metrics.alignment import scores_of
    >>> float(scores_of(np.array([1.0, 2.0, 2.0, 1.0, 4.0])).aer)
    0.0
    """
    in_sure, in_possible, n_found, n_sure = (counts[..., column] for column in range(4))
    precision, recall = in_possible / np.maximum(n_found, 1.0), in_sure / np.maximum(n_sure, 1.0)
    f1 = 2.0 * precision * recall / np.maximum(precision + recall, np.finfo(np.float64).tiny)
    return AlignmentScores(precision, recall, f1, 1.0 - (in_sure + in_possible) / np.maximum(n_found + n_sure, 1.0))


def bootstrap_scores(counts: Array, n_resamples: int = 10_000, random_state: int = 0) -> AlignmentScores:
    """Return the scores of sentence pairs drawn with replacement, arrays of shape (n_resamples,).

    With the same seed the same pairs are drawn: the difference of the scores of two aligners, draw by draw, gives the
    interval of their difference.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.metrics.alignment import bootstrap_scores, link_counts
    >>> one, other = (link_counts([a, a], [{(0, 0)}] * 2) for a in ({(0, 0)}, {(0, 1)}))
    >>> np.quantile(bootstrap_scores(one).aer - bootstrap_scores(other).aer, [0.025, 0.975])
    array([-1., -1.])
    """
    rng = np.random.default_rng(random_state)
    n_pairs = len(counts)
    uniform = np.full(n_pairs, 1.0 / n_pairs)
    block = max(1, 2_000_000 // n_pairs)
    parts = [
        rng.multinomial(n_pairs, uniform, size=min(block, n_resamples - done)) @ counts
        for done in range(0, n_resamples, block)
    ]
    return scores_of(np.concatenate(parts))


def _link_set(entry: Any) -> set[tuple[int, int]]:
    """Return the links of one sentence pair as a set."""
    rows: Sequence[Any] = entry.tolist() if isinstance(entry, np.ndarray) else list(entry)
    try:
        return {(int(i), int(j)) for i, j in rows}
    except (TypeError, ValueError):
        raise InputError(
            "the links of a sentence pair must be pairs of whole numbers, source position and target position; give "
            "one entry per sentence pair."
        ) from None
