"""Wang (2016), section 4.5.1 and figure 4.1 (left): a grammar of the morphemes of verbs, by CVI and by sampling.

    Word → V | V M | SM V M | SM T V M | SM T OM V M,    and every class emits any substring of the corpus.

The thesis learns from 1,671 Sesotho verbs, which could not be found; Zulu verbs stand in for them, of which the gold
segmentation is known. Nine tenths are learned from. Perplexity is that of a held-out word under the posterior mean; F1
compares the boundaries within the training words with the gold ones. All substrings of all words are terminals of every
class, in every run: perplexities depend on their number, and on the concentration, 1e-5. Runs begin with all
segmentations equally likely; from random probabilities every algorithm ends with whole words.

Perplexity depends most on which words are held out, so CVI is run on more splits than the slow sampler. The ladder
takes the two ingredients of CVI apart: whether a word is excluded from the counts before it is visited, and whether the
counts change after every word or after a whole sweep.
"""

from __future__ import annotations

import gzip
import math
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.corpora import data_file
from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.tagging import cell, table
from subchain.grammar import PCFG
from subchain.inference import CVI, VI, Algorithm, Hastings

CLASSES = ("V", "M", "SM", "T", "OM")
RULES = "\n".join(
    ["Word -> V | V M | SM V M | SM T V M | SM T OM V M", *(f"{name} -> <substring>" for name in CLASSES)]
)
CONCENTRATION = 1e-5
#: Share of the words that is learned from.
SHARE = 0.9
#: Sweeps after which runs are judged.
SWEEPS, DRAWS = (1, 2, 5, 10, 20, 50), (20, 100, 500, 1000)
QUICK_DRAWS = (20, 100)
#: Sweeps after which CVI is compared, and the random splits that this alone is run on.
ENOUGH, SPLITS = 20, 20
#: CVI without one of its ingredients, and without both.
LADDER: dict[str, dict[str, Any]] = {
    "CVI, batch": {"order": "batch"},
    "CVI, not excluded": {"exclude": False},
    "CVI, batch, not excluded": {"order": "batch", "exclude": False},
}


def bounds(pieces: list[str]) -> set[int]:
    """Return the places of the boundaries within a word."""
    return set(np.cumsum([len(piece) for piece in pieces])[:-1].tolist())


def boundary_f1(found: list[list[str]], gold: list[list[str]]) -> float:
    """Return F1 of the boundaries within words, in per cent."""
    hits = sum(len(bounds(one) & bounds(other)) for one, other in zip(found, gold, strict=True))
    total = sum(len(bounds(pieces)) for pieces in [*found, *gold])
    return 200.0 * hits / total if total else 0.0


class Verbs(NamedTuple):
    """Verbs that are learned from, with their gold morphemes, held-out verbs, and the substrings' source, all verbs."""

    train: list[str]
    gold: list[list[str]]
    test: list[str]
    everything: list[str]


@lru_cache(maxsize=1)
def corpus(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return all verbs and their morphemes."""
    with gzip.open(path, "rt", encoding="utf8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [row[0] for row in rows], [row[1].split("-") for row in rows]


def verbs(seed: int) -> Verbs:
    """Return a random split of the verbs."""
    words, gold = corpus(data_file("zulu-verbs", "zulu-verbs-core2283.tsv.gz"))
    order = np.random.default_rng(seed).permutation(len(words))
    cut = round(SHARE * len(words))
    train, test = order[:cut].tolist(), order[cut:].tolist()
    return Verbs([words[i] for i in train], [gold[i] for i in train], [words[i] for i in test], words)


def learned(split: Verbs, algorithm: Algorithm, seed: int) -> Row:
    """Fit the grammar of morphemes; return perplexity, F1 and CPU seconds."""
    grammar = PCFG(
        RULES, algorithm, init="flat", concentration=CONCENTRATION, unit="character", tokens=split.everything,
        random_state=seed, progress=False,
    )  # fmt: skip
    began = time.process_time()
    grammar.fit(split.train)
    seconds = time.process_time() - began
    segmented = [tree.leaves() if tree else [] for tree in grammar.parse(split.train)]
    accepted = grammar.trace_.measures.get("accepted")
    return {
        "perplexity": grammar.perplexity(split.test, per="sentence"), "f1": boundary_f1(segmented, split.gold),
        "seconds": seconds, "accepted": float(np.mean(accepted)) if accepted else math.nan,
    }  # fmt: skip


def enough(**settings: Any) -> tuple[str, int, CVI]:
    """Return name, sweeps and algorithm of the run of CVI that is compared with others."""
    return "CVI", ENOUGH, CVI(max_iter=ENOUGH, tolerance=0.0, **settings)


class WordGrammar(Experiment):
    """Perplexity and segmentation of verbs by the sweeps of each algorithm."""

    name = "word_grammar"
    title = "A grammar of morphemes (Wang 2016, figure 4.1, left)"
    needs = ("zulu-verbs",)

    def rows(self) -> Iterable[Row]:
        for seed in range(self.seeds if self.quick else max(self.seeds, SPLITS)):
            split = verbs(seed)
            for name, sweeps, algorithm in self.runs() if seed < self.seeds else [enough()]:
                yield {"algorithm": name, "sweeps": sweeps, "seed": seed} | learned(split, algorithm, seed)

    def runs(self) -> Iterable[tuple[str, int, Algorithm]]:
        """Yield name, sweeps and algorithm of every run."""
        for n in SWEEPS:
            yield "CVI", n, CVI(max_iter=n, tolerance=0.0)
        yield "VI", 50, VI(max_iter=50, tolerance=0.0)
        for name, settings in LADDER.items():
            yield name, ENOUGH, enough(**settings)[2]
        for n in QUICK_DRAWS if self.quick else DRAWS:
            yield "Hastings, last draw", n, Hastings(n_samples=1, burn_in=n - 1, n_chains=1)
        last = (QUICK_DRAWS if self.quick else DRAWS)[-1]
        yield "Hastings, mean of draws", last, Hastings(n_samples=last // 2, burn_in=last - last // 2, n_chains=1)

    def summary(self, rows: list[Row]) -> list[str]:
        kinds = list(dict.fromkeys((row["algorithm"], row["sweeps"]) for row in rows))
        lines = []
        for name, n in kinds:
            logs = self.logs(rows, name, n)
            same = [row for row in rows if row["seed"] < self.seeds]
            lines.append([
                f"{name}, {n}", str(len(logs)), f"{np.exp(logs.mean()) / 1e6:.2f}",
                f"{np.exp(logs[: self.seeds].mean()) / 1e6:.2f}", cell(same, "f1", algorithm=name, sweeps=n),
                cell(same, "seconds", algorithm=name, sweeps=n),
            ])  # fmt: skip
        mean = "perplexity, millions, geometric mean"
        header = ("algorithm, sweeps", "splits", mean, f"over {self.seeds} splits", "boundary F1", "CPU seconds")
        return table(header, lines)

    def logs(self, rows: list[Row], name: str, n: int) -> np.ndarray[Any, Any]:
        """Return the log perplexities of all splits in their order."""
        chosen = [row["perplexity"] for row in rows if (row["algorithm"], row["sweeps"]) == (name, n)]
        return np.log(np.array(chosen, dtype=np.float64))

    def claims(self, rows: list[Row]) -> list[Claim]:
        def millions(logs: np.ndarray[Any, Any]) -> str:
            return ", ".join(f"{value / 1e6:.2f}" for value in np.exp(logs))

        def f1(name: str, n: int) -> float:
            return mean_of(rows, "f1", algorithm=name, sweeps=n)

        last = max(row["sweeps"] for row in rows if row["algorithm"] == "Hastings, last draw")
        cvi, sampler = self.logs(rows, "CVI", ENOUGH), self.logs(rows, "Hastings, mean of draws", last)
        same, own, of_sampler = cvi[: len(sampler)], f1("CVI", ENOUGH), f1("Hastings, mean of draws", last)
        error = float(cvi.std(ddof=1) / np.sqrt(len(cvi))) if len(cvi) > 1 else 0.0
        low, mean, high = np.exp(cvi.mean() + 2.0 * error * np.array([-1.0, 0.0, 1.0])) / 1e6
        accepted = [row["accepted"] for row in rows if row["algorithm"].startswith("Hastings")]
        claims = [
            Claim(f"CVI has a boundary F1 of 65 per cent after {ENOUGH} sweeps", own >= 65.0, f"{own:.1f}", False,
                  "29.8"),
            Claim(f"CVI has a perplexity of at most 1.7 million after {ENOUGH} sweeps, on average over splits",
                  bool(mean <= 1.7), f"{mean:.2f} million, interval {low:.2f} to {high:.2f}, {len(cvi)} splits", True),
            Claim(f"CVI has a perplexity of at most 1.7 million after {ENOUGH} sweeps, on some splits",
                  bool((np.exp(cvi) <= 1.7e6).any()), f"{(np.exp(cvi) <= 1.7e6).sum()} of {len(cvi)}", len(cvi) < 10),
            Claim(f"CVI is as good after {ENOUGH} sweeps as the sampler after {last}, on the same words",
                  bool((same <= sampler).all()), f"{millions(same)}; {millions(sampler)} million", False,
                  "as good after 10 as the sampler after 1,000"),
            Claim("the sampler segments as well as CVI", of_sampler >= own - 2.0, f"{of_sampler:.1f}, {own:.1f}", True,
                  "31.3, 29.8"),
            Claim("the sampler accepts every proposal, since no class comes twice in a word", min(accepted) == 1.0,
                  f"{min(accepted):.4f}", False, "close to 100 per cent"),
        ]  # fmt: skip
        ladder = {name: self.logs(rows, name, ENOUGH).mean() for name in LADDER} | {"CVI": same.mean()}
        shown = "; ".join(
            f"{name} {millions(np.array([value]))}, F1 {f1(name, ENOUGH):.1f}" for name, value in ladder.items()
        )
        batch, kept, neither = LADDER
        return [
            *claims,
            Claim("without exclusion perplexity is at least ten times as large, in both orders",
                  min(ladder[kept] - ladder["CVI"], ladder[neither] - ladder[batch]) >= np.log(10.0), shown),
            Claim("updates after every word instead of every sweep change perplexity by less than a quarter",
                  abs(ladder[batch] - ladder["CVI"]) < np.log(1.25), shown),
        ]  # fmt: skip

    def draw(self, rows: list[Row], axes: Any) -> None:
        for name, style in (("CVI", "o-"), ("Hastings, last draw", "s-"), ("Hastings, mean of draws", "D")):
            sweeps = sorted({row["sweeps"] for row in rows if row["algorithm"] == name})
            means = [np.exp(self.logs(rows, name, n)[: self.seeds].mean()) for n in sweeps]
            axes.plot(sweeps, means, style, label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("sweeps")
        axes.set_ylabel("perplexity of held-out words")
        axes.legend(fontsize=8)
