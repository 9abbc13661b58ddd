"""The page on a word aligner: matrices of sentence pairs, the lexicon, words that are aligned to nothing, scores."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.data.links import GoldLinks, Links, check_inside
from subchain.data.parallel_text import ParallelText
from subchain.errors import InputError
from subchain.metrics.alignment import AlignmentReport, alignment_report
from subchain.models.aligner import WordAligner
from subchain.models.alignment_blocks import TextPosteriors
from subchain.reports.formatting import several
from subchain.reports.rendering import render_page

#: Most sentence pairs whose matrices are on a page, and most words of a side of one that was not asked for.
MOST_PAIRS, MOST_WORDS = 200, 80
#: Most entries of the lexicon, and most words without a link, of each side.
MOST_ENTRIES, MOST_UNLINKED = 20_000, 60
#: Posteriors are stored in whole steps of 1 / `STEPS`.
STEPS = 255
SCRIPTS, STYLES = ("page/alignment.js",), ("page/page.css", "page/alignment.css")


class Unlinked(NamedTuple):
    """How often the words of one side occur, and how often without a link, (words,)."""

    counts: NDArray[np.int64]
    without: NDArray[np.int64]

    def most(self, words: list[str]) -> list[list[Any]]:
        """Return the words that are most often without a link: word, how often, and how often it occurs."""
        order = np.argsort(-self.without, kind="stable")[:MOST_UNLINKED]
        return [[words[w], int(self.without[w]), int(self.counts[w])] for w in order.tolist() if self.without[w]]

    @property
    def share(self) -> float:
        """Share of the tokens that have a link."""
        return 1.0 - float(self.without.sum()) / max(float(self.counts.sum()), 1.0)


def alignment_page(
    aligner: WordAligner, x: Any, title: str | None, gold: GoldLinks | None, pairs: Iterable[int] | None
) -> str:
    """Return the page as HTML text; see `reports.report`."""
    if gold is not None and not isinstance(gold, GoldLinks):
        raise InputError("gold must be GoldLinks, as read_gold returns them.")
    source, target = x if isinstance(x, tuple) else (x, None)
    posteriors = aligner._posteriors(source, target)
    text = posteriors.data.text
    if not len(text):
        raise InputError("the text has no sentence pairs to report on.")
    n_gold = 0 if gold is None else len(gold.sure)
    if n_gold > len(text):
        raise InputError(f"gold has links of {n_gold:,} sentence pairs, but the text has {len(text):,} pairs.")
    scores, shown = None, _shown(text, pairs, n_gold)
    links, sides, n_links = _linked(aligner, posteriors, max(n_gold, 0))
    if gold is not None:
        for kind in gold:
            check_inside(kind, first_pairs(text, n_gold), "gold")
        scores = alignment_report(links, *gold)
    lexicon = aligner.lexicon_[:MOST_ENTRIES]
    contents = {
        "steps": STEPS,
        "pairs": [_matrix(aligner, posteriors, pair, gold if pair < n_gold else None) for pair in shown],
        "lexicon": [
            [
                entry["source"],
                entry["target"],
                *(round(float(entry[name]), 4) for name in ("links", "forward", "backward")),
            ]
            for entry in lexicon
        ],
    }
    return render_page(
        "page/alignment.html", SCRIPTS, STYLES, contents,
        title=title or "Word alignment",
        facts=_facts(aligner, text, sides, n_links),
        scores=None if scores is None else _scores(scores),
        shown=several(len(shown), "sentence pair"),
        n_entries=len(lexicon),
        n_gold=n_gold,
        scored="the first sentence pair" if n_gold == 1 else f"the first {n_gold:,} sentence pairs",
        unlinked=[
            (name, side.most(words), round(100.0 * (1.0 - side.share), 1))
            for name, side, words in zip(
                ("source", "target"), sides, (text.source_words, text.target_words), strict=True
            )
        ],
    )  # fmt: skip


def _shown(text: ParallelText, pairs: Iterable[int] | None, n_gold: int) -> list[int]:
    """Return the pairs whose matrices are shown: those asked for, those with gold links, or some of all."""
    if pairs is not None:
        if not isinstance(pairs, Iterable):
            raise InputError(f"pairs must be numbers of sentence pairs, as in [0, 5], not {pairs!r}.")
        wanted = list(pairs)
        for pair in wanted:
            if not isinstance(pair, (int, np.integer)) or not 0 <= pair < len(text):
                raise InputError(f"pairs holds {pair!r}, but the sentence pairs are 0 to {len(text) - 1:,}.")
        if not 0 < len(wanted) <= MOST_PAIRS:
            raise InputError(f"pairs has {len(wanted)} sentence pairs; a page shows 1 to {MOST_PAIRS}.")
        return [int(pair) for pair in wanted]
    n = n_gold or len(text)
    lengths = np.diff(text.source_offsets[: n + 1]), np.diff(text.target_offsets[: n + 1])
    usable = np.flatnonzero((np.minimum(*lengths) > 0) & (np.maximum(*lengths) <= MOST_WORDS))
    places = np.unique(np.linspace(0, max(len(usable) - 1, 0), min(MOST_PAIRS, len(usable))).astype(np.int64))
    return [int(pair) for pair in usable[places]]


def _linked(aligner: WordAligner, posteriors: TextPosteriors, n_first: int) -> tuple[Links, list[Unlinked], int]:
    """Return the links of the first pairs, the words of both sides without links, and the number of all links."""
    text, first, done, n_links = posteriors.data.text, list[Links](), 0, 0
    tokens, offsets = (text.source_tokens, text.target_tokens), (text.source_offsets, text.target_offsets)
    sides = [
        Unlinked(np.zeros(len(words), np.int64), np.zeros(len(words), np.int64))
        for words in (text.source_words, text.target_words)
    ]
    for links in posteriors.links(aligner.symmetrize, aligner.threshold):
        if done < n_first:
            first.append(links.between(0, min(n_first - done, len(links))))
        for of, starts, side, positions in zip(tokens, offsets, sides, (links.source, links.target), strict=True):
            begin, end = int(starts[done]), int(starts[done + len(links)])
            is_free = np.ones(end - begin, dtype=np.bool_)
            is_free[np.asarray(starts[done : done + len(links)])[links.pairs] - begin + positions] = False
            some = np.asarray(of[begin:end])
            side.counts[:] += np.bincount(some, minlength=len(side.counts))
            side.without[:] += np.bincount(some[is_free], minlength=len(side.counts))
        done, n_links = done + len(links), n_links + len(links.source)
    return Links.joined(first), sides, n_links


def first_pairs(text: ParallelText, n: int) -> ParallelText:
    """Return the first n pairs of a text."""
    return ParallelText(
        text.source_tokens, text.source_offsets[: n + 1], text.target_tokens, text.target_offsets[: n + 1],
        text.source_words, text.target_words,
    )  # fmt: skip


def _matrix(aligner: WordAligner, posteriors: TextPosteriors, pair: int, gold: GoldLinks | None) -> dict[str, Any]:
    """Return the words of a sentence pair, the posteriors of both directions, its links, and gold links."""
    source, target = posteriors.data.text[pair]
    block = posteriors.block(pair, pair + 1)
    quantised = np.rint(np.clip(block.links, 0.0, 1.0) * STEPS).astype(np.uint8).T
    found = {
        "number": pair + 1, "source": source, "target": target,
        "forward": base64.b64encode(quantised[0].tobytes()).decode("ascii"),
        "backward": base64.b64encode(quantised[1].tobytes()).decode("ascii"),
        "links": posteriors.links_of_block(block, aligner.symmetrize, aligner.threshold)[0].tolist(),
    }  # fmt: skip
    if gold is not None:
        found |= {"sure": gold.sure[pair].tolist(), "possible": gold.possible[pair].tolist()}
    return found


def _facts(aligner: WordAligner, text: ParallelText, sides: list[Unlinked], n_links: int) -> list[tuple[str, str, str]]:
    """Return label, value and explanation of the numbers at the top of the page."""
    words = [several(int(np.count_nonzero(side.counts)), "different word") for side in sides]
    return [
        ("sentence pairs", f"{len(text):,}", ""),
        ("source tokens", f"{len(text.source_tokens):,}", words[0]),
        ("target tokens", f"{len(text.target_tokens):,}", words[1]),
        ("links", f"{n_links:,}", f"combined by {aligner.symmetrize}"),
        ("source words with a link", f"{sides[0].share:.1%}", "of all tokens"),
        ("target words with a link", f"{sides[1].share:.1%}", "of all tokens"),
    ]


def _scores(found: AlignmentReport) -> list[tuple[str, str, str]]:
    """Return name, value and interval of each score, in per cent."""
    names = {"precision": "precision", "recall": "recall", "f1": "F1", "aer": "alignment error rate (AER)"}
    return [
        (names[name], f"{100.0 * value:.2f}", f"{100.0 * low:.2f} to {100.0 * high:.2f}")
        for name, value, low, high in zip(found.scores._fields, found.scores, found.low, found.high, strict=True)
    ]
