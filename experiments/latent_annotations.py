"""Wang (2016), figure 4.2: grammars with latent annotations by EM, VI and collapsed inference.

The Penn sample is a tenth of the treebank that the thesis uses: its files 1 to 160 are learned from, 161 to 180 are for
choices, 181 to 199 for the test; sentences of at most 40 words are parsed. Beside all annotations at once, annotations
are split, merged and smoothed in turn (Petrov et al. 2006), which carries further than the thesis went; and collapsed
inference excludes several trees together, which takes less memory. With two annotations, F1 differs more between
starts than between algorithms, so these runs have four times as many starts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from experiments.corpora import data_file
from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.tagging import cell, table
from subchain.grammar import LatentPCFG, Tree, bracket_scores, clean_tree, read_trees
from subchain.inference import CVI

#: Files that are learned from, and that choices are made on; the rest is the test.
TRAINING, DEVELOPMENT = 160, 180
#: Words of the longest sentence that is parsed.
LONGEST = 40
#: Starts for every seed that was asked for, by annotations; one where nothing is said.
STARTS = {2: 4}
#: Iterations of runs with all annotations at once, and of those after a split.
AT_ONCE, AFTER_SPLIT = 50, 30


class Setting(NamedTuple):
    """One line of the table."""

    annotations: int
    algorithm: str
    settings: dict[str, Any]


def _settings(quick: bool) -> list[Setting]:
    """What is compared; a quick look has one and two annotations."""
    found = [Setting(1, "EM", {"inference": "em", "iterations": 1})]
    for n in (2,) if quick else (2, 4):
        found += [Setting(n, name.upper(), {"inference": name, "iterations": AT_ONCE}) for name in ("em", "vi", "cvi")]
    if quick:
        return found
    for size in (16, 256):
        together = CVI(max_iter=AT_ONCE, tolerance=0.0, cluster_size=size)
        found.append(Setting(4, f"CVI, {size} trees at once", {"inference": together}))
    for n in (8, 16):
        for name in ("em", "cvi"):
            settings = {"inference": name, "iterations": AFTER_SPLIT, "training": "split_merge"}
            found.append(Setting(n, f"{name.upper()}, split and merged", settings))
    return found


class Treebank(NamedTuple):
    """The three parts of the sample; the last two as they are scored."""

    training: list[Tree]
    development: list[Tree]
    test: list[Tree]


@lru_cache(maxsize=1)
def treebank() -> Treebank:
    """The Penn sample in its parts."""
    trees = read_trees(data_file("treebank", "wsj-sample.trees.txt.gz"))
    lines = data_file("treebank", "wsj-sample.files.tsv").read_text().splitlines()
    ends = np.cumsum([int(line.split("\t")[1]) for line in lines])
    first, second = (int(ends[min(n, len(ends)) - 1]) for n in (TRAINING, DEVELOPMENT))
    return Treebank(trees[:first], _scored(trees[first:second]), _scored(trees[second:]))


def _scored(trees: list[Tree]) -> list[Tree]:
    cleaned = (clean_tree(tree) for tree in trees)
    return [tree for tree in cleaned if tree is not None and len(tree.leaves()) <= LONGEST]


class LatentAnnotations(Experiment):
    """F1 of parses by grammars that were learned from a small treebank."""

    name = "latent_annotations"
    title = "Grammars with latent annotations (Wang 2016, figure 4.2)"
    needs = ("treebank",)

    def rows(self) -> Iterable[Row]:
        for setting in _settings(self.quick):
            starts = self.seeds * (1 if self.quick else STARTS.get(setting.annotations, 1))
            for seed in range(starts if setting.annotations > 1 else 1):
                yield _row(setting, seed)

    def summary(self, rows: list[Row]) -> list[str]:
        lines = []
        for n, algorithm in dict.fromkeys((row["annotations"], row["algorithm"]) for row in rows):
            chosen: dict[str, Any] = {"annotations": n, "algorithm": algorithm}
            shown = (cell(rows, name, **chosen) for name in ("dev", "test", "exact_test"))
            costs = (f"{mean_of(rows, name, **chosen):.1f}" for name in ("training_seconds", "sentences_per_second"))
            starts = sum((row["annotations"], row["algorithm"]) == (n, algorithm) for row in rows)
            lines.append([str(n), algorithm, str(starts), *shown, *costs])
        header = ("annotations", "algorithm", "starts", "F1 dev", "F1 test", "exact test", "training s", "sentences/s")
        return table(header, lines)

    def claims(self, rows: list[Row]) -> list[Claim]:
        claims = []
        for (n, algorithm), bars in BARS.items():
            found = [_mean(rows, part, n, algorithm) for part in ("dev", "test")]
            if np.isfinite(found).all():
                text = f"{n} annotations, {algorithm}: F1 of at least {bars[0]} / {bars[1]}"
                starts = sum((row["annotations"], row["algorithm"]) == (n, algorithm) for row in rows)
                claims.append(
                    Claim(text, all(round(f, 1) >= b for f, b in zip(found, bars, strict=True)),
                          f"{_pair(found)}, mean of {starts}", False, PUBLISHED.get((n, algorithm), ""))
                )  # fmt: skip
        claims += [
            _lead(rows, n, "CVI", other) for n in (2, 4) for other in ("EM", "VI")
            if any(row["annotations"] == n for row in rows)
        ]  # fmt: skip
        best = [_mean(rows, part, 16, "CVI, split and merged") for part in ("dev", "test")]
        if np.isfinite(best).all():
            four = [_mean(rows, part, 4, "CVI") for part in ("dev", "test")]
            text = "16 annotations, split and merged, are ahead of 4 at once, both by CVI"
            claims.append(Claim(text, best[0] > four[0] and best[1] > four[1], f"{_pair(best)}, {_pair(four)}"))
        return claims

    def draw(self, rows: list[Row], axes: Any) -> None:
        for name, (first, rest) in {"EM": ("o", "tab:blue"), "VI": ("s", "tab:green"), "CVI": ("^", "tab:red")}.items():
            kinds = (name, "-"), (f"{name}, split and merged", ":")
            for kind, line in kinds:
                points = sorted({row["annotations"] for row in rows if row["algorithm"] == kind})
                if not points:
                    continue
                if kind == name and 1 not in points:
                    points = [1, *points]  # with one annotation all algorithms are the treebank grammar
                values = [_mean(rows, "test", n, "EM" if n == 1 else kind) for n in points]
                axes.plot(points, values, first + line, color=rest, label=kind)
        axes.set_xscale("log", base=2)
        axes.set_xlabel("annotations of a symbol")
        axes.set_ylabel("F1 of the test part in per cent")
        axes.legend(fontsize=8)


#: Means that prototypes reached on development and test part.
BARS = {
    (1, "EM"): (65.3, 65.8),
    (2, "EM"): (74.0, 72.4),
    (2, "VI"): (74.1, 73.6),
    (2, "CVI"): (75.3, 74.1),
    (4, "EM"): (80.2, 80.7),
    (4, "VI"): (80.2, 79.6),
    (4, "CVI"): (82.2, 81.9),
}
#: What the thesis has for section 23, learned from ten times as many trees.
PUBLISHED = {(4, "EM"): "82.6", (4, "VI"): "82.6", (4, "CVI"): "83.4"}


def _mean(rows: list[Row], part: str, annotations: int, algorithm: str) -> float:
    return mean_of(rows, part, annotations=annotations, algorithm=algorithm)


def _pair(found: list[float]) -> str:
    return " / ".join(f"{value:.1f}" for value in found)


def _lead(rows: list[Row], annotations: int, first: str, second: str) -> Claim:
    """The claim that one algorithm is ahead of another on both parts together, from the same starts."""
    scores = {
        (row["algorithm"], row["seed"]): (row["dev"] + row["test"]) / 2.0
        for row in rows
        if row["annotations"] == annotations
    }
    seeds = sorted(seed for name, seed in scores if name == first)
    leads = np.array([scores[first, seed] - scores[second, seed] for seed in seeds])
    error = float(leads.std(ddof=1) / np.sqrt(len(leads))) if len(leads) > 1 else np.nan
    published = {"EM": "by 0.8", "VI": "by 0.8"}[second] if annotations == 4 else ""
    return Claim(
        f"{annotations} annotations: {first} is ahead of {second}, by more than two standard errors",
        bool(leads.mean() > 2.0 * error), f"by {leads.mean():.2f} ± {error:.2f}", True, published,
    )  # fmt: skip


def _row(setting: Setting, seed: int) -> Row:
    """Fit a grammar, parse development and test part, and score the trees."""
    bank = treebank()
    grammar = LatentPCFG(setting.annotations, progress=False, random_state=seed, **setting.settings)
    began = time.perf_counter()
    grammar.fit(bank.training)
    trained = time.perf_counter()
    found: Row = {"annotations": setting.annotations, "algorithm": setting.algorithm, "seed": seed}
    parsed = {name: grammar.parse(part) for name, part in (("dev", bank.development), ("test", bank.test))}
    seconds = time.perf_counter() - trained
    for name, gold in (("dev", bank.development), ("test", bank.test)):
        scores = bracket_scores(parsed[name], gold)
        found[name], found[f"exact_{name}"] = 100.0 * scores.f1, 100.0 * scores.exact
    found["annotated_symbols"] = sum(grammar.annotations_.values())
    found["training_seconds"] = trained - began
    found["sentences_per_second"] = (len(bank.development) + len(bank.test)) / seconds
    return found
