"""Wang (2016), figure 4.1 (right): the dependency model with valence by EM, VI and collapsed inference.

Sentences of 2 to 10 (or 15) words without punctuation are learned from, and those of 1 to 10 words are parsed. Each run
is fitted, from the harmonic start, to a random 80 per cent of the training sentences. The Penn sample is a tenth of the
treebank and is parsed itself, since it has no section 23; UD English has a test part. Accuracy counts every word, the
root included. The ladder of collapsed inference takes its two ingredients apart: whether a sentence is excluded, and
whether counts change after every sentence.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from experiments.corpora import data_file
from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.tagging import cell, table
from subchain.grammar import DMV, Dependencies, dependency_scores, read_dependencies
from subchain.inference import CVI

#: Iterations of every run.
ITERATIONS = 40
#: Share of the training sentences that a run sees.
SHARE = 0.8
#: Settings of the grammar by name.
METHODS: dict[str, dict[str, Any]] = {
    "EM": {"inference": "em"},
    "hard EM": {"inference": "em", "hard": True},
    **{f"VI {a:g}": {"inference": "vi", "concentration": a} for a in (0.1, 1.0)},
    **{f"CVI {a:g}": {"inference": "cvi", "concentration": a} for a in (0.1, 1.0)},
    "CVI 0.1, batch": {"inference": CVI(order="batch"), "concentration": 0.1},
    "CVI 0.1, not excluded": {"inference": CVI(exclude=False), "concentration": 0.1},
    "CVI 0.1, batch, not excluded": {"inference": CVI(exclude=False, order="batch"), "concentration": 0.1},
}
PREVIOUS, NEXT = "head is the previous word", "head is the next word"
WHOLE, PENN, PENN_15 = "Penn, all", "Penn", "Penn, ≤ 15 words"
UD_COARSE, UD_FINE = "UD English, 16 tags", "UD English, Penn's tags"
UD_COARSE_15, UD_FINE_15 = f"{UD_COARSE}, ≤ 15 words", f"{UD_FINE}, ≤ 15 words"


class Task(NamedTuple):
    """Sentences to learn from, and sentences to be parsed."""

    training: Dependencies
    test: Dependencies


@lru_cache(maxsize=4)
def tasks(quick: bool) -> dict[str, Task]:
    """The corpora by name."""
    penn = read_dependencies(data_file("treebank", "wsj-sample.dependencies.tsv.gz"), punctuation=False)
    test = penn.of_length(1, 10)
    found = {PENN: Task(penn.of_length(2, 10), test)}
    if quick:
        return found
    found[PENN_15] = Task(penn.of_length(2, 15), test)
    for name, longer, column in ((UD_COARSE, UD_COARSE_15, "upos"), (UD_FINE, UD_FINE_15, "xpos")):
        training, test = (
            read_dependencies(data_file("ud-ewt", f"en_ewt-ud-{part}.conllu.gz"), column, punctuation=False)
            for part in ("train", "test")
        )
        test = test.of_length(1, 10)
        found[name], found[longer] = Task(training.of_length(2, 10), test), Task(training.of_length(2, 15), test)
    return found


class DependencyGrammar(Experiment):
    """Accuracy of trees that were learned without a treebank."""

    name = "dmv"
    title = "Dependency model with valence (Wang 2016, figure 4.1, right)"
    needs = ("treebank", "ud-ewt")

    def rows(self) -> Iterable[Row]:
        corpora = tasks(self.quick)
        penn = read_dependencies(data_file("treebank", "wsj-sample.dependencies.tsv.gz"), punctuation=False)
        everything = penn.of_length(1, 10)
        yield {"corpus": WHOLE, "seed": 0, "algorithm": "EM"} | _scored(METHODS["EM"], everything, everything, [])
        for name, task in corpora.items():
            tags = sorted({tag for part in task for sentence in part.tags for tag in sentence})
            for baseline, step in ((PREVIOUS, -1), (NEXT, 1)):
                chain = [_chain(len(sentence), step) for sentence in task.test.tags]
                yield {"corpus": name, "seed": 0, "algorithm": baseline} | _accuracies(chain, task.test)
            for seed in range(self.seeds):
                rng = np.random.default_rng([seed, len(task.training)])
                order = rng.permutation(len(task.training))[: round(SHARE * len(task.training))]
                part = task.training.take(np.sort(order))
                for algorithm, settings in METHODS.items():
                    found = _scored(settings, part, task.test, tags)
                    yield {"corpus": name, "seed": seed, "algorithm": algorithm} | found

    def summary(self, rows: list[Row]) -> list[str]:
        corpora = [name for name in dict.fromkeys(row["corpus"] for row in rows) if name != WHOLE]
        lines = [
            [name, *(cell(rows, "directed", corpus=corpus, algorithm=name) for corpus in corpora)]
            for name in (PREVIOUS, NEXT, *METHODS)
        ]
        return table(("algorithm", *(f"directed, {corpus}" for corpus in corpora)), lines)

    def claims(self, rows: list[Row]) -> list[Claim]:
        def directed(corpus: str, algorithm: str) -> float:
            return mean_of(rows, "directed", corpus=corpus, algorithm=algorithm)

        whole = {name: mean_of(rows, name, corpus=WHOLE) for name in ("directed", "undirected")}
        claims = [
            Claim("EM on all sentences of the Penn sample: 46.1 ± 0.5 per cent directed, 63.4 ± 0.5 undirected",
                  abs(whole["directed"] - 46.1) <= 0.5 and abs(whole["undirected"] - 63.4) <= 0.5,
                  f"{whole['directed']:.1f}, {whole['undirected']:.1f}"),
            Claim("Penn: EM is ahead of the better chain", directed(PENN, "EM") > directed(PENN, NEXT),
                  f"{directed(PENN, 'EM'):.1f}, {directed(PENN, NEXT):.1f}"),
        ]  # fmt: skip
        corpora = [name for name in dict.fromkeys(row["corpus"] for row in rows) if name != WHOLE]
        pairs = [(c, f"CVI {a}", other) for c in corpora for a in ("0.1", "1") for other in (f"VI {a}", "EM")]
        leads = [lead(rows, *pair) for pair in pairs]
        for (corpus, first, second), one in zip(pairs, leads, strict=True):
            claims.append(
                Claim(f"{corpus}: {first} is ahead of {second}, by more than two standard errors", one.is_ahead,
                      f"by {one.mean:.2f} ± {one.error:.2f}", True, "ahead, on section 23")
            )  # fmt: skip
        ahead, behind = sum(one.is_ahead for one in leads), sum(one.is_behind for one in leads)
        claims.append(
            Claim("figure 4.1 (right): CVI is ahead of VI and EM for both concentrations, on all corpora",
                  ahead == len(leads), f"by more than two standard errors ahead in {ahead} and behind in {behind} of "
                  f"{len(leads)} comparisons", True, "ahead for both")
        )  # fmt: skip
        for corpus in (UD_COARSE, UD_FINE, UD_COARSE_15, UD_FINE_15):
            if any(row["corpus"] == corpus for row in rows):
                best = max(directed(corpus, name) for name in METHODS)
                claims.append(
                    Claim(f"{corpus}: no algorithm is ahead of a chain, since heads are content words",
                          best < directed(corpus, NEXT), f"{best:.1f}, {directed(corpus, NEXT):.1f}")
                )  # fmt: skip
        return claims

    def draw(self, rows: list[Row], axes: Any) -> None:
        corpora = [name for name in dict.fromkeys(row["corpus"] for row in rows) if name != WHOLE]
        names = [name for name in METHODS if "," not in name]
        width = 0.8 / len(names)
        for number, name in enumerate(names):
            values = [[r["directed"] for r in rows if r["corpus"] == c and r["algorithm"] == name] for c in corpora]
            places = np.arange(len(corpora)) + (number - (len(names) - 1) / 2) * width
            axes.bar(places, list(map(np.mean, values)), width, yerr=list(map(np.std, values)), label=name)
        for place, corpus in enumerate(corpora):
            best = mean_of(rows, "directed", corpus=corpus, algorithm=NEXT)
            axes.plot([place - 0.45, place + 0.45], [best, best], "k:", label=NEXT if place == 0 else None)
        axes.set_xticks(range(len(corpora)), [name.replace(", ", "\n") for name in corpora], fontsize=8)
        axes.set_ylabel("directed accuracy in per cent")
        axes.legend(fontsize=7)


class Lead(NamedTuple):
    """By how much one algorithm is ahead of another on the same parts of the sentences, and the standard error."""

    mean: float
    error: float

    @property
    def is_ahead(self) -> bool:
        return self.mean > 2.0 * self.error

    @property
    def is_behind(self) -> bool:
        return self.mean < -2.0 * self.error


def lead(rows: list[Row], corpus: str, first: str, second: str) -> Lead:
    """Return the lead of the first algorithm in directed accuracy."""
    scores = {(row["algorithm"], row["seed"]): row["directed"] for row in rows if row["corpus"] == corpus}
    seeds = sorted(seed for name, seed in scores if name == first)
    leads = np.array([scores[first, seed] - scores[second, seed] for seed in seeds])
    error = float(leads.std(ddof=1) / np.sqrt(len(leads))) if len(leads) > 1 else np.nan
    return Lead(float(leads.mean()), error)


def _chain(n: int, step: int) -> np.ndarray[Any, Any]:
    """Heads that are all the previous (−1) or the next (1) word."""
    heads = np.arange(n) + step
    heads[heads == n] = -1
    return heads


def _scored(settings: dict[str, Any], training: Dependencies, test: Dependencies, tags: list[str]) -> Row:
    """Fit a grammar, parse the test sentences, and score the trees."""
    grammar = DMV(iterations=ITERATIONS, tags=tags or None, progress=False, random_state=0, **settings)
    began = time.process_time()
    grammar.fit(training)
    seconds = time.process_time() - began
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the grammar cannot derive")  # tags that EM has not seen side by side
        found = grammar.parse(test)
    objective = grammar.trace_.known_objectives()
    return _accuracies(found, test) | {"objective": objective[-1] if objective else np.nan, "seconds": seconds}


def _accuracies(found: list[Any], test: Dependencies) -> Row:
    scores = dependency_scores(found, test.heads or [])
    return {"directed": 100.0 * scores.directed, "undirected": 100.0 * scores.undirected}
