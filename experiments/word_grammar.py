"""Wang (2016), section 4.5.1 and figure 4.1 (left): a grammar of the morphemes of verbs, by CVI and by sampling.

    Word → V | V M | SM V M | SM T V M | SM T OM V M,    and every class emits any substring of the corpus.

The thesis learns from 1,671 Sesotho verbs, which could not be found; Zulu verbs stand in for them, of which the gold
segmentation is known. Nine tenths are learned from. Perplexity is that of a held-out word under the posterior mean; F1
compares the boundaries within the training words with the gold ones. All substrings of all words are terminals of every
class, in every run: perplexities depend on their number, and on the concentration, 1e-5. Runs begin with all
segmentations equally likely; from random probabilities every algorithm ends with whole words.
"""

from __future__ import annotations

import gzip
import math
import time
from collections.abc import Iterable
from typing import Any

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


def bounds(pieces: list[str]) -> set[int]:
    """Return the places of the boundaries within a word."""
    return set(np.cumsum([len(piece) for piece in pieces])[:-1].tolist())


def boundary_f1(found: list[list[str]], gold: list[list[str]]) -> float:
    """Return F1 of the boundaries within words, in per cent."""
    hits = sum(len(bounds(one) & bounds(other)) for one, other in zip(found, gold, strict=True))
    total = sum(len(bounds(pieces)) for pieces in [*found, *gold])
    return 200.0 * hits / total if total else 0.0


class WordGrammar(Experiment):
    """Perplexity and segmentation of verbs by the sweeps of each algorithm."""

    name = "word_grammar"
    title = "A grammar of morphemes (Wang 2016, figure 4.1, left)"
    needs = ("zulu-verbs",)

    def rows(self) -> Iterable[Row]:
        with gzip.open(data_file("zulu-verbs", "zulu-verbs-core2283.tsv.gz"), "rt", encoding="utf8") as file:
            table_ = [line.rstrip("\n").split("\t") for line in file]
        words, gold = [row[0] for row in table_], [row[1].split("-") for row in table_]
        for seed in range(self.seeds):
            order = np.random.default_rng(seed).permutation(len(words))
            cut = round(SHARE * len(words))
            train, test = order[:cut].tolist(), order[cut:].tolist()
            for name, sweeps, algorithm in self.runs():
                grammar = PCFG(
                    RULES, algorithm, init="flat", concentration=CONCENTRATION, unit="character", tokens=words,
                    random_state=seed, progress=False,
                )  # fmt: skip
                began = time.process_time()
                grammar.fit([words[i] for i in train])
                seconds = time.process_time() - began
                segmented = [tree.leaves() if tree else [] for tree in grammar.parse([words[i] for i in train])]
                accepted = grammar.trace_.measures.get("accepted")
                yield {
                    "algorithm": name, "sweeps": sweeps, "seed": seed,
                    "perplexity": grammar.perplexity([words[i] for i in test], per="sentence"),
                    "f1": boundary_f1(segmented, [gold[i] for i in train]), "seconds": seconds,
                    "accepted": float(np.mean(accepted)) if accepted else math.nan,
                }  # fmt: skip

    def runs(self) -> Iterable[tuple[str, int, Algorithm]]:
        """Yield name, sweeps and algorithm of every run."""
        for n in SWEEPS:
            yield "CVI", n, CVI(max_iter=n, tolerance=0.0)
        yield "VI", 50, VI(max_iter=50, tolerance=0.0)
        yield "CVI, batch, not excluded", 20, CVI(max_iter=20, tolerance=0.0, exclude=False, order="batch")
        for n in QUICK_DRAWS if self.quick else DRAWS:
            yield "Hastings, last draw", n, Hastings(n_samples=1, burn_in=n - 1, n_chains=1)
        last = (QUICK_DRAWS if self.quick else DRAWS)[-1]
        yield "Hastings, mean of draws", last, Hastings(n_samples=last // 2, burn_in=last - last // 2, n_chains=1)

    def summary(self, rows: list[Row]) -> list[str]:
        kinds = list(dict.fromkeys((row["algorithm"], row["sweeps"]) for row in rows))
        lines = [
            [
                f"{name}, {n}",
                f"{self.mean_perplexity(rows, name, n):,.0f}",
                cell(rows, "f1", algorithm=name, sweeps=n),
                cell(rows, "seconds", algorithm=name, sweeps=n),
            ]
            for name, n in kinds
        ]
        return table(("algorithm, sweeps", "perplexity, geometric mean", "boundary F1", "CPU seconds"), lines)

    def mean_perplexity(self, rows: list[Row], name: str, n: int) -> float:
        """Return the geometric mean over all splits."""
        chosen = [row["perplexity"] for row in rows if (row["algorithm"], row["sweeps"]) == (name, n)]
        return float(np.exp(np.mean(np.log(chosen))))

    def claims(self, rows: list[Row]) -> list[Claim]:
        def values(name: str, n: int, column: str = "perplexity") -> np.ndarray[Any, Any]:
            return np.array([r[column] for r in rows if (r["algorithm"], r["sweeps"]) == (name, n)])

        last = max(row["sweeps"] for row in rows if row["algorithm"] == "Hastings, last draw")
        cvi, sampler = values("CVI", 20), values("Hastings, mean of draws", last)
        f1 = mean_of(rows, "f1", algorithm="CVI", sweeps=20)
        of_sampler = mean_of(rows, "f1", algorithm="Hastings, mean of draws", sweeps=last)
        shown = ", ".join(f"{value / 1e6:.2f}" for value in cvi)
        accepted = [row["accepted"] for row in rows if row["algorithm"].startswith("Hastings")]
        return [
            Claim("CVI has a boundary F1 of 65 per cent after 20 sweeps", f1 >= 65.0, f"{f1:.1f}", False, "29.8"),
            Claim("CVI has a perplexity of at most 1.7 million after 20 sweeps, on some held-out words",
                  bool(cvi.min() <= 1.7e6), f"{shown} million", len(cvi) < 5),
            Claim("CVI has a perplexity of at most 1.7 million after 20 sweeps, on average",
                  self.mean_perplexity(rows, "CVI", 20) <= 1.7e6,
                  f"{self.mean_perplexity(rows, 'CVI', 20) / 1e6:.2f} million", True),
            Claim(f"CVI is as good after 20 sweeps as the sampler after {last}, on the same words",
                  bool((cvi <= sampler).all()),
                  f"{shown}; {', '.join(f'{value / 1e6:.2f}' for value in sampler)} million", False,
                  "as good after 10 as the sampler after 1,000"),
            Claim("the sampler segments as well as CVI", of_sampler >= f1 - 2.0, f"{of_sampler:.1f}, {f1:.1f}", True,
                  "31.3, 29.8"),
            Claim("the sampler accepts every proposal, since no class comes twice in a word", min(accepted) == 1.0,
                  f"{min(accepted):.4f}", False, "close to 100 per cent"),
        ]  # fmt: skip

    def draw(self, rows: list[Row], axes: Any) -> None:
        for name, style in (("CVI", "o-"), ("Hastings, last draw", "s-"), ("Hastings, mean of draws", "D")):
            sweeps = sorted({row["sweeps"] for row in rows if row["algorithm"] == name})
            axes.plot(sweeps, [self.mean_perplexity(rows, name, n) for n in sweeps], style, label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("sweeps")
        axes.set_ylabel("perplexity of held-out words")
        axes.legend(fontsize=8)
