"""What Wang (2016) leaves open for grammars: stochastic collapsed inference, beside the algorithms of chapter 4.

Two grammars are learned from minibatches and from passes. The first is fully connected, over the tags of short English
sentences, from random probabilities, and has a moderate prior. The second is the grammar of the morphemes of verbs
(`word_grammar`), whose terminals are all substrings, with a concentration of 1e-5. SCVI has the predictive weights of
CVI but takes no sentence out of the counts; the second grammar shows what that means where rules are rare.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from experiments.corpora import data_file
from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.tagging import table
from experiments.word_grammar import learned, verbs
from subchain.grammar import PCFG, Dependencies, read_dependencies
from subchain.inference import CVI, SCVI, SVI, VI, Algorithm

TAGS, VERBS = "tags", "verbs"
#: Symbols of the fully connected grammar, and words of the longest sentence.
SYMBOLS, LONGEST = 10, 10
#: Passes over the data after which runs are judged, by grammar.
PASSES = {TAGS: (1, 2, 5, 10, 20, 40), VERBS: (1, 5, 20)}
QUICK = {TAGS: (1, 5), VERBS: (5,)}
#: Algorithms with a number of passes.
ALGORITHMS: dict[str, Callable[[int], Algorithm]] = {
    "VI": lambda n: VI(max_iter=n, tolerance=0.0),
    "CVI": lambda n: CVI(max_iter=n, tolerance=0.0),
    "SVI": lambda n: SVI(max_passes=float(n), max_updates=None),
    "SCVI": lambda n: SCVI(max_passes=float(n), max_updates=None),
}


@lru_cache(maxsize=1)
def tags() -> tuple[Dependencies, Dependencies]:
    """Return training and test sentences of tags, without punctuation."""
    train, test = (
        read_dependencies(data_file("ud-ewt", f"en_ewt-ud-{part}.conllu.gz"), "upos", punctuation=False)
        for part in ("train", "test")
    )
    return train.of_length(2, LONGEST), test.of_length(2, LONGEST)


class StochasticGrammars(Experiment):
    """Held-out perplexity by passes over the data."""

    name = "stochastic_grammars"
    title = "Grammars from minibatches"
    needs = ("ud-ewt", "zulu-verbs")

    def rows(self) -> Iterable[Row]:
        passes = QUICK if self.quick else PASSES
        for seed in range(self.seeds):
            for n in passes[TAGS]:
                for name, make in ALGORITHMS.items():
                    yield {"grammar": TAGS, "algorithm": name, "passes": n, "seed": seed} | self.of_tags(make(n), seed)
            split = verbs(seed)
            for n in passes[VERBS]:
                for name, make in ALGORITHMS.items():
                    found = learned(split, make(n), seed)
                    yield {"grammar": VERBS, "algorithm": name, "passes": n, "seed": seed} | {
                        key: found[key] for key in ("perplexity", "seconds", "f1")
                    }

    def of_tags(self, algorithm: Algorithm, seed: int) -> Row:
        """Fit a fully connected grammar; return the perplexity of a held-out tag, and CPU seconds."""
        train, test = tags()
        grammar = PCFG(n_nonterminals=SYMBOLS, inference=algorithm, random_state=seed, n_jobs=1, progress=False)
        began = time.process_time()
        grammar.fit(train)
        return {"perplexity": grammar.perplexity(test), "seconds": time.process_time() - began}

    def summary(self, rows: list[Row]) -> list[str]:
        kinds = dict.fromkeys((row["grammar"], row["passes"]) for row in rows)
        lines = [
            [f"{grammar}, {n}", *(self.shown(rows, grammar, name, n) for name in ALGORITHMS)] for grammar, n in kinds
        ]
        return table(("grammar, passes", *ALGORITHMS), lines)

    def shown(self, rows: list[Row], grammar: str, name: str, n: int) -> str:
        """Return mean perplexity with the deviation over starts; for verbs in millions, with F1 of the boundaries."""
        if grammar == VERBS:
            f1 = mean_of(rows, "f1", grammar=grammar, algorithm=name, passes=n)
            return f"{np.exp(self.logs(rows, grammar, name, n).mean()) / 1e6:.2f} M, F1 {f1:.0f}"
        values = np.exp(self.logs(rows, grammar, name, n))
        spread = f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else ""
        return f"{values.mean():.1f}{spread}"

    def logs(self, rows: list[Row], grammar: str, name: str, n: int) -> np.ndarray[Any, Any]:
        """Return the log perplexities of all seeds."""
        chosen = (grammar, name, n)
        found = [r["perplexity"] for r in rows if (r["grammar"], r["algorithm"], r["passes"]) == chosen]
        return np.log(np.array(found, dtype=np.float64))

    def claims(self, rows: list[Row]) -> list[Claim]:
        first, last = (end(row["passes"] for row in rows if row["grammar"] == TAGS) for end in (min, max))
        most = max(row["passes"] for row in rows if row["grammar"] == VERBS)

        def means(grammar: str, n: int) -> dict[str, float]:
            return {name: float(np.exp(self.logs(rows, grammar, name, n).mean())) for name in ALGORITHMS}

        begin, end, of_verbs = means(TAGS, first), means(TAGS, last), means(VERBS, most)
        f1 = {name: mean_of(rows, "f1", grammar=VERBS, algorithm=name, passes=most) for name in ALGORITHMS}
        lead = self.logs(rows, TAGS, "SVI", last) - self.logs(rows, TAGS, "SCVI", last)
        error = float(lead.std(ddof=1) / np.sqrt(len(lead))) if len(lead) > 1 else np.nan
        return [
            Claim(f"tags: after {_passes(first)} SCVI is ahead of VI and CVI",
                  begin["SCVI"] < min(begin["VI"], begin["CVI"]), _named(begin)),
            Claim(f"tags: after {_passes(last)} CVI is ahead of SCVI", end["CVI"] < end["SCVI"], _named(end)),
            Claim(f"tags: after {_passes(last)} SCVI is ahead of SVI, by more than two standard errors",
                  bool(lead.mean() > 2.0 * error), f"by {100.0 * lead.mean():.1f} ± {100.0 * error:.1f} per cent",
                  True),
            Claim(f"verbs: after {_passes(most)} SCVI has ended with whole words, as CVI without exclusion; CVI and "
                  "SVI have not", f1["SCVI"] < 5.0 < 50.0 < min(f1["CVI"], f1["SVI"]),
                  f"F1 {_named(f1)}; perplexity in millions {_named({k: v / 1e6 for k, v in of_verbs.items()})}"),
        ]  # fmt: skip

    def draw(self, rows: list[Row], axes: Any) -> None:
        passes = sorted({row["passes"] for row in rows if row["grammar"] == TAGS})
        for name, style in zip(ALGORITHMS, ("s-", "^-", "o--", "D--"), strict=True):
            axes.plot(passes, [np.exp(self.logs(rows, TAGS, name, n).mean()) for n in passes], style, label=name)
        axes.set_xscale("log")
        axes.set_xticks(passes, [str(n) for n in passes])
        axes.set_xlabel("passes over the sentences")
        axes.set_ylabel("perplexity of a held-out tag")
        axes.legend(fontsize=8)


def _passes(n: int) -> str:
    return "one pass" if n == 1 else f"{n} passes"


def _named(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in values.items())
