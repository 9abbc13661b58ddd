"""What makes collapsed inference work on tagging: start, exclusion, order, size and kind of clusters.

Each ingredient is changed by itself; the priors stay those of the unchanged algorithm. Three tasks: a complete
dictionary, one without the words seen less than three times, and none at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.tagging import (
    Priors,
    Task,
    algorithms,
    block,
    cell,
    penn_sample,
    random_parameters,
    table,
    tag,
    with_dictionary,
)
from subchain.inference import Algorithm

TASKS = ("d = 1", "d = 3", "no dictionary")
ITERATIONS = {"d = 1": 50, "d = 3": 50, "no dictionary": 100}
START = {"d = 1": "posteriors", "d = 3": "posteriors", "no dictionary": "states"}
PRIORS = {
    "d = 1": {name: Priors(1.0, 0.03) for name in ("VI", "CVI 1", "CVI 2")},
    "d = 3": {"VI": Priors(1.0, 0.1), "CVI 1": Priors(1.0, 0.03), "CVI 2": Priors(1.0, 0.03)},
    "no dictionary": {"VI": Priors(1.0, 0.01), "CVI 1": Priors(0.1, 0.003), "CVI 2": Priors(0.1, 0.01)},
}
STARTS = ("posteriors", "states", "exponential", "random parameters")
NAMES = ("EM", "VI", "CVI 1", "CVI 2")
#: What else is changed of CVI 2.
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "own": {"included": {"exclude": False}},
    "order": {
        "shuffled": {"order": "shuffled"},
        "batch": {"order": "batch"},
        "batch, own included": {"order": "batch", "exclude": False},
    },
    "cluster size": {f"{n}": {"cluster_size": n} for n in (8, 64, 512)},
    "subchains of": {f"{n}": {"cluster": "subchain", "length": n} for n in (1, 2, 5, 10, 20)},
}


class Variant(NamedTuple):
    """An algorithm with one thing changed.

    Attributes
    ----------
    ingredient, choice : what was changed, and to what
    algorithm : whose priors it has
    start : None for that of the task
    """

    ingredient: str
    choice: str
    algorithm: str
    settings: dict[str, Any]
    start: str | None = None


def variants(task: str, *, is_quick: bool) -> Iterator[Variant]:
    """The algorithms as they are, and with one thing changed; or only some of that."""
    yield from (Variant("", "unchanged", name, {}) for name in NAMES)
    for start in STARTS[-1:] if is_quick else STARTS:
        if start != START[task]:
            yield from (Variant("start", start, name, {}, start) for name in NAMES)
    for ingredient, choices in SETTINGS.items():
        for choice, settings in list(choices.items())[: 1 if is_quick else None]:
            yield Variant(ingredient, choice, "CVI 2", settings)


class TaggingIngredients(Experiment):
    """Accuracies with a dictionary, V-measures without, and seconds."""

    name = "tagging_ingredients"
    title = "What collapsed inference owes to its ingredients"
    needs = ("treebank",)

    def rows(self) -> Iterable[Row]:
        text = penn_sample()
        sentences = block(text, 1, 1000)
        levels = {"d = 1": 1, "d = 3": 3}
        tasks = {name: with_dictionary(sentences, text, d) for name, d in levels.items()} | {TASKS[2]: sentences}
        for name in TASKS[:1] if self.quick else TASKS:
            for variant in variants(name, is_quick=self.quick):
                yield from self._runs(name, tasks[name], variant)

    def _runs(self, name: str, task: Task, variant: Variant) -> Iterator[Row]:
        priors = PRIORS[name].get(variant.algorithm)
        inference = _inference(variant, ITERATIONS[name])
        tag(task, _inference(variant, 1), priors, "posteriors", 0)  # compiles, which is not to be timed
        for seed in range(self.seeds):
            init: Any = variant.start or START[name]
            found = tag(task, inference, priors, random_parameters(task, seed) if init == STARTS[3] else init, seed)
            score = found.report.v_measure if task.dictionary is None else found.report.accuracy
            yield {
                "task": name, "ingredient": variant.ingredient, "choice": variant.choice,
                "algorithm": variant.algorithm, "seed": seed,
                "score": 100.0 * score, "states": found.report.states_used, "seconds": found.seconds,
            }  # fmt: skip

    def summary(self, rows: list[Row]) -> list[str]:
        tasks = list(dict.fromkeys(row["task"] for row in rows))
        ingredients = list(dict.fromkeys(row["ingredient"] for row in rows))
        kinds = dict.fromkeys((row["ingredient"], row["choice"], row["algorithm"]) for row in rows)
        lines = []
        for kind in sorted(kinds, key=lambda kind: ingredients.index(kind[0])):
            chosen = [row for row in rows if (row["ingredient"], row["choice"], row["algorithm"]) == kind]
            changed = f"{kind[0]} {kind[1]}".strip()
            lines.append([changed, kind[2], *(_entry(chosen, task) for task in tasks)])
        return table(("changed", "algorithm", *tasks), lines)

    def claims(self, rows: list[Row]) -> list[Claim]:
        if self.quick:
            return []

        def score(task: str, ingredient: str, choice: str, algorithm: str = "CVI 2") -> float:
            return mean_of(rows, "score", task=task, ingredient=ingredient, choice=choice, algorithm=algorithm)

        base = {(task, name): score(task, "", "unchanged", name) for task in TASKS for name in NAMES}
        drawn = score("d = 3", "start", "random parameters", "VI")
        included = {task: score(task, "own", "included") for task in TASKS}
        claims = [
            _less("VI loses five points at d = 3 if parameters are drawn", drawn, base["d = 3", "VI"] - 5.0),
            _less(
                "without a dictionary exclusion is worth ten points of V-measure",
                included["no dictionary"],
                base["no dictionary", "CVI 2"] - 10.0,
            ),
            _less("with a complete dictionary exclusion costs something", base["d = 1", "CVI 2"], included["d = 1"]),
        ]
        for name in ("CVI 1", "CVI 2"):
            hard, usual = score("d = 1", "start", "states", name), base["d = 1", name]
            claims.append(
                Claim(f"{name} hardly minds the start at d = 1", abs(hard - usual) <= 1.0, f"{hard:.1f}, {usual:.1f}")
            )
        for task in TASKS:
            many = score(task, "cluster size", "64")
            text = f"{task}: clusters of 64 sentences cost less than a point"
            claims.append(Claim(text, many > base[task, "CVI 2"] - 1.0, f"{many:.1f}, {base[task, 'CVI 2']:.1f}", True))
        return claims

    def draw(self, rows: list[Row], axes: Any) -> None:
        tasks = list(dict.fromkeys(row["task"] for row in rows))
        for number, task in enumerate(tasks):
            for ingredient, marker in (("cluster size", "o-"), ("subchains of", "s:")):
                choices = dict.fromkeys(row["choice"] for row in rows if row["ingredient"] == ingredient)
                scores = [mean_of(rows, "score", task=task, ingredient=ingredient, choice=choice) for choice in choices]
                places, label = [int(choice) for choice in choices], f"{task}, {ingredient}"
                axes.plot(places, scores, marker, color=f"C{number}", label=label)
        axes.set_xscale("log")
        axes.set_xlabel("sentences of a cluster; positions of a subchain")
        axes.set_ylabel("accuracy, or V-measure without a dictionary")
        axes.legend(fontsize=7)


def _inference(variant: Variant, iterations: int) -> Algorithm:
    return algorithms(iterations, iterations)[variant.algorithm].set_params(**variant.settings)


def _entry(rows: list[Row], task: str) -> str:
    """Score and seconds of a task."""
    score, seconds = cell(rows, "score", task=task), mean_of(rows, "seconds", task=task)
    return score if math.isnan(seconds) else f"{score} ({seconds:.1f} s)"


def _less(text: str, smaller: float, larger: float) -> Claim:
    return Claim(text, smaller < larger, f"{smaller:.1f} < {larger:.1f}")
