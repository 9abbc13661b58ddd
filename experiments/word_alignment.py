"""Wang (2016), figure 3.14: word alignment by EM, VI, collapsed inference and sampling, here on the Hansards.

The text is the 37 hand-aligned development pairs, the 447 hand-aligned test pairs, and up to 100,000 pairs of training
text (`experiments/parallel_text.py`); each seed has another sample of it, the first one the beginning of the corpus.
Scores are those of the 447 test pairs. Nothing is chosen by them: settings come from `alignment_settings`. Links are
combined by growing; by the product of posteriors over the default threshold, with what the default adds to it
("grow-product") and without ("product"); and by the product over the threshold that has, for each fit, the lowest error
rate on the development pairs ("product, chosen"). Intervals come from drawing the test pairs again, the same for all
algorithms and seeds. The thesis has a Chinese corpus that cannot be redistributed, so that only the order of the
algorithms can be compared with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import other_aligners
from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.parallel_text import Corpus, error_rate, hansards
from experiments.tagging import table
from subchain import CVI
from subchain.alignment import Links, WordAligner, product_links, symmetrize
from subchain.metrics.alignment import bootstrap_scores, link_counts, scores_of

Array = NDArray[np.float64]

SIZES = (1_000, 10_000, 50_000, 100_000)
LARGE = 50_000
THRESHOLDS = np.arange(0.05, 0.65, 0.05)
GROWN, CHOSEN, PRODUCT, GIVEN = "grow-diag-final-and", "product, chosen", "product", "grow-product"
DEFAULT = "CVI 2, agreement"
BY_WORD = CVI(cluster="state")
#: Algorithms that take minutes for large texts: one sample of 50,000 pairs, and none of 100,000.
SLOW = ("Gibbs",)
#: Settings of the aligner by name.
METHODS: dict[str, dict[str, Any]] = {
    "EM": {"inference": "em", "agreement": False},
    "VI": {"inference": "vi", "agreement": False},
    "CVI 1": {"inference": BY_WORD, "agreement": False},
    "CVI 2": {"inference": "cvi", "agreement": False},
    "Gibbs": {"inference": "gibbs", "agreement": False},
    "EM, agreement": {"inference": "em", "agreement": True},
    "CVI 1, agreement": {"inference": BY_WORD},
    DEFAULT: {},
}
#: Error rates in per cent that the default is to reach, by number of training pairs.
TARGETS = {10_000: 8.6, 50_000: 7.8}


class WordAlignment(Experiment):
    """Alignment error rates over sizes of the training text."""

    name = "word_alignment"
    title = "Word alignment on the Hansards (Wang 2016, figure 3.14)"
    needs = ("hansards",)

    def rows(self) -> Iterable[Row]:
        self.counts: dict[tuple[int, str, str], list[Array]] = {}
        for settings in METHODS.values():  # compilation is no part of the times
            WordAligner(progress=False, **settings).fit(["a b"], ["c d"])
        for size in SIZES[:1] if self.quick else SIZES:
            for seed in range(1 if size == SIZES[-1] else self.seeds):  # another sample would be the whole corpus again
                yield from self._rows_of(size, seed)

    def _rows_of(self, size: int, seed: int) -> Iterable[Row]:
        """Align one sample of the corpus by all aligners."""
        corpus, where = hansards(size, seed), {"pairs": size, "seed": seed}
        for name, settings in METHODS.items():
            if name in SLOW and ((seed and size >= LARGE) or size == SIZES[-1]):
                continue
            found, seconds, threshold = _aligned(corpus, settings, seed)
            extra = {"seconds": seconds, "threshold": threshold}
            yield from self._scored(corpus, where | {"algorithm": name}, found, extra)
        for name in other_aligners.installed():
            theirs = other_aligners.align(name, corpus.text)
            grown = symmetrize(theirs.forward, theirs.backward, GROWN)
            extra = {"seconds": theirs.seconds}
            yield from self._scored(corpus, where | {"algorithm": name}, {GROWN: grown}, extra)

    def _scored(self, corpus: Corpus, where: Row, links: dict[str, Links], extra: Row) -> Iterable[Row]:
        """Score links on the test pairs, and keep their counts for the intervals."""
        for how, found in links.items():
            counts = link_counts(found.between(corpus.n_dev, corpus.n_gold), *corpus.test)
            self.counts.setdefault((where["pairs"], where["algorithm"], how), []).append(counts)
            scores, draws = scores_of(counts.sum(axis=0)), bootstrap_scores(counts).aer
            low, high = np.quantile(draws, [0.025, 0.975])
            shares = {"aer": scores.aer, "low": low, "high": high, "precision": scores.precision}
            shares |= {"recall": scores.recall}
            yield where | {"links": how} | extra | {name: 100.0 * float(share) for name, share in shares.items()}

    def _draws(self, key: tuple[int, str, str]) -> Array:
        """Error rates over draws of the test pairs, in per cent, in the mean over seeds."""
        return 100.0 * np.mean([bootstrap_scores(counts).aer for counts in self.counts[key]], axis=0)

    def summary(self, rows: list[Row]) -> list[str]:
        sizes, lines = sorted({row["pairs"] for row in rows}), []
        for name in dict.fromkeys(row["algorithm"] for row in rows):
            for links in (GROWN, CHOSEN, PRODUCT, GIVEN):
                if (sizes[0], name, links) not in self.counts:
                    continue
                cells = []
                for size in sizes:
                    where = {"pairs": size, "algorithm": name, "links": links}
                    low, high = np.quantile(self._draws((size, name, links)), [0.025, 0.975])
                    seconds = mean_of(rows, "seconds", **where)
                    cells.append(f"{mean_of(rows, 'aer', **where):.1f} [{low:.1f}, {high:.1f}] ({seconds:.1f} s)")
                lines.append([name, links, *cells])
        return table(("algorithm", "links", *(f"AER, {size:,} pairs" for size in sizes)), lines)

    def claims(self, rows: list[Row]) -> list[Claim]:
        def aer(name: str, links: str, pairs: int) -> float:
            return mean_of(rows, "aer", algorithm=name, links=links, pairs=pairs)

        def largest(*names: str) -> int:
            """Most pairs that all of these algorithms were run with."""
            of = [{size for size, found, _ in self.counts if found == name} for name in names]
            return max(set.intersection(*of), default=0)

        def beside(one: str, other: str, links: str = GROWN) -> tuple[float, str]:
            """Upper end of the interval of a difference of error rates, and the difference in words."""
            most = largest(one, other)
            draws = self._draws((most, one, links)) - self._draws((most, other, links))
            low, high = np.quantile(draws, [0.025, 0.975])
            text = f"{aer(one, links, most):.1f}, {aer(other, links, most):.1f}; difference {draws.mean():+.1f}"
            return float(high), f"{text} [{low:+.1f}, {high:+.1f}], {most:,} pairs"

        claims = []
        for ours in ("CVI 1", "CVI 2"):
            for name, published in (("EM", 36.4), ("VI", 36.8)):
                high, evidence = beside(ours, name)
                text = f"{ours} has fewer errors than {name}, beyond the interval"
                claims.append(Claim(text, high < 0.0, evidence, self.quick, f"CVI 1 35.7, {name} {published}"))
        high, evidence = beside("Gibbs", "CVI 1")
        claims.append(
            Claim("Gibbs has fewer errors than CVI 1", high < 0.0, evidence, True, "34.6 of a richer model, CVI 1 35.7")
        )
        high, evidence = beside("CVI 1, agreement", DEFAULT, GIVEN)
        claims.append(Claim("with agreement, CVI 1 has fewer errors than CVI 2", high < 0.0, evidence, True))
        for name in other_aligners.installed():
            _, evidence = beside(DEFAULT, name)
            most = largest(DEFAULT, name)
            fewer = aer(DEFAULT, GROWN, most) < aer(name, GROWN, most)
            text = f"the default has fewer errors than {name}, both by {GROWN}"
            claims.append(Claim(text, fewer, evidence, doubted=self.quick))
        for size, target in TARGETS.items():
            found = aer(DEFAULT, GIVEN, size)
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


def _aligned(corpus: Corpus, settings: dict[str, Any], seed: int) -> tuple[dict[str, Links], float, float]:
    """Links of an aligner by how they are combined, processor seconds of a fit, and the threshold that was chosen."""
    aligner, seconds = _fitted(corpus, settings, seed)
    posteriors = [aligner.posterior(direction=side)[: corpus.n_gold] for side in ("forward", "backward")]
    by_threshold = {float(t): Links.from_pairs(product_links(*posteriors, t)) for t in THRESHOLDS}
    chosen = min(by_threshold, key=lambda t: error_rate(by_threshold[t].between(0, corpus.n_dev), corpus.dev))
    found = {how: aligner.set_params(symmetrize=how).links() for how in (PRODUCT, GIVEN)}
    if not settings.get("agreement", True):  # the default probability of NULL depends on how links are combined
        aligner, _ = _fitted(corpus, settings | {"symmetrize": GROWN}, seed)
    grown = aligner.set_params(symmetrize=GROWN).links()
    return {GROWN: grown, CHOSEN: by_threshold[chosen]} | found, seconds, chosen


def _fitted(corpus: Corpus, settings: dict[str, Any], seed: int) -> tuple[WordAligner, float]:
    """An aligner of the text, and the processor seconds of its fit."""
    aligner = WordAligner(random_state=seed, progress=False, **settings)
    began = time.process_time()
    aligner.fit(corpus.text)
    return aligner, time.process_time() - began
