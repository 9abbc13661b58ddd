"""Wang (2016), figure 3.14: word alignment by EM, VI, collapsed inference and sampling, here on the Hansards.

The text is the 37 hand-aligned development pairs, the 447 hand-aligned test pairs, and up to 100,000 pairs of training
text, all in lower case, without accents. English is the source. Scores are those of the 447 test pairs. The threshold
of the product of posteriors is the one with the lowest error rate on the development pairs. With the first seed the
training text is the beginning of the corpus, with others a random sample of it. The thesis has a Chinese corpus that
cannot be redistributed, so that only the order of the algorithms can be compared with it. Its collapsed inference
excludes single words (CVI 1), ours whole sentences (CVI 2), which the thesis expects to be better.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments import other_aligners
from experiments.corpora import data_file
from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.tagging import cell, table
from subchain.alignment import (
    GoldLinks,
    Links,
    ParallelText,
    WordAligner,
    alignment_report,
    product_links,
    read_gold,
    read_parallel,
    symmetrize,
)
from subchain.metrics.alignment import link_counts, scores_of

Array = NDArray[np.float64]

SIZES = (1_000, 10_000, 50_000, 100_000)
THRESHOLDS = np.arange(0.05, 0.65, 0.05)
GROWN, PRODUCT = "grow-diag-final-and", "product"
DEFAULT = "CVI 2, agreement"
#: Settings of the aligner by name.
METHODS: dict[str, dict[str, Any]] = {
    "EM": {"inference": "em", "agreement": False},
    "VI": {"inference": "vi", "agreement": False},
    "CVI 2": {"inference": "cvi", "agreement": False, "null_probability": 0.4},
    "Gibbs": {"inference": "gibbs", "agreement": False},
    "EM, agreement": {"inference": "em", "agreement": True},
    DEFAULT: {},
}
#: Error rates in per cent that the default is to reach, by number of training pairs.
TARGETS = {10_000: 8.6, 50_000: 7.8}


class Corpus(NamedTuple):
    """Text of which the first pairs have gold links: those for development, then those of the test."""

    text: ParallelText
    dev: GoldLinks
    test: GoldLinks

    @property
    def n_dev(self) -> int:
        return len(self.dev.sure)

    @property
    def n_gold(self) -> int:
        return len(self.dev.sure) + len(self.test.sure)


@lru_cache(maxsize=1)
def _training() -> list[tuple[list[str], list[str]]]:
    text = read_parallel(data_file("hansards", "train.e.xz"), data_file("hansards", "train.f.xz"), lowercase=True)
    return list(text)


def hansards(n_pairs: int, seed: int) -> Corpus:
    """The hand-aligned pairs, and so many pairs of training text: the first ones, or a sample of them."""
    pairs: list[tuple[list[str], list[str]]] = []
    gold = []
    for name in ("dev37", "test447"):
        files = [data_file("hansards", f"{name}.{side}") for side in "ef"]
        part = read_parallel(files[0], files[1], lowercase=True)
        gold.append(read_gold(data_file("hansards", f"{name}.a"), part, swap=True))  # French comes first
        pairs += part
    training = _training()
    chosen = np.random.default_rng(seed).permutation(len(training)) if seed else np.arange(len(training))
    pairs += [training[number] for number in np.sort(chosen[:n_pairs])]
    return Corpus(ParallelText.from_sentences(*zip(*pairs, strict=True)), *gold)


class WordAlignment(Experiment):
    """Alignment error rates over sizes of the training text."""

    name = "word_alignment"
    title = "Word alignment on the Hansards (Wang 2016, figure 3.14)"
    needs = ("hansards",)

    def rows(self) -> Iterable[Row]:
        others = other_aligners.installed()
        for size in SIZES[:1] if self.quick else SIZES:
            for seed in range(self.seeds):
                corpus = hansards(size, seed)
                where = {"pairs": size, "seed": seed}
                for name, settings in METHODS.items():
                    for row in _aligned(corpus, settings, seed):
                        yield where | {"algorithm": name} | row
                for name in others:
                    found = other_aligners.align(name, corpus.text)
                    links = symmetrize(found.forward, found.backward, GROWN)
                    yield where | {"algorithm": name} | _scores(corpus, links, GROWN, found.seconds)

    def summary(self, rows: list[Row]) -> list[str]:
        sizes = sorted({row["pairs"] for row in rows})
        lines = [
            [name, links, *(f"{cell(rows, 'aer', 1, **w)} ({mean_of(rows, 'seconds', **w):.1f} s)" for w in where)]
            for name in dict.fromkeys(row["algorithm"] for row in rows)
            for links in (GROWN, PRODUCT)
            if (where := [{"pairs": size, "algorithm": name, "links": links} for size in sizes])
            and any(row["algorithm"] == name and row["links"] == links for row in rows)
        ]
        return table(("algorithm", "links", *(f"AER, {size:,} pairs" for size in sizes)), lines)

    def claims(self, rows: list[Row]) -> list[Claim]:
        most = max(row["pairs"] for row in rows)

        def aer(name: str, links: str = GROWN, pairs: int = most) -> float:
            return mean_of(rows, "aer", algorithm=name, links=links, pairs=pairs)

        claims = [
            Claim(
                f"CVI 2 has fewer errors than {name} at {most:,} pairs",
                aer("CVI 2") < aer(name),
                f"{aer('CVI 2'):.1f}, {aer(name):.1f}",
                published=f"CVI 1 35.7, {name} {published}",
                doubted=self.quick,
            )
            for name, published in (("EM", 36.4), ("VI", 36.8))
        ]
        claims.append(
            Claim(
                "Gibbs is within a point of CVI 2",
                abs(aer("Gibbs") - aer("CVI 2")) <= 1.0,
                f"{aer('Gibbs'):.1f}, {aer('CVI 2'):.1f}",
                True,
                "34.6 of a richer model, CVI 1 35.7",
            )
        )
        for name in other_aligners.installed():
            claims.append(
                Claim(
                    f"the default has fewer errors than {name}, both by {GROWN}",
                    aer(DEFAULT) < aer(name),
                    f"{aer(DEFAULT):.1f}, {aer(name):.1f}",
                    doubted=self.quick,
                )
            )
        for size, target in TARGETS.items():
            found = aer(DEFAULT, PRODUCT, size)
            if not np.isnan(found):
                claims.append(Claim(f"AER is at most {target} at {size:,} pairs", found <= target, f"{found:.1f}"))
        return claims

    def draw(self, rows: list[Row], axes: Any) -> None:
        sizes = sorted({row["pairs"] for row in rows})
        for name in dict.fromkeys(row["algorithm"] for row in rows):
            rates = [mean_of(rows, "aer", algorithm=name, links=GROWN, pairs=size) for size in sizes]
            axes.plot(sizes, rates, "o-", label=name)
        axes.set_xscale("log")
        axes.set_xlabel("pairs of training text")
        axes.set_ylabel(f"alignment error rate in per cent, {GROWN}")
        axes.legend(fontsize=7)


def _aligned(corpus: Corpus, settings: dict[str, Any], seed: int) -> Iterable[Row]:
    """Yield the scores of an aligner's links, combined by growing and by the product of posteriors."""
    aligner = WordAligner(random_state=seed, progress=False, **settings)
    began = time.process_time()
    aligner.fit(corpus.text)
    seconds = time.process_time() - began
    posteriors = [aligner.posterior(direction=side)[: corpus.n_gold] for side in ("forward", "backward")]
    forward, backward = (_best(side, axis) for side, axis in zip(posteriors, (0, 1), strict=True))
    yield _scores(corpus, symmetrize(forward, backward, GROWN), GROWN, seconds)
    by_threshold = {float(t): Links.from_pairs(product_links(*posteriors, t)) for t in THRESHOLDS}
    chosen = min(by_threshold, key=lambda t: _error_rate(by_threshold[t].between(0, corpus.n_dev), corpus.dev))
    yield _scores(corpus, by_threshold[chosen], PRODUCT, seconds) | {"threshold": chosen}


def _best(posteriors: list[Array], axis: int) -> Links:
    """The most probable link of every word along the other axis, where it is more probable than none."""
    pairs = []
    for posterior in posteriors:
        if not posterior.size:
            pairs.append(np.empty((0, 2), dtype=np.int64))
            continue
        best, words = posterior.argmax(axis), np.arange(posterior.shape[1 - axis])
        is_linked = posterior.max(axis) > 1.0 - posterior.sum(axis)
        found = np.column_stack([best, words] if axis == 0 else [words, best])
        pairs.append(found[is_linked])
    return Links.from_pairs(pairs)


def _error_rate(links: Links, gold: GoldLinks) -> float:
    return float(scores_of(link_counts(links, *gold).sum(axis=0)).aer)


def _scores(corpus: Corpus, links: Links, how: str, seconds: float) -> Row:
    report = alignment_report(links.between(corpus.n_dev, corpus.n_gold), *corpus.test)
    shares = {"aer": report.scores.aer, "low": report.low.aer, "high": report.high.aer}
    shares |= {"precision": report.scores.precision, "recall": report.scores.recall}
    return {"links": how, "seconds": seconds} | {name: 100.0 * share for name, share in shares.items()}
