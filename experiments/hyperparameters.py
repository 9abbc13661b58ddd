"""Wang (2016), figures 5.9 and 5.10: does it help to share the prior of transitions, and to learn all concentrations?

Wall Street Journal text, 45 states that are all kept. The finite model has 0.1 everywhere; hierarchical ones share a
parent of all rows, with the thesis's concentrations or with learned ones, and words may have learned weights that all
states share. Scores are log likelihoods of held-out sentences, a word: of batch inference from so many sentences, and
of stochastic inference from all; and, which the thesis does not tell, V-measures of tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.hierarchies import Concentrations, Method, chosen, learn, names_of, panels, score_of
from experiments.tagging import Task, block, cell, penn_sample, table
from experiments.text import ORDER, sentences
from subchain import CVI, HDP, SCVI, Categorical, Dirichlet
from subchain.data import Sequences, as_sequences
from subchain.inference import Algorithm
from subchain.metrics import tagging_report
from subchain.transitions import TransitionPrior

STATES = 45
#: One sentence in so many is a test sentence.
TEST = 10
SIZES = (1000, 5000)
ITERATIONS, PASSES = 100, 3.0
#: Sizes and forgetting rates of the stochastic runs.
CELLS = ((100, 0.5), (100, 0.7), (100, 0.9), (20, 0.5), (500, 0.5))
TAGGED = 1000


class Prior(NamedTuple):
    """Prior of the transitions, and concentration of the words."""

    transition: TransitionPrior
    words: Any


def _hierarchical(concentrations: Concentrations) -> HDP:
    return concentrations.prior("collapsed", False)


FIXED, LEARNED = Concentrations(5.0, 10.0), Concentrations("learned", "learned")
PRIORS = {
    "finite": Prior(Dirichlet(0.1), 0.1),
    "finite, learned words": Prior(Dirichlet(0.1), "learned per symbol"),
    "HDP": Prior(_hierarchical(FIXED), 0.1),
    "HDP, learned": Prior(_hierarchical(LEARNED), 0.1),
    "HDP, learned, one number for words": Prior(_hierarchical(LEARNED), "learned"),
    "HDP, all learned": Prior(_hierarchical(LEARNED), "learned per symbol"),
}
THESIS = "HDP, all learned"


class Hyperparameters(Experiment):
    """Scores over sizes of the corpus, forgetting rates and minibatches."""

    name = "hyperparameters"
    title = "Learned hyperparameters (Wang 2016, figures 5.9 and 5.10)"

    def rows(self) -> Iterable[Row]:
        train, test = self._text()
        iterations = 5 if self.quick else ITERATIONS
        for size in SIZES[:1] if self.quick else SIZES:
            for seed in range(self.seeds):
                yield from _compared(
                    {"part": "batch", "sentences": size}, CVI(max_iter=iterations), train[:size], test, seed
                )
        for batch, forgetting in CELLS[:1] if self.quick else CELLS:
            passes = 0.2 if self.quick else PASSES
            algorithm = SCVI(length=None, batch=batch, forgetting=forgetting, max_passes=passes, report_every=10)
            where = {"part": "stochastic", "batch": batch, "forgetting": forgetting}
            for seed in range(self.seeds):
                yield from _compared(where, algorithm, train, test, seed)
        task = block(penn_sample(), 1, TAGGED)
        for seed in range(self.seeds):
            yield from _tagged(task, iterations, seed)

    def _text(self) -> tuple[Sequences, Sequences]:
        lines = sentences()
        order = np.random.default_rng(ORDER).permutation(len(lines))
        data = as_sequences([lines[line] for line in order])
        is_test = np.arange(data.n_sequences) % TEST == 0
        return data[~is_test], data[is_test]

    # ---- what the rows say -------------------------------------------------------------------------------------------

    def claims(self, rows: list[Row]) -> list[Claim]:
        claims, gains = [], {}
        for title, where in self._cases(rows):
            measure = "V-measure" if where["part"] == "tags" else "score"
            scores = {name: mean_of(rows, measure, method=name, **where) for name in PRIORS}
            gain = scores[THESIS] - scores["finite"]
            if where["part"] == "batch":
                gains[where["sentences"]] = gain
            shown = ", ".join(f"{name} {score:.3f}" for name, score in scores.items())
            claims += [
                Claim(
                    f"{title}: learning all hyperparameters helps",
                    gain > 0.0,
                    f"{gain:+.3f}; {shown}",
                    True,
                    "noticeably, for every size of corpus",
                ),
                _better(title, scores, "HDP", "finite", "sharing a parent helps"),
                _better(title, scores, "HDP, learned", "HDP", "learning its concentrations helps"),
                _better(title, scores, THESIS, "finite, learned words", "it helps even if words are learned anyway"),
            ]
        if len(gains) > 1:
            shown = ", ".join(f"{size}: {gain:+.3f}" for size, gain in gains.items())
            falls = list(gains.values()) == sorted(gains.values(), reverse=True)
            text = "it helps most where there are few sentences"
            claims.append(Claim(text, falls, shown, True, "most on 1,000 sentences"))
        return claims

    @staticmethod
    def _cases(rows: list[Row]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Titles and columns of the settings."""
        for size in names_of(rows, "sentences"):
            yield f"{size} sentences", {"part": "batch", "sentences": size}
        for batch, forgetting in dict.fromkeys((row["batch"], row["forgetting"]) for row in rows if "batch" in row):
            where = {"part": "stochastic", "batch": batch, "forgetting": forgetting}
            yield f"SCVI, {batch} an update, forgetting {forgetting}", where
        if chosen(rows, part="tags"):
            yield f"tags of {TAGGED} sentences", {"part": "tags"}

    def summary(self, rows: list[Row]) -> list[str]:
        lines = (
            [title, *(
                cell(rows, "V-measure" if where["part"] == "tags" else "score", 3, method=name, **where)
                for name in PRIORS
            )]
            for title, where in self._cases(rows)
        )  # fmt: skip
        return [*table(("setting", *PRIORS), lines)]

    def draw(self, rows: list[Row], axes: Any) -> None:
        cases = list(self._cases(rows))
        for (title, where), panel in zip(cases, panels(axes, 1, len(cases), (2.4, 4.2)), strict=True):
            measure = "V-measure" if where["part"] == "tags" else "score"
            for number, name in enumerate(PRIORS):
                values = [row[measure] for row in chosen(rows, method=name, **where)]
                panel.scatter([number] * len(values), values, s=14, color=f"C{number}", label=name)
            panel.set_xticks([])
            panel.set_xlabel(title, fontsize=7)
        axes.set_ylabel("log likelihood a word; V-measure")
        axes.legend(fontsize=6)


def _better(title: str, scores: dict[str, float], first: str, second: str, text: str) -> Claim:
    difference = scores[first] - scores[second]
    return Claim(f"{title}: {text}", difference > 0.0, f"{difference:+.3f}", doubted=True)


def _compared(
    where: dict[str, Any], algorithm: Algorithm, train: Sequences, test: Sequences, seed: int
) -> Iterator[Row]:
    """Runs with all priors, scored by held-out sentences."""
    for name, (transition, words) in PRIORS.items():
        emission = Categorical(words, n_categories=len(train.vocabulary or ()))
        learned = learn(Method(transition, algorithm), train, STATES, emission, seed)
        yield where | {"method": name, "seed": seed, "score": score_of(learned.model, test)} | learned.times()


def _tagged(task: Task, iterations: int, seed: int) -> Iterator[Row]:
    """Runs with all priors, scored by the tags that they induce; every word begins with a random state."""
    for name, (transition, words) in PRIORS.items():
        emission = Categorical(words, n_categories=task.n_words)
        method = Method(transition, CVI(cluster="sequence", max_iter=iterations))
        learned = learn(method, task.words, task.n_tags, emission, seed, init="states")
        states = np.concatenate([np.atleast_1d(x) for x in learned.model.predict(task.words)])
        report = tagging_report(task.tags, Sequences(states, task.words.offsets), task.words)
        yield (
            {"part": "tags", "method": name, "seed": seed, "V-measure": 100.0 * float(report.v_measure),
             "states": float(report.states_used)} | learned.times()
        )  # fmt: skip
