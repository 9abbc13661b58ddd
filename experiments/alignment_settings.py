"""How the defaults of `WordAligner` were chosen: error rates without the test pairs.

Settings are changed one at a time. Each is scored on the 37 development pairs of the Hansards, by themselves too few to
tell settings apart, and on texts of five made-up languages with other orders of words, other vocabularies and words of
many forms (`experiments/parallel_text.py`), so that a setting that suits English and French alone shows. The test pairs
of the Hansards are never scored here. Intervals of the difference from the default come from drawing sentence pairs
again, the same for both.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.alignment_ideas import IDEAS
from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.parallel_text import LANGUAGES, Corpus, hansards, made_up
from experiments.tagging import table
from subchain import CVI
from subchain.alignment import WordAligner
from subchain.metrics.alignment import bootstrap_scores, link_counts, scores_of

Counts = NDArray[np.float64]

DEFAULT, HANSARDS = "default", "Hansards, dev37"
BY_WORD = CVI(cluster="state")
#: Settings of the aligner by name; what is not said is the default.
SETTINGS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "no end jumps": {"end_jumps": False},
    **{f"iterations {given}": {"iterations": given} for given in ((1, 3), (3, 3), (2, 2), (2, 4), (2, 6))},
    **{f"concentration {given:g}": {"concentration": given} for given in (1e-2, 3e-4, 1e-4)},
    **{f"null_probability {given}": {"null_probability": given} for given in (0.1, 0.3, 0.4)},
    **{f"max_jump {given}": {"max_jump": given} for given in (5, 20, 50)},
    **{f"prefix {given}": {"prefix": given} for given in (4, 5, 6)},
    **{f"prefix {n}, rare {rare}": {"prefix": n, "rare": rare} for n, rare in ((4, 1), (5, 1), (5, 5))},
    **{f"threshold {given}": {"threshold": given} for given in (0.2, 0.3, 0.5, 0.6)},
    **{name: {"symmetrize": name} for name in ("product", "grow-diag-final-and")},
    "diagonal first": {"stages": ("diagonal", "hmm"), "iterations": (2, 3)},
    "diagonal between": {"stages": ("ibm1", "diagonal", "hmm"), "iterations": (1, 1, 3)},
    "one stage": {"stages": ("hmm",), "iterations": (5,)},
    "CVI 1": {"inference": BY_WORD},
    "CVI 1, no end jumps": {"inference": BY_WORD, "end_jumps": False},
    "CVI 1, iterations (2, 4)": {"inference": BY_WORD, "iterations": (2, 4)},
    "EM": {"inference": "em"},
    "no agreement": {"agreement": False},
    "no agreement, null_probability 0.4": {"agreement": False, "null_probability": 0.4},
    **{
        f"no agreement, growing, null_probability {given}": {
            "agreement": False,
            "symmetrize": "grow-diag-final-and",
            "null_probability": given,
        }
        for given in (0.2, 0.4)
    },
}
#: Pairs of training text.
SIZES = {HANSARDS: 10_000} | dict.fromkeys(LANGUAGES, 4_000)


def names() -> list[str]:
    """Names of settings, and of ideas that there is no setting for."""
    return [*SETTINGS, *IDEAS]


class AlignmentSettings(Experiment):
    """Differences from the default on every text."""

    name = "alignment_settings"
    title = "Settings of word alignment, without the test pairs (our own)"
    needs = ("hansards",)

    def rows(self) -> Iterable[Row]:
        self.counts: dict[tuple[str, str], list[Counts]] = {}
        self.differences: dict[tuple[str, str], tuple[float, float, float]] = {}
        for inference in ("em", "cvi", BY_WORD):  # compilation is no part of the times
            WordAligner(inference=inference, progress=False).fit(["a b"], ["c d"])
        for text in SIZES:
            yield from self._rows_of(text)

    def _rows_of(self, text: str) -> Iterable[Row]:
        """Align one text by all settings."""
        size = SIZES[text]
        for seed in range(1, self.seeds + 1):
            corpus = hansards(size, seed) if text == HANSARDS else made_up(text, size, seed)
            for name in names():
                found, seconds = _development(corpus, name)
                self.counts.setdefault((text, name), []).append(found)
                aer = 100.0 * float(scores_of(found.sum(axis=0)).aer)
                yield {"text": text, "pairs": size, "seed": seed, "setting": name, "aer": aer, "seconds": seconds}

    def difference(self, text: str, name: str) -> tuple[float, float, float]:
        """How many points more a setting has than the default, in the mean over seeds, and the ends of its interval."""
        if (text, name) in self.differences:
            return self.differences[text, name]
        # a made-up text has other pairs for every seed: these are drawn by themselves
        draws, found = [], []
        for seed, (own, other) in enumerate(zip(self.counts[text, name], self.counts[text, DEFAULT], strict=True)):
            number = 0 if text == HANSARDS else seed
            draws.append(bootstrap_scores(own, 2000, number).aer - bootstrap_scores(other, 2000, number).aer)
            found.append(float(scores_of(own.sum(axis=0)).aer - scores_of(other.sum(axis=0)).aer))
        low, high = np.quantile(np.mean(draws, axis=0), [0.025, 0.975])
        result = 100.0 * float(np.mean(found)), 100.0 * float(low), 100.0 * float(high)
        self.differences[text, name] = result
        return result

    def summary(self, rows: list[Row]) -> list[str]:
        texts = list(dict.fromkeys(row["text"] for row in rows))
        lines = [["default", *(f"{mean_of(rows, 'aer', text=text, setting=DEFAULT):.1f}" for text in texts), ""]]
        for name in names()[1:]:
            cells = []
            for text in texts:
                change, low, high = self.difference(text, name)
                cells.append(f"{change:+.1f} [{low:+.1f}, {high:+.1f}]")
            seconds = mean_of(rows, "seconds", setting=name) / mean_of(rows, "seconds", setting=DEFAULT)
            lines.append([name, *cells, f"{seconds:.1f}"])
        return table(("setting", *texts, "time"), lines)

    def claims(self, rows: list[Row]) -> list[Claim]:
        texts = list(dict.fromkeys(row["text"] for row in rows))
        cheap = [name for name in names() if name != DEFAULT and "CVI 1" not in name]
        better = {
            name: [text for text in texts if self.difference(text, name)[2] < 0.0]
            for name in cheap
            if all(self.difference(text, name)[0] <= 0.0 for text in texts)
        }
        by_word = {text: self.difference(text, "CVI 1")[0] for text in texts}
        return [
            Claim(
                "no other setting of CVI 2 is as good as the default on every text, and better on one beyond chance",
                not any(better.values()),
                "; ".join(f"{name}: {', '.join(where)}" for name, where in better.items() if where) or "none",
                doubted=self.quick,
            ),
            Claim(
                "CVI 1 has no more errors than CVI 2 on any text",
                max(by_word.values()) <= 0.0,
                ", ".join(f"{text} {change:+.1f}" for text, change in by_word.items()),
                doubted=True,
            ),
        ]

    def draw(self, rows: list[Row], axes: Any) -> None:
        texts, others = list(dict.fromkeys(row["text"] for row in rows)), names()[1:]
        for shift, text in enumerate(texts):
            found = np.array([self.difference(text, name) for name in others])
            places = np.arange(len(others)) + 0.15 * (shift - 2)
            sides = np.abs(found[:, 1:].T - found[:, 0])
            axes.errorbar(found[:, 0], places, xerr=sides, fmt="o", markersize=3, linewidth=1, label=text)
        axes.axvline(0.0, color="grey", linewidth=0.5)
        axes.set_yticks(range(len(others)), others, fontsize=6)
        axes.set_xscale("symlog", linthresh=2.0)
        axes.set_xlabel("points of error rate more than the default")
        axes.legend(fontsize=7)


def _development(corpus: Corpus, name: str) -> tuple[Counts, float]:
    """Links of the development pairs, counted against the gold ones, and processor seconds."""
    began = time.process_time()
    if name in IDEAS:
        aligner = IDEAS[name](corpus.text)
    else:
        aligner = WordAligner(random_state=0, progress=False, **SETTINGS[name]).fit(corpus.text)
    seconds = time.process_time() - began
    return link_counts(aligner.links().between(0, corpus.n_dev), *corpus.dev), seconds
